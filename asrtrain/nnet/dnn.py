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

    Initial weights come from `generator` alone. Their variance keeps the size of activations and
    gradients through the layers: He et al. 2015 for ReLU, Glorot & Bengio 2010 (times 4) for
    sigmoids. The output layer starts at zero, that is, at equal posteriors.
    """
    width = (config.left_context + 1 + config.right_context) * dim
    sizes = [width, *config.hidden]
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [_linear(inputs, outputs, config.activation, generator)]
        layers += [_LAYERS[config.activation]()]
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
