"""The striped exchange against sums, means and steps written out by hand."""

import pytest
import torch
from torch import Tensor

from asrtrain.onebit.codec import Codec, Float32Codec, OneBitCodec
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.quantize import dequantize, quantize
from asrtrain.onebit.transport import LocalTransport
from tests.onebit.threads import ThreadTransport, run_workers

SHAPES = [(7, 33), (7,), (3, 7), (3,)]
both_codecs = pytest.mark.parametrize("codec", [Float32Codec(), OneBitCodec()])


def tensors(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def descend(sums: list[Tensor], frames: int) -> list[Tensor]:
    return [each * -0.1 for each in sums]


def steps(codec: Codec, workers: int, count: int) -> list[list[Tensor]]:
    """Each worker's parameters after `count` steps on gradients that depend on rank and step."""

    def work(transport: ThreadTransport) -> list[Tensor]:
        parameters = tensors(seed=99)
        exchange = StripedExchange(parameters, codec, transport)
        for step in range(count):
            exchange.step(tensors(seed=100 * step + transport.rank), 4, descend)
        return parameters

    return run_workers(workers, work)


@both_codecs
@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8])
def test_replicas_are_bit_identical_after_every_step(codec: Codec, workers: int) -> None:
    for count in (1, 2, 5):
        first, *others = steps(codec, workers, count)
        for other in others:
            assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_float32_is_the_sum_in_rank_order_bit_for_bit(workers: int) -> None:
    wanted = tensors(seed=99)
    for step in range(3):
        parts = [tensors(seed=100 * step + rank) for rank in range(workers)]
        for number, parameter in enumerate(wanted):
            total = torch.zeros_like(parameter)
            for part in parts:
                total += part[number]
            parameter += total * -0.1
    got = steps(Float32Codec(), workers, 3)[0]
    assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_onebit_is_quantize_sum_quantize_written_out(workers: int) -> None:
    """Levels belong to rows and stripes are whole rows, so stripes leave no trace in the result."""
    wanted = [each.view(-1, each.shape[-1]) for each in tensors(seed=99)]
    residuals = [[torch.zeros_like(each) for each in wanted] for _ in range(workers)]
    update_residuals = [torch.zeros_like(each) for each in wanted]
    for step in range(4):
        for number, parameter in enumerate(wanted):
            total = torch.zeros_like(parameter)
            for rank in range(workers):
                gradient = tensors(seed=100 * step + rank)[number].view_as(parameter)
                total += dequantize(quantize(gradient, residuals[rank][number]))
            parameter += dequantize(quantize(total * -0.1, update_residuals[number]))
    got = steps(OneBitCodec(), workers, 4)[0]
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a.view_as(b), b, rtol=1e-5, atol=1e-6)


def test_over_time_onebit_applies_what_float32_applies() -> None:
    """With constant gradients the two arms stay within the residuals of each other."""

    def work(codec: Codec) -> list[Tensor]:
        def one(transport: ThreadTransport) -> list[Tensor]:
            parameters = [torch.zeros(shape) for shape in SHAPES]
            exchange = StripedExchange(parameters, codec, transport)
            for _ in range(500):
                exchange.step(tensors(seed=transport.rank), 4, descend)
            return [each / 500 for each in parameters]

        return run_workers(2, one)[0]

    for a, b in zip(work(OneBitCodec()), work(Float32Codec()), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0.01)


@both_codecs
def test_a_worker_without_frames_takes_part(codec: Codec) -> None:
    def work(transport: ThreadTransport) -> tuple[int, list[Tensor]]:
        parameters = tensors(seed=99)
        exchange = StripedExchange(parameters, codec, transport)
        own = tensors(seed=1) if transport.rank == 0 else [torch.zeros(each) for each in SHAPES]
        report = exchange.step(own, 4 if transport.rank == 0 else 0, descend)
        return report.frames, parameters

    (frames, first), (_, second) = run_workers(2, work)
    assert frames == 4
    alone = tensors(seed=99)
    StripedExchange(alone, codec, LocalTransport()).step(tensors(seed=1), 4, descend)
    for a, b, c in zip(first, second, alone, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c)


@both_codecs
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_is_left_out_and_reported(codec: Codec, bad: float) -> None:
    def work(transport: ThreadTransport) -> tuple[list[Tensor], float]:
        parameters = tensors(seed=99)
        exchange = StripedExchange(parameters, codec, transport)
        own = tensors(seed=transport.rank)
        if transport.rank == 1:
            own[2][0, 3] = bad
        report = exchange.step(own, 4, descend)
        assert (report.frames, report.non_finite) == (4, 1)
        return parameters, exchange.residual_norm()

    (first, _), (second, clean) = run_workers(2, work)
    assert clean == 0.0
    alone = tensors(seed=99)
    StripedExchange(alone, codec, LocalTransport()).step(tensors(seed=0), 4, descend)
    for a, b, c in zip(first, second, alone, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c)


def test_state_undoes_steps_exactly() -> None:
    parameters = tensors(seed=99)
    exchange = StripedExchange(parameters, OneBitCodec(), LocalTransport())
    exchange.step(tensors(seed=1), 4, descend)
    state, before = exchange.state(), [each.clone() for each in parameters]
    exchange.step(tensors(seed=2), 4, descend)
    after = [each.clone() for each in parameters]
    exchange.load_state(state)
    for own, saved in zip(parameters, before, strict=True):
        own.copy_(saved)
    exchange.step(tensors(seed=2), 4, descend)
    assert all(torch.equal(a, b) for a, b in zip(parameters, after, strict=True))


@both_codecs
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_wire_bytes_are_what_the_transports_count(codec: Codec, workers: int) -> None:
    def work(transport: ThreadTransport) -> tuple[int, int]:
        exchange = StripedExchange(tensors(seed=99), codec, transport)
        exchange.step(tensors(seed=transport.rank), 4, descend)
        return transport.bytes_sent, exchange.wire_bytes()

    results = run_workers(workers, work)
    assert {wire for _, wire in results} == {sum(sent for sent, _ in results)}


def test_wire_bytes_by_hand() -> None:
    """Two workers, rows of 33 values: a float32 row takes 132 bytes, a 1-bit row 2 * 4 + 2 * 4.

    A gradient row travels once (to its owner, unless that is the sender), an update row once.
    """

    def work(transport: ThreadTransport) -> tuple[int, int]:
        parameters = [torch.zeros(7, 33)]
        headers = 2 * 4
        return tuple(
            StripedExchange(parameters, codec, transport).wire_bytes() - headers
            for codec in (Float32Codec(), OneBitCodec())
        )

    assert run_workers(2, work)[0] == (2 * 7 * 132, 2 * 7 * 16)
