"""The striped exchange against sums, means and steps written out by hand."""

import pytest
import torch
from torch import Tensor

from asrtrain.onebit.codec import BFloat16Codec, Codec, Float32Codec, QuantizingCodec
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.kernels import NumbaKernels
from asrtrain.onebit.quantize import dequantize
from asrtrain.onebit.transport import LocalTransport
from tests.onebit.threads import ThreadTransport, run_workers

SHAPES = [(7, 33), (7,), (3, 7), (3,)]
all_codecs = pytest.mark.parametrize(
    "codec",
    [
        Float32Codec(),
        BFloat16Codec(),
        QuantizingCodec(),
        QuantizingCodec(bits=4),
        QuantizingCodec(tie="input"),
        QuantizingCodec(error_feedback=False),
    ],
    ids=["float32", "bfloat16", "1 bit", "4 bits", "by input", "no feedback"],
)


def tensors(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def descend(number: int, total: Tensor, frames: int) -> Tensor:
    return total * -0.1


def steps(
    codec: Codec, workers: int, count: int, processes: int = 0, **settings
) -> list[list[Tensor]]:
    """Each process's parameters after `count` steps on gradients that depend on worker and step."""

    def work(transport: ThreadTransport) -> list[Tensor]:
        parameters = tensors(seed=99)
        exchange = StripedExchange(parameters, codec, transport, workers, **settings)
        own = exchange.local_workers
        for step in range(count):
            gradients = [tensors(seed=100 * step + worker) for worker in own]
            exchange.step(gradients, [4] * len(own), descend)
        return parameters

    return run_workers(processes or workers, work)


@all_codecs
@pytest.mark.parametrize("processes", [1, 2, 3, 4, 6])
def test_the_result_depends_on_workers_not_on_processes(codec: Codec, processes: int) -> None:
    wanted = steps(codec, 12, 3, processes=12)[0]
    for got in steps(codec, 12, 3, processes=processes):
        assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))


@all_codecs
@pytest.mark.parametrize("bucket_bytes", [1, 100])
def test_buckets_and_overlap_change_nothing(codec: Codec, bucket_bytes: int) -> None:
    wanted = steps(codec, 4, 3)[0]
    for overlap in (False, True):
        settings = {"bucket_bytes": bucket_bytes, "overlap": overlap}
        for got in steps(codec, 4, 3, processes=2, **settings):
            assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))


def test_gradients_may_come_in_any_order() -> None:
    wanted, parameters = steps(QuantizingCodec(), 1, 1)[0], tensors(seed=99)
    exchange = StripedExchange(parameters, QuantizingCodec(), LocalTransport(), bucket_bytes=1)
    step = exchange.start(descend, [4])
    for number in (1, 3, 0, 2):
        step.add(0, number, tensors(seed=0)[number])
    exchange.finish(step)
    assert all(torch.equal(a, b) for a, b in zip(parameters, wanted, strict=True))


def test_workers_that_cannot_be_spread_evenly_are_refused() -> None:
    def work(transport: ThreadTransport) -> None:
        with pytest.raises(ValueError, match=r"5 workers .* over 2 processes"):
            StripedExchange(tensors(seed=99), Float32Codec(), transport, workers=5)

    run_workers(2, work)


@all_codecs
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
    kernels = NumbaKernels()
    wanted = [each.view(-1, each.shape[-1]) for each in tensors(seed=99)]
    residuals = [[torch.zeros_like(each) for each in wanted] for _ in range(workers)]
    update_residuals = [torch.zeros_like(each) for each in wanted]
    for step in range(4):
        for number, parameter in enumerate(wanted):
            total = torch.zeros_like(parameter)
            for rank in range(workers):
                gradient = tensors(seed=100 * step + rank)[number].view_as(parameter)
                total += dequantize(kernels.quantize(gradient, residuals[rank][number]))
            parameter += dequantize(kernels.quantize(total * -0.1, update_residuals[number]))
    got = steps(QuantizingCodec(), workers, 4)[0]
    assert all(torch.equal(a.view_as(b), b) for a, b in zip(got, wanted, strict=True))


@pytest.mark.parametrize("codec", [QuantizingCodec(), QuantizingCodec(4), QuantizingCodec(8)])
@pytest.mark.parametrize("workers", [1, 3])
def test_nothing_is_lost_between_gradients_and_parameters(codec: Codec, workers: int) -> None:
    """Parameters' change = -0.1 * (sum of gradients - residuals) - update residuals."""
    count = 20

    def work(transport: ThreadTransport) -> StripedExchange:
        exchange = StripedExchange([torch.zeros(each) for each in SHAPES], codec, transport)
        for step in range(count):
            exchange.step([tensors(seed=100 * step + transport.rank)], [4], descend)
        return exchange

    exchanges = run_workers(workers, work)
    for number, got in enumerate(exchanges[0].matrices):
        wanted = torch.zeros(got.shape, dtype=torch.float64)
        for worker, exchange in enumerate(exchanges):
            for step in range(count):
                gradient = tensors(seed=100 * step + worker)[number].view_as(got)
                wanted -= 0.1 * gradient.double()
            wanted += 0.1 * exchange.residuals[0][number].double()
            stripe = exchange.owned[number]
            wanted[stripe.begin : stripe.end] -= exchange.update_residuals[number].double()
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=1e-5)


