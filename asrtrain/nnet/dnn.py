"""The network: spliced frames through hidden layers of one activation to a score for each senone.

Shapes: N frames, D features of a frame, S senones; the input is (N, (left + 1 + right) * D).
"""

import itertools
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from asrtrain.io.settings import require, require_choice

ACTIVATIONS = {"sigmoid": nn.Sigmoid, "relu": nn.ReLU}


@dataclass(frozen=True, kw_only=True)
class DnnConfig:
    """Shape of the network."""

    hidden: list[int] = field(default_factory=lambda: [512, 512, 512])
    """Units of each hidden layer, from the input up."""
    activation: str = "relu"
    """Of the hidden layers: sigmoid or relu."""
    left_context: int = 5
    """Frames before the one classified that the network sees, 0 or more."""
    right_context: int = 5
    """Frames after it, 0 or more."""

    def __post_init__(self) -> None:
        require_choice("model.activation", self.activation, tuple(ACTIVATIONS))
        require(
            all(units >= 1 for units in self.hidden),
            f"model.hidden={self.hidden}: expected at least 1 unit in each layer",
        )
        require(
            self.left_context >= 0 and self.right_context >= 0,
            f"model.left_context={self.left_context} model.right_context={self.right_context}: "
            "expected 0 or more frames",
        )


def new_network(
    config: DnnConfig, dim: int, senones: int, generator: torch.Generator
) -> nn.Sequential:
    """Fully connected layers whose output (N, S) is scores before the softmax.

    Initial weights come from `generator` alone. Their variance keeps the size of activations and
    gradients through the layers: He et al. 2015 for ReLU, Glorot & Bengio 2010 (times 4) for
    sigmoids. The output layer starts at zero, that is, at equal posteriors.
    """
    width = (config.left_context + 1 + config.right_context) * dim
    sizes = [width, *config.hidden]
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [_linear(inputs, outputs, config.activation, generator)]
        layers += [ACTIVATIONS[config.activation]()]
    output = nn.Linear(sizes[-1], senones)
    nn.init.zeros_(output.weight)
    nn.init.zeros_(output.bias)
    return nn.Sequential(*layers, output)


def _linear(inputs: int, outputs: int, activation: str, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    glorot = 4 * math.sqrt(2 / (inputs + outputs))
    deviation = math.sqrt(2 / inputs) if activation == "relu" else glorot
    with torch.no_grad():
        layer.weight.copy_(torch.randn(outputs, inputs, generator=generator) * deviation)
        layer.bias.zero_()
    return layer


def frame_scores(network: nn.Module, inputs: Tensor) -> Tensor:
    """Log posteriors (N, S) of spliced frames, without gradients."""
    with torch.inference_mode():
        return torch.log_softmax(network(inputs), dim=1)
