"""The Triton kernels give the words of the definition, interpreted on the CPU or on a GPU.

Whether kernels are compiled or interpreted is settled when triton is first imported, for the whole
process. So the checks run in a process of their own: this file, as a script.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from asrtrain.onebit import quantize as definition
from asrtrain.onebit.quantize import NonFiniteGradientError, QuantizedMatrix

SHAPES = [(1, 1), (3, 31), (5, 32), (4, 33), (7, 100), (2, 429), (2, 9001)]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)


def test_interpreted_kernels_agree_with_the_definition() -> None:
    _run_checks("cpu", interpret="1")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_compiled_kernels_agree_with_the_definition() -> None:
    _run_checks("cuda", interpret="0")


def _run_checks(device: str, interpret: str) -> None:
    environment = os.environ | {
        "TRITON_INTERPRET": interpret,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run(
        [sys.executable, __file__, device],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout


def _matrices() -> Iterator[tuple[str, Tensor, Tensor]]:
    """Names, gradients, and residuals that broadcast to them; float32 on the CPU."""
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw)

    for shape in SHAPES:
        yield f"normal {shape}", normal(*shape), normal(*shape)
    zero = torch.zeros(())
    yield "zero", torch.zeros(3, 50), zero
    yield "negative zero", -torch.zeros(3, 50), -zero
    yield "a row of zeros", normal(3, 50) * torch.tensor([[1.0], [0.0], [1.0]]), zero
    yield "positive", normal(4, 70).abs(), zero
    yield "negative", -normal(4, 70).abs(), zero
    yield "large", normal(4, 70) * 1e29, normal(4, 70)
    yield "few values not zero", normal(5, 90).clamp(min=2) - 2, zero
    # The least has no inverse in float32; some levels are subnormal, others round to zero.
    for scale in (1e-37, 1e-38, 1e-40, 1e-43, 1e-45):
        yield f"tiny, {scale}", normal(4, 70) * scale, normal(4, 70) * scale
        yield f"tiny, {scale}, with zeros", normal(5, 90).clamp(min=1) * scale - scale, zero
    mixed = 10 ** (normal(4, 300) * 8 - 30) * normal(4, 300).sign()
    yield "subnormal and normal", mixed, zero


def _check_agreement(device: str, bits: int) -> None:
    for name, gradient, residual in _matrices():
        residual = residual.expand_as(gradient)
        layouts = [(_rows_first, _rows_first, _rows_first)]
        if gradient.shape[1] == 33:
            layouts += [
                (_columns_first, _columns_first, _columns_first),
                (_every_other, _every_other, _every_other),
                (_columns_first, _rows_first, _every_other),
                (_rows_first, _every_other, _columns_first),
            ]
        for of_gradient, of_residual, of_out in layouts:
            _check_matrix(
                f"{name}, {bits} bits, {of_gradient.__name__}, {of_residual.__name__}",
                of_gradient(gradient, device),
                of_residual(residual, device),
                of_out(torch.ones_like(gradient), device),
                bits,
            )


def _check_matrix(case: str, gradient: Tensor, residual: Tensor, out: Tensor, bits: int) -> None:
    from asrtrain.onebit.triton_kernels import TritonKernels

    kernels = TritonKernels()
    value = gradient.cpu() + residual.cpu()
    wanted = definition.quantize(gradient.cpu(), residual.cpu().clone(), bits)
    got = kernels.quantize(gradient, residual, bits)
    on_cpu = QuantizedMatrix(got.words.cpu(), got.levels.cpu(), got.columns, got.bits)
    _require((got.columns, got.bits, got.tie) == (wanted.columns, bits, "output"), case)
    _require(got.words.device == gradient.device, case)
    torch.testing.assert_close(
        on_cpu.levels, wanted.levels, rtol=1e-6, atol=0, msg=f"levels: {case}"
    )
    _require(torch.equal(on_cpu.words, wanted.words), f"words: {case}")
    lost = value - definition.dequantize(on_cpu)
    _require(torch.equal(residual.cpu(), lost), f"residual: {case}")

    wanted_out = definition.dequantize_add_(on_cpu, out.cpu().clone())
    _require(kernels.dequantize_add_(got, out) is out, case)
    _require(torch.equal(out.cpu(), wanted_out), f"dequantized: {case}")


def _check_levels_per_column(device: str, bits: int) -> None:
    from asrtrain.onebit.triton_kernels import TritonKernels

    gradient = torch.randn(7, 40, generator=torch.Generator().manual_seed(1)).to(device)
    quantized = definition.quantize(gradient, torch.zeros_like(gradient), bits, tie="input")
    out = torch.ones(7, 40, device=device)
    TritonKernels().dequantize_add_(quantized, out)
    wanted = definition.dequantize_add_(quantized, torch.ones(7, 40, device=device))
    _require(torch.equal(out, wanted), f"levels per column, {bits} bits")


def _check_empty(device: str, bits: int) -> None:
    from asrtrain.onebit.triton_kernels import TritonKernels

    for shape in ((0, 5), (3, 0), (0, 0)):
        empty = torch.zeros(shape, device=device)
        wanted = definition.quantize(empty, empty.clone(), bits)
        quantized = TritonKernels().quantize(empty, empty.clone(), bits)
        _require(quantized.words.shape == wanted.words.shape, f"words: {shape}")
        _require(torch.equal(quantized.levels, wanted.levels), f"levels: {shape}")
        _require(TritonKernels().dequantize_add_(quantized, empty).shape == shape, "empty")


def _check_non_finite(device: str, bits: int) -> None:
    from asrtrain.onebit.triton_kernels import TritonKernels

    for bad in (float("nan"), float("inf"), -float("inf")):
        gradient = torch.ones(5, 41, device=device)
        residual = torch.full((5, 41), 0.25, device=device)
        gradient[4, 40] = bad
        try:
            TritonKernels().quantize(gradient, residual, bits)
        except NonFiniteGradientError:
            _require(torch.equal(residual, torch.full_like(residual, 0.25)), f"kept: {bad}")
        else:
            raise AssertionError(f"{bad} raised no error")


def _rows_first(matrix: Tensor, device: str) -> Tensor:
    return matrix.to(device).clone(memory_format=torch.contiguous_format)


def _columns_first(matrix: Tensor, device: str) -> Tensor:
    return _rows_first(matrix.t(), device).t()


def _every_other(matrix: Tensor, device: str) -> Tensor:
    rows, columns = matrix.shape
    spread = torch.full((2 * rows, 3 * columns), 7.0, device=device)[::2, 1::3]
    return spread.copy_(matrix)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _main(device: str) -> None:
    for bits in (1, 2, 4, 8):
        _check_agreement(device, bits)
        _check_levels_per_column(device, bits)
        _check_empty(device, bits)
        _check_non_finite(device, bits)


if __name__ == "__main__":
    _main(sys.argv[1])