def test_over_time_onebit_applies_what_float32_applies() -> None:
    """With constant gradients the two arms stay within the residuals of each other."""

    def work(codec: Codec) -> list[Tensor]:
        def one(transport: ThreadTransport) -> list[Tensor]:
            parameters = [torch.zeros(shape) for shape in SHAPES]
            exchange = StripedExchange(parameters, codec, transport)
            for _ in range(500):
                exchange.step([tensors(seed=transport.rank)], [4], descend)
            return [each / 500 for each in parameters]

        return run_workers(2, one)[0]

    for a, b in zip(work(QuantizingCodec()), work(Float32Codec()), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0.01)


@all_codecs
def test_a_worker_without_frames_takes_part(codec: Codec) -> None:
    def work(transport: ThreadTransport) -> tuple[int, list[Tensor]]:
        parameters = tensors(seed=99)
        exchange = StripedExchange(parameters, codec, transport)
        own = tensors(seed=1) if transport.rank == 0 else [torch.zeros(each) for each in SHAPES]
        report = exchange.step([own], [4 if transport.rank == 0 else 0], descend)
        return report.frames, parameters

    (frames, first), (_, second) = run_workers(2, work)
    assert frames == 4
    alone = tensors(seed=99)
    StripedExchange(alone, codec, LocalTransport()).step([tensors(seed=1)], [4], descend)
    for a, b, c in zip(first, second, alone, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c)


@all_codecs
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_is_left_out_and_reported(codec: Codec, bad: float) -> None:
    def work(transport: ThreadTransport) -> tuple[list[Tensor], float]:
        parameters = tensors(seed=99)
        exchange = StripedExchange(parameters, codec, transport)
        own = tensors(seed=transport.rank)
        if transport.rank == 1:
            own[2][0, 3] = bad
        report = exchange.step([own], [4], descend)
        assert (report.frames, report.non_finite) == (4, 1)
        return parameters, exchange.residual_norm(0)

    (first, _), (second, clean) = run_workers(2, work)
    assert clean == 0.0
    alone = tensors(seed=99)
    StripedExchange(alone, codec, LocalTransport()).step([tensors(seed=0)], [4], descend)
    for a, b, c in zip(first, second, alone, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c)


def test_an_update_that_is_not_finite_is_left_out_and_reported() -> None:
    parameters = tensors(seed=99)
    exchange = StripedExchange(parameters, QuantizingCodec(), LocalTransport())
    report = exchange.step([tensors(seed=1)], [4], lambda number, total, frames: total * 1e39)
    assert report.non_finite == len(SHAPES)
    assert all(torch.equal(a, b) for a, b in zip(parameters, tensors(seed=99), strict=True))


def test_another_codec_begins_with_nothing_owed() -> None:
    parameters = tensors(seed=99)
    exchange = StripedExchange(parameters, Float32Codec(), LocalTransport())
    exchange.step([tensors(seed=1)], [4], descend)
    exchange.use(QuantizingCodec())
    assert exchange.residual_norm(0) == 0
    fresh = [each.clone() for each in parameters]
    exchange.step([tensors(seed=2)], [4], descend)
    StripedExchange(fresh, QuantizingCodec(), LocalTransport()).step(
        [tensors(seed=2)], [4], descend
    )
    assert all(torch.equal(a, b) for a, b in zip(parameters, fresh, strict=True))
    assert exchange.residual_norm(0) > 0


@all_codecs
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_wire_bytes_are_what_the_transports_count(codec: Codec, workers: int) -> None:
    def work(transport: ThreadTransport) -> tuple[int, int]:
        exchange = StripedExchange(tensors(seed=99), codec, transport)
        exchange.step([tensors(seed=transport.rank)], [4], descend)
        return transport.bytes_sent, exchange.wire_bytes()

    results = run_workers(workers, work)
    assert {wire for _, wire in results} == {sum(sent for sent, _ in results)}


def test_wire_bytes_by_hand() -> None:
    """Two workers, rows of 33 values: a float32 row takes 132 bytes, a 1-bit row 2 * 4 + 2 * 4.

    A gradient row travels once (to its owner, unless that is the sender), an update row once.
    """

    def work(transport: ThreadTransport) -> tuple[int, int]:
        parameters = [torch.zeros(7, 33)]
        headers = 2 * 2 * 4
        return tuple(
            StripedExchange(parameters, codec, transport).wire_bytes() - headers
            for codec in (Float32Codec(), QuantizingCodec())
        )

    assert run_workers(2, work)[0] == (2 * 7 * 132, 2 * 7 * 16)
