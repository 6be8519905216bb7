"""The hook in torch's DistributedDataParallel, on real gloo processes.

Processes take seconds to start, so that one pair runs every scenario; the tests judge what it saw.
"""

import io
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from asrtrain.onebit.bucket import as_matrix
from asrtrain.onebit.codec import Codec, Float32Codec, QuantizingCodec
from asrtrain.onebit.ddp import OneBitState, ddp_hook
from asrtrain.onebit.stripes import stripes_of
from tests.onebit.processes import run_processes

CODECS = {
    "1 bit": QuantizingCodec(),
    "4 bits by input": QuantizingCodec(bits=4, tie="input"),
    "float32": Float32Codec(),
}
STEPS = 40


def network() -> nn.Module:
    """A convolution, matrices of odd sizes, and weights that are not trained.

    Six parameters are trained: an even number, whose order DDP turns after the first step, so that
    each one's place changes from even to odd or back, and with it the owner of a lone row.
    """
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(3, 5, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(30, 21),
        nn.Tanh(),
        nn.Linear(21, 3),
        nn.Linear(3, 2, bias=False),
    )
    model[6].requires_grad_(False)
    return model


def batch(step: int, rank: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    inputs = torch.randn(16, 3, 8, generator=generator)
    return inputs, (inputs.sum(dim=(1, 2)) > 0).long()


class Trainer:
    """A replica whose DDP cuts the gradient into small buckets, other ones after the first step."""

    def __init__(self, codec: Codec | None, dtype: torch.dtype = torch.float32) -> None:
        self.model = network().to(dtype)
        self.state = OneBitState(self.model, codec) if codec else None
        self.ddp = DistributedDataParallel(self.model, bucket_cap_mb=0.001)
        if self.state:
            self.ddp.register_comm_hook(self.state, self._hook)
        self.buckets: list[list[int]] = []

    def _hook(self, state: OneBitState, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        self.buckets.append([each.numel() for each in bucket.parameters()])
        return ddp_hook(state, bucket)

    def gradient(self, step: int, scale: float = 1.0) -> list[Tensor]:
        self.ddp.zero_grad()
        inputs, labels = batch(step, dist.get_rank())
        output = self.ddp(inputs.to(next(self.model.parameters()).dtype))
        (nn.functional.cross_entropy(output, labels) * scale).backward()
        return [each.grad.clone() for each in self.trained]

    @property
    def trained(self) -> list[nn.Parameter]:
        return [each for each in self.model.parameters() if each.requires_grad]


def sums(codec: Codec) -> dict[str, Any]:
    """The sum of what DDP gave over many steps of a fixed model, and what is still owed."""
    trainer = Trainer(codec)
    applied = [torch.zeros_like(each) for each in trainer.trained]
    for step in range(STEPS):
        for total, each in zip(applied, trainer.gradient(step), strict=True):
            total += each
    return {
        "applied": applied,
        "state": trainer.state.state_dict(),
        "buckets": trainer.buckets,
        "bytes": trainer.state.transport.bytes_sent,
    }


def gradients(codec: Codec | None, dtype: torch.dtype = torch.float32) -> list[list[Tensor]]:
    trainer = Trainer(codec, dtype)
    return [trainer.gradient(step) for step in range(3)]


def learned() -> dict[str, Any]:
    trainer = Trainer(QuantizingCodec())
    train(trainer, range(150))
    inputs, labels = batch(10_000, 0)
    right = trainer.model(inputs).argmax(dim=1) == labels
    return {"parameters": values(trainer), "accuracy": float(right.float().mean())}


def whole_and_resumed() -> list[list[Tensor]]:
    """A run of six steps, and one that is loaded from another's files after three."""
    whole, first, second = (Trainer(QuantizingCodec()) for _ in range(3))
    train(whole, range(6))
    train(first, range(3))
    file = io.BytesIO()
    torch.save(first.state.state_dict(), file)
    file.seek(0)
    second.state.load_state_dict(torch.load(file, weights_only=True))
    second.model.load_state_dict(first.model.state_dict())
    train(second, range(3, 6))
    return [values(whole), values(second)]


def with_an_infinity() -> dict[str, Any]:
    """A step for which rank 1's gradient is infinite; and what rank 1 then owes."""
    trainer = Trainer(QuantizingCodec())
    scale = float("inf") if dist.get_rank() == 1 else 1.0
    given = trainer.gradient(0, scale)
    owed = max(float(each.abs().max()) for each in trainer.state.residuals)
    return {
        "given": given,
        "owed": owed,
        "count": trainer.state.non_finite,
        "buckets": len(trainer.buckets),
    }


def foreign_state() -> list[str]:
    """The errors of states that do not fit."""
    saved = OneBitState(network()).state_dict()
    errors = []
    for state in (OneBitState(network(), Float32Codec()), OneBitState(nn.Linear(2, 2))):
        with pytest.raises(ValueError, match="was saved with") as error:
            state.load_state_dict(saved)
        errors.append(str(error.value))
    with pytest.raises(ValueError, match="model lacks"):
        OneBitState(network()).average_([nn.Parameter(torch.ones(2))], [torch.ones(2)])
    return errors


def train(trainer: Trainer, steps: range) -> None:
    for step in steps:
        trainer.gradient(step)
        with torch.no_grad():
            for each in trainer.trained:
                each -= 0.2 * each.grad


def values(trainer: Trainer) -> list[Tensor]:
    return [each.detach() for each in trainer.trained]


def scenarios() -> dict[str, Any]:
    return {
        "sums": {name: sums(codec) for name, codec in CODECS.items()},
        "plain": gradients(None),
        "float32": gradients(Float32Codec()),
        "float64": gradients(QuantizingCodec(), torch.float64),
        "1 bit": gradients(QuantizingCodec()),
        "learned": learned(),
        "whole and resumed": whole_and_resumed(),
        "infinity": with_an_infinity(),
        "foreign": foreign_state(),
    }


@pytest.fixture(scope="module", params=[1, 2], ids=["alone", "two ranks"])
def ranks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What each rank saw."""
    return run_processes(request.param, scenarios, tmp_path_factory.mktemp("ranks"))


def own_gradient(step: int, rank: int) -> list[Tensor]:
    model = network()
    inputs, labels = batch(step, rank)
    nn.functional.cross_entropy(model(inputs), labels).backward()
    return [each.grad for each in model.parameters() if each.requires_grad]


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", CODECS)
def test_what_was_given_and_what_is_owed_is_the_mean_gradient(ranks: list, name: str) -> None:
    """given + update residuals + mean of residuals = sum over steps of the mean gradient."""
    tie, seen = CODECS[name].tie, [rank["sums"][name] for rank in ranks]
    wanted = [torch.zeros(each.shape, dtype=torch.float64) for each in own_gradient(0, 0)]
    for step in range(STEPS):
        for rank in range(len(ranks)):
            for total, each in zip(wanted, own_gradient(step, rank), strict=True):
                total += each.double() / len(ranks)
    for number, parameter in enumerate(seen[0]["state"]["shapes"]):
        got = as_matrix(seen[0]["applied"][number].double().clone(), tie)
        if name != "float32":  # which owes nothing
            stripes = stripes_of([tuple(got.shape)], len(ranks), [number])
            for rank, [stripe] in zip(seen, stripes, strict=True):
                got += rank["state"]["residuals"][parameter].double() / len(ranks)
                owed = rank["state"]["update_residuals"][parameter].double()
                got[stripe.begin : stripe.end] += owed
        torch.testing.assert_close(got, as_matrix(wanted[number], tie), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", CODECS)
def test_over_time_what_is_given_is_the_mean_gradient(ranks: list, name: str) -> None:
    """It differs by what is owed, which does not grow with the steps."""
    exact, got = ranks[0]["sums"]["float32"]["applied"], ranks[0]["sums"][name]["applied"]
    for a, b in zip(got, exact, strict=True):
        torch.testing.assert_close(a / STEPS, b / STEPS, rtol=0, atol=0.02)


def test_all_ranks_get_the_same_bits(ranks: list) -> None:
    for other in ranks:
        for name in CODECS:
            assert_same(other["sums"][name]["applied"], ranks[0]["sums"][name]["applied"])
        assert_same(other["learned"]["parameters"], ranks[0]["learned"]["parameters"])


def test_ddp_did_change_its_buckets(ranks: list) -> None:
    """Else nothing here would show that residuals stay with their parameters."""
    first, *others = ranks[0]["sums"]["1 bit"]["buckets"]
    assert len(others) == 2 * (STEPS - 1)
    assert first not in others


def test_one_bit_sends_less(ranks: list) -> None:
    sent = {name: each["bytes"] for name, each in ranks[0]["sums"].items()}
    assert sent["1 bit"] <= sent["float32"] / 3


def test_float32_is_what_ddp_gives_without_a_hook(ranks: list) -> None:
    for got, wanted in zip(ranks[0]["float32"], ranks[0]["plain"], strict=True):
        for a, b in zip(got, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_a_float64_model_gets_float64_gradients(ranks: list) -> None:
    for got, wanted in zip(ranks[0]["float64"], ranks[0]["1 bit"], strict=True):
        for a, b in zip(got, wanted, strict=True):
            torch.testing.assert_close(a, b.double(), rtol=0, atol=1e-5)


def test_a_network_learns(ranks: list) -> None:
    assert ranks[0]["learned"]["accuracy"] >= 0.85


def test_a_loaded_state_continues_bit_for_bit(ranks: list) -> None:
    for rank in ranks:
        assert_same(*rank["whole and resumed"])


def test_an_infinite_gradient_is_left_out_and_counted(ranks: list) -> None:
    for rank, seen in enumerate(ranks):
        infinity = seen["infinity"]
        assert infinity["count"] == (infinity["buckets"] if len(ranks) == 2 else 0)
        assert (infinity["owed"] == 0) == (rank == 1)
        assert all(each.isfinite().all() for each in infinity["given"])


def test_a_state_that_does_not_fit_is_refused(ranks: list) -> None:
    codec, shapes = ranks[0]["foreign"]
    assert codec.startswith("OneBitState was saved with codec=QuantizingCodec(bits=1")
    assert "shapes" in shapes
