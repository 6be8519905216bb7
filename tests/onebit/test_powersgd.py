"""Laws of PowerSGD on two gloo processes: nothing is lost, all get the same."""

import io
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from asrtrain.onebit.exchange import StepReport
from asrtrain.onebit.powersgd import PowerSgd, PowerSgdExchange
from asrtrain.onebit.transport import ProcessGroupTransport
from tests.onebit.processes import run_processes

SHAPES = [(40, 30), (7,), (6, 3, 9), (2, 2), ()]
EXACT = (1, 3, 4)
"""What is not worth factors of rank 2."""
STEPS = 60


def gradients(rank: int, step: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def new_powersgd() -> PowerSgd:
    return PowerSgd(2, gradients(0))


def sums() -> dict[str, Any]:
    powersgd = new_powersgd()
    totals = [torch.zeros(shape) for shape in SHAPES]
    for _ in range(STEPS):
        for total, each in zip(totals, powersgd.reduce(gradients(dist.get_rank())), strict=True):
            total += each
    return {"totals": totals, "owed": [each.clone() for each in powersgd.owed]}


def whole_and_resumed() -> list[list[Tensor]]:
    whole, first, second = (new_powersgd() for _ in range(3))
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


def descend(number: int, total: Tensor, frames: int) -> Tensor:
    return total * (-1.0 / frames)


def stepped(own: list[Tensor], **settings: Any) -> dict[str, Any]:
    """Two steps of the exchange on `own`, with as many frames as the rank's number plus one."""
    parameters = [torch.zeros(shape) for shape in SHAPES]
    exchange = PowerSgdExchange(parameters, 2, ProcessGroupTransport(), **settings)
    for _ in range(2):
        report: StepReport = exchange.step([own], [dist.get_rank() + 1], descend)
    return {
        "parameters": parameters,
        "owed": [each.clone() for each in exchange.residuals[0]],
        "norm": exchange.residual_norm(0),
        "wire": exchange.wire_bytes(),
        **vars(report),
    }


def with_a_nan() -> dict[str, Any]:
    own = gradients(dist.get_rank())
    if dist.get_rank() == 1:
        own[0][3, 4] = float("nan")
    return stepped(own)


def numbers_on_the_wire() -> int:
    """How many stand for all gradients: the factors of two matrices, and the others' values."""
    powersgd = new_powersgd()
    powersgd.reduce(gradients(dist.get_rank()))
    saved = powersgd.state_dict()
    factors = saved["p_memory_dict"][0].numel() + saved["q_memory_dict"][0].numel()
    return factors + sum(gradients(0)[number].numel() for number in EXACT)


def of_zero() -> list[Tensor]:
    return new_powersgd().reduce([torch.zeros(shape) for shape in SHAPES])


def scenarios() -> dict[str, Any]:
    return {
        "sums": sums(),
        "whole and resumed": whole_and_resumed(),
        "step": stepped(gradients(dist.get_rank())),
        "overlapped": stepped(gradients(dist.get_rank()), bucket_bytes=4, overlap=True),
        "nan": with_a_nan(),
        "numbers": numbers_on_the_wire(),
        "zero": of_zero(),
        "first": new_powersgd().reduce(gradients(dist.get_rank())),
    }


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_processes(2, scenarios, tmp_path_factory.mktemp("ranks"))


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def assert_nothing_lost(ranks: list, scenario: str, given: str, wanted: list[Tensor]) -> None:
    for number, whole in enumerate(wanted):
        owed = sum(rank[scenario]["owed"][number].double().view(whole.shape) for rank in ranks)
        got = ranks[0][scenario][given][number].double() + owed
        torch.testing.assert_close(got, whole.double(), rtol=0, atol=1e-3)


def exact_sum() -> list[Tensor]:
    return [a + b for a, b in zip(gradients(0), gradients(1), strict=True)]


def test_what_was_given_and_what_is_owed_is_the_sum(ranks: list) -> None:
    assert_nothing_lost(ranks, "sums", "totals", [each * STEPS for each in exact_sum()])


def test_over_time_what_is_given_tends_to_the_sum(ranks: list) -> None:
    """A matrix at rank 2 is far from the sum in one step, and near it in the mean of many."""
    wanted = exact_sum()[0]
    once = (ranks[0]["first"][0] - wanted).norm()
    over_time = (ranks[0]["sums"]["totals"][0] / STEPS - wanted).norm()
    assert over_time < 0.4 * once


def test_vectors_and_small_matrices_are_summed_exactly(ranks: list) -> None:
    for number in EXACT:
        torch.testing.assert_close(ranks[0]["first"][number], exact_sum()[number])


def test_all_ranks_get_the_same_bits(ranks: list) -> None:
    one, other = ranks
    assert_same(one["sums"]["totals"], other["sums"]["totals"])
    for scenario in ("step", "overlapped", "nan"):
        assert_same(one[scenario]["parameters"], other[scenario]["parameters"])


def test_a_loaded_state_continues_bit_for_bit(ranks: list) -> None:
    for rank in ranks:
        assert_same(*rank["whole and resumed"])


def test_a_step_is_the_update_of_the_sum_and_no_update_is_owed(ranks: list) -> None:
    """Of the sum in each of two steps, a third has been subtracted from the parameters."""
    for rank in ranks:
        rank["step"]["given"] = [each * -3 for each in rank["step"]["parameters"]]
    assert_nothing_lost(ranks, "step", "given", [each * 2 for each in exact_sum()])
    assert [rank["step"]["frames"] for rank in ranks] == [3, 3]
    owed = torch.cat([each.flatten() for each in ranks[0]["step"]["owed"]])
    assert ranks[0]["step"]["norm"] == pytest.approx(float(owed.norm()))


def test_a_nan_is_left_out_and_reported(ranks: list) -> None:
    assert [rank["nan"]["non_finite"] for rank in ranks] == [1, 1]
    assert [rank["nan"]["frames"] for rank in ranks] == [1, 1]
    torch.testing.assert_close(ranks[0]["nan"]["parameters"][1], gradients(0)[1] * -2)
    assert ranks[0]["nan"]["parameters"][0].isfinite().all()


def test_the_wire_carries_factors_round_a_ring(ranks: list) -> None:
    """Each of two workers sends half of the numbers to sum them, and half to share out the sum."""
    assert ranks[0]["step"]["wire"] == 2 * 4 * ranks[0]["numbers"]


def test_gradients_of_zero_stay_zero(ranks: list) -> None:
    assert_same(ranks[0]["zero"], [torch.zeros(shape) for shape in SHAPES])
