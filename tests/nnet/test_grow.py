"""A network grows by a layer at a time: what it keeps and what it starts anew."""

import pytest
import torch

from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.dnn import frame_scores, new_network
from asrtrain.nnet.grow import grown, shallow
from asrtrain.nnet.model_file import AcousticModel, new_model

FULL = DnnConfig(hidden=[12, 10, 8], activation="sigmoid", left_context=1, right_context=1)
LOW_RANK = DnnConfig(hidden=[12, 10, 8], left_context=1, right_context=1, svd_rank=3)
DIM, SENONES, SEED = 4, 6, 3


def generator(seed: int = SEED) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def trained(config: DnnConfig, layers: int) -> AcousticModel:
    """Of the lowest `layers`, with all parameters moved off their initial values."""
    priors = torch.arange(SENONES) / 10
    model = new_model(shallow(config, layers), DIM, priors, seed=SEED)
    draws = generator(9)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter += torch.randn(parameter.shape, generator=draws)
    return model


def test_shallow_keeps_the_lowest_layers_and_all_else() -> None:
    assert shallow(FULL, 2) == DnnConfig(
        hidden=[12, 10], activation="sigmoid", left_context=1, right_context=1
    )
    assert shallow(FULL, 3) == FULL


@pytest.mark.parametrize("config", [FULL, LOW_RANK])
@pytest.mark.parametrize("layers", [1, 2])
def test_hidden_layers_compute_what_they_did(config: DnnConfig, layers: int) -> None:
    model = trained(config, layers)
    result = grown(model, config, generator())
    inputs = torch.randn(7, 12, generator=generator())
    # The output layer is the last entry; the new hidden layer and its activation come before it.
    assert torch.equal(result.network[:-3](inputs), model.network[:-1](inputs))


@pytest.mark.parametrize("config", [FULL, LOW_RANK])
def test_new_layers_start_as_in_the_full_network(config: DnnConfig) -> None:
    result = grown(trained(config, 2), config, generator())
    wanted = new_network(config, DIM, SENONES, generator())
    for layer in (4, 6):
        for own, fresh in zip(
            result.network[layer].parameters(), wanted[layer].parameters(), strict=True
        ):
            assert torch.equal(own, fresh)


def test_the_old_output_layer_is_gone() -> None:
    result = grown(trained(FULL, 1), FULL, generator())
    scores = frame_scores(result.network, torch.randn(5, 12, generator=generator()))
    torch.testing.assert_close(scores, torch.full((5, SENONES), 1 / SENONES).log())


def test_growing_to_the_end_gives_the_settings_asked_for() -> None:
    model = trained(FULL, 1)
    while model.config != FULL:
        model = grown(model, FULL, generator())
    assert (model.dim, model.num_senones) == (DIM, SENONES)
    assert torch.equal(model.log_priors, torch.arange(SENONES) / 10)
    shapes = [tuple(each.weight.shape) for each in model.network[::2]]
    assert shapes == [(12, 12), (10, 12), (8, 10), (6, 8)]


def test_the_first_model_is_left_alone() -> None:
    model = trained(FULL, 1)
    before = [each.detach().clone() for each in model.network.parameters()]
    with torch.no_grad():
        for parameter in grown(model, FULL, generator()).network.parameters():
            parameter.zero_()
    for parameter, old in zip(model.network.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


@pytest.mark.parametrize("layers", [0, 4])
def test_a_depth_that_does_not_exist_is_named(layers: int) -> None:
    with pytest.raises(
        UserError, match=rf"model\.hidden=\[12, 10, 8\]: a network of {layers} .* expected 1 to 3"
    ):
        shallow(FULL, layers)


def test_models_that_cannot_grow_are_named() -> None:
    with pytest.raises(UserError, match="expected more than the 3 hidden layer"):
        grown(trained(FULL, 3), FULL, generator())
    other = DnnConfig(hidden=[12, 10, 8], activation="relu", left_context=1, right_context=1)
    with pytest.raises(UserError, match=r"made with DnnConfig\(hidden=\[12\], activation='sigm"):
        grown(trained(FULL, 1), other, generator())
