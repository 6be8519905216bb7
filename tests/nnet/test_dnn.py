"""The network against a forward pass written in float64 numpy."""

import numpy as np
import pytest
import torch

from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.dnn import frame_scores, new_network


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_scores_are_the_log_softmax_of_the_layers(activation: str) -> None:
    config = DnnConfig(hidden=[6, 5], activation=activation, left_context=1, right_context=2)
    network = new_network(config, dim=3, senones=4, generator=generator())
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator()))
    inputs = torch.randn(7, 12, generator=generator())
    hidden = inputs.double().numpy()
    parameters = [each.detach().double().numpy() for each in network.parameters()]
    squash = {"relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        hidden = squash[activation](hidden @ weight.T + bias)
    scores = hidden @ parameters[-2].T + parameters[-1]
    wanted = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(frame_scores(network, inputs), wanted, rtol=1e-4, atol=1e-5)


def test_it_starts_at_equal_posteriors() -> None:
    network = new_network(DnnConfig(hidden=[6]), dim=3, senones=4, generator=generator())
    scores = frame_scores(network, torch.randn(5, 33))
    torch.testing.assert_close(scores, torch.full((5, 4), float(np.log(0.25))))


@pytest.mark.parametrize("svd_rank", [0, 128])
@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_initial_activations_keep_their_size(activation: str, svd_rank: int) -> None:
    config = DnnConfig(
        hidden=[512] * 6,
        activation=activation,
        left_context=0,
        right_context=0,
        svd_rank=svd_rank,
    )
    network = new_network(config, dim=512, senones=4, generator=generator())
    inputs = torch.randn(200, 512, generator=generator())
    deviations = []
    for layer in network[:-1]:
        inputs = layer(inputs)
        deviations.append(float(inputs.detach().std()))
    first, last = deviations[1], deviations[-1]
    assert 0.5 < last / first < 2


def test_initial_weights_depend_on_the_seed_alone() -> None:
    first, second = (
        new_network(DnnConfig(hidden=[6]), 3, 4, torch.Generator().manual_seed(5)) for _ in range(2)
    )
    third = new_network(DnnConfig(hidden=[6]), 3, 4, torch.Generator().manual_seed(6))
    assert torch.equal(first[0].weight, second[0].weight)
    assert not torch.equal(first[0].weight, third[0].weight)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"activation": "tanh"}, "model.activation=tanh: expected one of sigmoid, relu"),
        ({"hidden": [5, 0]}, r"model.hidden=\[5, 0\]"),
        ({"left_context": -1}, "model.left_context=-1"),
        ({"svd_rank": -1}, "model.svd_rank=-1: expected 0"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict, named: str) -> None:
    with pytest.raises(UserError, match=named):
        DnnConfig(**settings)
