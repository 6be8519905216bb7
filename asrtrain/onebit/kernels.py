"""Which code quantizes on which device: compiled loops on the CPU, Triton on CUDA, else torch.

All give the same packed words, bit for bit, and the same levels but for the order of summation.
"""

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from asrtrain.onebit import quantize as definition
from asrtrain.onebit.quantize import (
    LARGEST_INVERSE,
    STEPS,
    QuantizedMatrix,
    check_finite,
    words_per_row,
)

VALUES_A_THREAD = 1 << 18
"""A matrix is split over threads into parts of at least so many values."""


class Kernels(Protocol):
    """The two operations of `asrtrain.onebit.quantize`, on matrices with levels per row."""

    def quantize(self, gradient: Tensor, residual: Tensor, bits: int = 1) -> QuantizedMatrix:
        """See `asrtrain.onebit.quantize.quantize`."""

    def dequantize_add_(self, quantized: QuantizedMatrix, out: Tensor) -> Tensor:
        """See `asrtrain.onebit.quantize.dequantize_add_`."""


class TorchKernels:
    """The definition itself."""

    def quantize(self, gradient: Tensor, residual: Tensor, bits: int = 1) -> QuantizedMatrix:
        """See `asrtrain.onebit.quantize.quantize`."""
        return definition.quantize(gradient, residual, bits)

    def dequantize_add_(self, quantized: QuantizedMatrix, out: Tensor) -> Tensor:
        """See `asrtrain.onebit.quantize.dequantize_add_`."""
        return definition.dequantize_add_(quantized, out)


class NumbaKernels:
    """Loops over rows, compiled by numba, for tensors in the CPU's memory.

    Large matrices are split by rows over as many threads as torch may use.
    """

    def quantize(self, gradient: Tensor, residual: Tensor, bits: int = 1) -> QuantizedMatrix:
        """See `asrtrain.onebit.quantize.quantize`."""
        from asrtrain.onebit import cpu_loops

        check_finite(gradient)
        rows, columns = gradient.shape
        words = torch.empty((rows, words_per_row(columns, bits)), dtype=torch.int32)
        levels = torch.empty((rows, 2))
        arrays = [each.numpy() for each in (gradient, residual, levels, words)]
        step, bound = np.float32(STEPS[bits]), np.float32(LARGEST_INVERSE)

        def quantize_part(begin: int, end: int) -> None:
            values, owed, means, packed = (each[begin:end] for each in arrays)
            if bits == 1:
                cpu_loops.quantize_rows(values, owed, means, packed)
            else:
                cpu_loops.quantize_rows_bits(values, owed, means, packed, bits, step, bound)

        _over_rows(quantize_part, rows, columns)
        return QuantizedMatrix(words, levels, columns, bits)

    def dequantize_add_(self, quantized: QuantizedMatrix, out: Tensor) -> Tensor:
        """See `asrtrain.onebit.quantize.dequantize_add_`."""
        from asrtrain.onebit import cpu_loops

        bits, step = quantized.bits, np.float32(STEPS[quantized.bits])
        arrays = [each.numpy() for each in (quantized.words, quantized.levels, out)]

        def add_part(begin: int, end: int) -> None:
            packed, means, sums = (each[begin:end] for each in arrays)
            if bits == 1:
                cpu_loops.dequantize_add_rows(packed, means, sums)
            else:
                cpu_loops.dequantize_add_rows_bits(packed, means, sums, bits, step)

        _over_rows(add_part, *out.shape)
        return out


def kernels_for(device: torch.device) -> Kernels:
    """The fastest kernels that this machine has for tensors on `device`."""
    if device.type == "cpu" and importlib.util.find_spec("numba"):
        return NumbaKernels()
    if device.type == "cuda" and importlib.util.find_spec("triton"):
        from asrtrain.onebit.triton_kernels import TritonKernels

        return TritonKernels()
    return TorchKernels()


def _over_rows(work: Callable[[int, int], None], rows: int, columns: int) -> None:
    """Call `work(begin, end)` over all rows, in threads where that pays."""
    parts = min(torch.get_num_threads(), rows, rows * columns // VALUES_A_THREAD)
    if parts <= 1:
        work(0, rows)
        return
    bounds = [rows * part // parts for part in range(parts + 1)]
    list(_threads().map(work, bounds[:-1], bounds[1:]))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="quantize")
