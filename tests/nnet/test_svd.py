"""Factored networks: how near they come, how large they are, and how they start."""

from pathlib import Path

import numpy as np
import pytest
import torch

from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.dnn import factors_are_smaller, frame_scores, new_network
from asrtrain.nnet.model_file import AcousticModel, load_model, new_model, save_model
from asrtrain.nnet.svd import factored, svd_factors


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def trained_model(rank: int | None = None) -> AcousticModel:
    """24-20-20-12 sigmoids with weights unlike any initial ones; of `rank`, if one is given."""
    config = DnnConfig(hidden=[20, 20], activation="sigmoid", left_context=1, right_context=1)
    model = new_model(config, dim=8, log_priors=torch.zeros(12), seed=1)
    draws = generator()
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draws))
            if rank and parameter.dim() == 2:
                outputs, inputs = parameter.shape
                narrow = torch.randn(outputs, rank, generator=draws)
                parameter.copy_(narrow @ torch.randn(rank, inputs, generator=draws))
    return model


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_the_error_is_the_tail_of_the_singular_values(rank: int) -> None:
    matrix = torch.randn(9, 7, generator=generator(), dtype=torch.float64)
    first, second = svd_factors(matrix, rank)
    assert (first.shape, second.shape) == ((rank, 7), (9, rank))
    # Singular values by other means: square roots of the eigenvalues of the Gram matrix.
    values = np.sqrt(np.linalg.eigvalsh(matrix.T.numpy() @ matrix.numpy()))[::-1]
    error = float((matrix - second @ first).square().sum())
    assert error == pytest.approx(np.sum(values[rank:] ** 2), abs=1e-12)
    torch.testing.assert_close(first @ first.T, second.T @ second)


def test_matrices_of_that_rank_keep_their_scores() -> None:
    model = trained_model(rank=4)
    inputs = torch.randn(30, 24, generator=generator())
    torch.testing.assert_close(
        frame_scores(factored(model, 4).network, inputs),
        frame_scores(model.network, inputs),
        rtol=1e-4,
        atol=1e-4,
    )


def test_each_layer_is_the_nearest_of_its_rank() -> None:
    model = trained_model()
    result = factored(model, 5)
    for full, factors in zip(model.network[::2], result.network[::2], strict=True):
        first, second = svd_factors(full.weight.detach(), 5)
        assert torch.equal(factors[0].weight, first)
        assert torch.equal(factors[1].weight, second)
        assert torch.equal(factors[1].bias, full.bias)
        assert factors[0].bias is None


def test_parameters_are_those_of_the_factors() -> None:
    result = factored(trained_model(), 5)
    count = sum(each.numel() for each in result.network.parameters())
    assert count == 5 * (24 + 20) + 20 + 5 * (20 + 20) + 20 + 5 * (20 + 12) + 12


def test_a_matrix_that_would_grow_stays_full() -> None:
    model = trained_model()  # 8 * (20 + 12) = 256 > 240
    result = factored(model, 8)
    assert not factors_are_smaller(12, 20, 8)
    assert isinstance(result.network[0], torch.nn.Sequential)
    assert torch.equal(result.network[-1].weight, model.network[-1].weight)
    assert torch.equal(result.network[-1].bias, model.network[-1].bias)


def test_factors_as_large_as_the_matrix_are_not_made() -> None:
    assert not factors_are_smaller(20, 20, 10)
    assert factors_are_smaller(20, 20, 9)
    assert not factors_are_smaller(20, 20, 0)


def test_the_first_model_is_left_alone() -> None:
    model = trained_model()
    before = [each.detach().clone() for each in model.network.parameters()]
    with torch.no_grad():
        for parameter in factored(model, 8).network.parameters():
            parameter.zero_()
    for parameter, old in zip(model.network.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


def test_save_then_load(tmp_path: Path) -> None:
    model = factored(trained_model(), 5)
    save_model(model, tmp_path / "final.pt")
    loaded = load_model(tmp_path / "final.pt")
    assert loaded.config == model.config
    inputs = torch.randn(3, 24, generator=generator())
    assert torch.equal(frame_scores(loaded.network, inputs), frame_scores(model.network, inputs))


def test_what_cannot_be_factored_is_named() -> None:
    model = trained_model()
    with pytest.raises(UserError, match=r"factored already \(model.svd_rank=5\): expected full"):
        factored(factored(model, 5), 3)
    with pytest.raises(UserError, match=r"model\.svd_rank=0: expected a rank of at least 1"):
        factored(model, 0)
    with pytest.raises(UserError, match=r"model\.svd_rank=11: no matrix would become smaller"):
        factored(model, 11)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_initial_factors_multiply_to_the_variance_of_a_full_matrix(activation: str) -> None:
    settings = {"hidden": [300], "activation": activation, "left_context": 0, "right_context": 0}
    full = new_network(DnnConfig(**settings), 200, 4, generator())
    split = new_network(DnnConfig(**settings, svd_rank=50), 200, 4, generator())
    product = (split[0][1].weight @ split[0][0].weight).detach()
    assert float(product.std()) == pytest.approx(float(full[0].weight.detach().std()), rel=0.05)


def test_a_factored_network_starts_at_equal_posteriors() -> None:
    config = DnnConfig(hidden=[40], left_context=0, right_context=0, svd_rank=5)
    network = new_network(config, dim=40, senones=30, generator=generator())
    assert float(network[-1][0].weight.detach().std()) > 0  # or no gradient would ever flow
    scores = frame_scores(network, torch.randn(5, 40, generator=generator()))
    torch.testing.assert_close(scores, torch.full((5, 30), float(np.log(1 / 30))))
