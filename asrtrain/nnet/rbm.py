"""Restricted Boltzmann machines, trained one above the other for a sigmoid network's first weights.

Hinton, Osindero & Teh 2006, "A fast learning algorithm for deep belief nets"; Hinton 2012, "A
practical guide to training restricted Boltzmann machines"; Kaldi's steps/nnet/pretrain_dbn.sh and
rbm-train-cd1-frmshuff. Kaldi's rates, for means over 100 frames, are 0.01 (Gaussian) and 0.4; per
frame and for sums, as here, that is 1e-4 and 4e-3.

Shapes: N frames, V visible units, H hidden units.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from asrtrain.nnet.config import require_rbm_can_pretrain
from asrtrain.nnet.model_file import AcousticModel

_INITIAL_DEVIATION = 0.1
_LEAST_PROBABILITY = 1e-4


@dataclass(frozen=True)
class Rbm:
    """Binary hidden units h over binary or Gaussian visible units v; p(v, h) ~ exp(-E(v, h)).

    Binary: E = -h'Wv - c'h - b'v. Gaussian, of variance 1: E = -h'Wv - c'h + |v - b|^2 / 2.
    """

    weight: Tensor
    """W (H, V), as the weight of the `nn.Linear` that it becomes."""
    hidden_bias: Tensor
    """c (H,)."""
    visible_bias: Tensor
    """b (V,)."""
    gaussian: bool
    """Visible units are real numbers of variance 1, and not probabilities or bits."""

    @property
    def parameters(self) -> list[Tensor]:
        """Weight, hidden bias, visible bias: what an optimizer changes in place."""
        return [self.weight, self.hidden_bias, self.visible_bias]

    def hidden_probabilities(self, visible: Tensor) -> Tensor:
        """p(h = 1 | v), (N, H), of `visible` (N, V)."""
        return linear(visible, self.weight, self.hidden_bias).sigmoid()

    def visible_means(self, hidden: Tensor) -> Tensor:
        """Mean of p(v | h), (N, V), of `hidden` (N, H)."""
        means = linear(hidden, self.weight.T, self.visible_bias)
        return means if self.gaussian else means.sigmoid()

    def cd1_gradients(self, visible: Tensor, generator: torch.Generator) -> list[Tensor]:
        """What to descend, in the order of `parameters`, *summed* over the frames (N, V).

        One step of contrastive divergence (Hinton 2012, sections 2 and 3): statistics of the data
        less those of its reconstruction, negated. Hidden units are drawn from `generator` to make
        the reconstruction; all else is probabilities and means, which has less noise. No frames
        give zeros.
        """
        hidden = self.hidden_probabilities(visible)
        seen = self.visible_means(_drawn(hidden, generator))
        back = self.hidden_probabilities(seen)
        return [
            back.T @ seen - hidden.T @ visible,
            back.sum(dim=0) - hidden.sum(dim=0),
            seen.sum(dim=0) - visible.sum(dim=0),
        ]

    def reconstruction_error(self, visible: Tensor) -> float:
        """Squared error of a reconstruction without drawing, summed over frames and units.

        Cheap to watch, but not what training descends.
        """
        means = self.visible_means(self.hidden_probabilities(visible))
        return float((means - visible).double().square().sum())

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) (N,) in nats, with p(v) ~ exp(-F(v)): the hidden units summed out.

        Its mean on held-out frames less that on as many training frames shows overfitting (Hinton
        2012, section 6).
        """
        hidden = softplus(linear(visible, self.weight, self.hidden_bias)).sum(dim=1)
        if self.gaussian:
            return (visible - self.visible_bias).square().sum(dim=1) / 2 - hidden
        return -visible @ self.visible_bias - hidden


def rbm_stack_layer(
    model: AcousticModel,
    layer: int,
    generator: torch.Generator,
    visible_mean: Tensor | None = None,
) -> Rbm:
    """A machine to train for hidden layer `layer` of `model`, counted from 0 at the input.

    The lowest has Gaussian visible units, as its inputs are features normalized to mean 0 and
    variance 1. `visible_mean` (V,), the mean of `layer_inputs`, gives the others visible biases at
    which units are on as often as in the data. Initial weights are normal of deviation 0.1, from
    `generator` alone. Raises UserError if the network is not of full matrices and sigmoids.
    """
    require_rbm_can_pretrain(model.config)
    target = _hidden_linear(model.network, layer)
    hidden, visible = target.weight.shape
    gaussian = layer == 0
    bias = target.weight.new_zeros(visible)
    if visible_mean is not None:
        bias = visible_mean.clone() if gaussian else visible_mean.logit(eps=_LEAST_PROBABILITY)
    weight = torch.randn(hidden, visible, generator=generator) * _INITIAL_DEVIATION
    return Rbm(weight.to(target.weight), target.weight.new_zeros(hidden), bias, gaussian)


def layer_inputs(network: nn.Sequential, layer: int, inputs: Tensor) -> Tensor:
    """What hidden layer `layer` of `network` sees (N, V) of spliced frames, without gradients.

    Once the layers below have their weights, this is what its machine learns.
    """
    with torch.no_grad():
        seen: Tensor = network[: 2 * layer](inputs)
    return seen


def copy_into(network: nn.Sequential, layer: int, rbm: Rbm) -> None:
    """Give hidden layer `layer` of `network` the trained weights and hidden biases of `rbm`."""
    target = _hidden_linear(network, layer)
    target.load_state_dict({"weight": rbm.weight, "bias": rbm.hidden_bias})


def _hidden_linear(network: nn.Sequential, layer: int) -> nn.Linear:
    target = network[:-1][2 * layer]
    if not isinstance(target, nn.Linear):
        raise TypeError(f"hidden layer {layer} is no full matrix")
    return target


def _drawn(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Bits, each 1 with its probability; drawn where the generator is, to be the same anywhere."""
    uniform = torch.rand(
        probabilities.shape,
        generator=generator,
        dtype=probabilities.dtype,
        device=generator.device,
    )
    return (uniform.to(probabilities.device) < probabilities).to(probabilities.dtype)
