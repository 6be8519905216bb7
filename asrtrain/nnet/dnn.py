"""The network: spliced frames through hidden layers of one activation to a score for each senone.

Shapes: N frames, D features of a frame, S senones; the input is (N, (left + 1 + right) * D).
"""

import itertools
import math

import torch
from torch import Tensor, nn

from asrtrain.nnet.config import DnnConfig

_LAYERS = {"sigmoid": nn.Sigmoid, "relu": nn.ReLU}


def new_network(
    config: DnnConfig, dim: int, senones: int, generator: torch.Generator
) -> nn.Sequential:
    """Fully connected layers whose output (N, S) is scores before the softmax.

    Layer i, counted from 0 at the input, is the affine map `network[2 * i]` and, unless it is the
    output layer, the activation after it. The map is one `nn.Linear`, or with `config.svd_rank`
    two: `network[2 * i][0]` (rank x in, no bias) and `network[2 * i][1]` (out x rank).

    Initial weights come from `generator` alone. Their variance keeps the size of activations and
    gradients through the layers: He et al. 2015 for ReLU, Glorot & Bengio 2010 (times 4) for
    sigmoids. The output layer starts at zero, that is, at equal posteriors.
    """
    width = (config.left_context + 1 + config.right_context) * dim
    sizes = [width, *config.hidden]
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        deviation = _deviation(inputs, outputs, config.activation)
        layers += [_affine(inputs, outputs, deviation, config.svd_rank, generator)]
        layers += [_LAYERS[config.activation]()]
    output = _affine(sizes[-1], senones, 0.0, config.svd_rank, generator)
    return nn.Sequential(*layers, output)


def factors_are_smaller(outputs: int, inputs: int, rank: int) -> bool:
    """Whether two factors of `rank` (1 or more) hold fewer weights than the matrix they stand for.

    Only such matrices are factored; 0 means no factors at all.
    """
    return 0 < rank * (outputs + inputs) < outputs * inputs


def _deviation(inputs: int, outputs: int, activation: str) -> float:
    return math.sqrt(2 / inputs) if activation == "relu" else 4 * math.sqrt(2 / (inputs + outputs))


def _affine(
    inputs: int, outputs: int, deviation: float, rank: int, generator: torch.Generator
) -> nn.Module:
    """A full or factored map whose matrix, or product of factors, has this standard deviation."""
    if not factors_are_smaller(outputs, inputs, rank):
        return _linear(inputs, outputs, deviation, generator)
    # The first factor keeps the size of its inputs. An element of the product sums `rank` terms.
    first = math.sqrt(1 / inputs)
    second = deviation / (first * math.sqrt(rank))
    return nn.Sequential(
        _linear(inputs, rank, first, generator, bias=False),
        _linear(rank, outputs, second, generator),
    )


def _linear(
    inputs: int, outputs: int, deviation: float, generator: torch.Generator, bias: bool = True
) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        if deviation:
            layer.weight.copy_(torch.randn(outputs, inputs, generator=generator) * deviation)
    return layer


def frame_scores(network: nn.Module, inputs: Tensor) -> Tensor:
    """Log posteriors (N, S) of spliced frames, without gradients."""
    with torch.inference_mode():
        return torch.log_softmax(network(inputs), dim=1)
