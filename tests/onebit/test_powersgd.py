"""Laws of PowerSGD on two gloo processes: nothing is lost, all get the same."""

import io
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from asrtrain.onebit.powersgd import PowerSgdExchange
from tests.onebit.processes import run_processes

SHAPES = [(40, 30), (7,), (6, 3, 9), (2, 2), ()]
STEPS = 60


def gradients(rank: int, step: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def sums() -> dict[str, Any]:
    exchange = PowerSgdExchange(rank=2)
    totals = [torch.zeros(shape) for shape in SHAPES]
    for _ in range(STEPS):
        for total, each in zip(totals, exchange.reduce(gradients(dist.get_rank())), strict=True):
            total += each
    return {"totals": totals, "owed": exchange.state_dict()["error_dict"][0]}


def whole_and_resumed() -> list[list[Tensor]]:
    whole, first, second = (PowerSgdExchange(rank=2) for _ in range(3))
    for step in range(4):
        expected = whole.reduce(gradients(dist.get_rank(), step))
    for step in range(2):
        first.reduce(gradients(dist.get_rank(), step))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    for step in range(2, 4):
        got = second.reduce(gradients(dist.get_rank(), step))
    return [expected, got]


def with_a_nan() -> dict[str, Any]:
    exchange = PowerSgdExchange(rank=2)
    own = gradients(dist.get_rank())
    if dist.get_rank() == 1:
        own[0][3, 4] = float("nan")
    return {"sum": exchange.reduce(own), "count": exchange.non_finite}


def of_zero() -> list[Tensor]:
    return PowerSgdExchange(rank=2).reduce([torch.zeros(shape) for shape in SHAPES])


def scenarios() -> dict[str, Any]:
    return {
        "sums": sums(),
        "whole and resumed": whole_and_resumed(),
        "nan": with_a_nan(),
        "zero": of_zero(),
        "first": PowerSgdExchange(rank=2).reduce(gradients(dist.get_rank())),
    }


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_processes(2, scenarios, tmp_path_factory.mktemp("ranks"))


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def exact_sum() -> list[Tensor]:
    return [a + b for a, b in zip(gradients(0), gradients(1), strict=True)]


def test_what_was_given_and_what_is_owed_is_the_sum(ranks: list) -> None:
    owed = sum(rank["sums"]["owed"].double() for rank in ranks)
    given = torch.cat([each.flatten() for each in ranks[0]["sums"]["totals"]]).double()
    wanted = torch.cat([each.flatten() for each in exact_sum()]).double() * STEPS
    torch.testing.assert_close(given + owed, wanted, rtol=0, atol=1e-3)


def test_over_time_what_is_given_tends_to_the_sum(ranks: list) -> None:
    """A matrix at rank 2 is far from the sum in one step, and near it in the mean of many."""
    wanted = exact_sum()[0]
    once = (ranks[0]["first"][0] - wanted).norm()
    over_time = (ranks[0]["sums"]["totals"][0] / STEPS - wanted).norm()
    assert over_time < 0.4 * once


def test_vectors_and_small_matrices_are_summed_exactly(ranks: list) -> None:
    for number in (1, 3, 4):
        torch.testing.assert_close(ranks[0]["first"][number], exact_sum()[number])


def test_all_ranks_get_the_same_bits(ranks: list) -> None:
    one, other = ranks
    assert_same(one["sums"]["totals"], other["sums"]["totals"])
    assert_same(one["nan"]["sum"], other["nan"]["sum"])


def test_a_loaded_state_continues_bit_for_bit(ranks: list) -> None:
    for rank in ranks:
        assert_same(*rank["whole and resumed"])


def test_a_nan_is_left_out(ranks: list) -> None:
    assert [rank["nan"]["count"] for rank in ranks] == [0, 1]
    torch.testing.assert_close(ranks[0]["nan"]["sum"][1], gradients(0)[1])
    assert ranks[0]["nan"]["sum"][0].isfinite().all()


def test_gradients_of_zero_stay_zero(ranks: list) -> None:
    assert_same(ranks[0]["zero"], [torch.zeros(shape) for shape in SHAPES])
