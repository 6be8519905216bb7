"""Which code quantizes on which device: plain torch anywhere, compiled loops on the CPU.

All give the same packed words, bit for bit, and the same levels but for the order of summation.
"""

import importlib.util
from typing import Protocol

import torch
from torch import Tensor

from asrtrain.onebit import quantize as definition
from asrtrain.onebit.quantize import NonFiniteGradientError, QuantizedMatrix, words_per_row


class Kernels(Protocol):
    """The two operations of `asrtrain.onebit.quantize`."""

    def quantize(self, gradient: Tensor, residual: Tensor) -> QuantizedMatrix:
        """See `asrtrain.onebit.quantize.quantize`."""

    def dequantize_add_(self, quantized: QuantizedMatrix, out: Tensor) -> Tensor:
        """See `asrtrain.onebit.quantize.dequantize_add_`."""


class TorchKernels:
    """The definition itself."""

    def quantize(self, gradient: Tensor, residual: Tensor) -> QuantizedMatrix:
        """See `asrtrain.onebit.quantize.quantize`."""
        return definition.quantize(gradient, residual)

    def dequantize_add_(self, quantized: QuantizedMatrix, out: Tensor) -> Tensor:
        """See `asrtrain.onebit.quantize.dequantize_add_`."""
        return definition.dequantize_add_(quantized, out)


class NumbaKernels:
    """Loops over rows, compiled by numba, for tensors in the CPU's memory."""

    def quantize(self, gradient: Tensor, residual: Tensor) -> QuantizedMatrix:
        """See `asrtrain.onebit.quantize.quantize`."""
        from asrtrain.onebit import cpu_loops

        rows, columns = gradient.shape
        words = torch.empty((rows, words_per_row(columns)), dtype=torch.int32)
        levels = torch.empty((rows, 2))
        values, owed = gradient.contiguous().numpy(), residual.numpy()
        cpu_loops.find_levels(values, owed, levels.numpy())
        if not bool(torch.isfinite(levels).all()):
            raise NonFiniteGradientError("NaN or infinity in the values to be quantized")
        cpu_loops.quantize_rows(values, owed, levels.numpy(), words.numpy())
        return QuantizedMatrix(words, levels, columns)

    def dequantize_add_(self, quantized: QuantizedMatrix, out: Tensor) -> Tensor:
        """See `asrtrain.onebit.quantize.dequantize_add_`."""
        from asrtrain.onebit import cpu_loops

        words, levels = quantized.words.contiguous(), quantized.levels.contiguous()
        cpu_loops.dequantize_add_rows(words.numpy(), levels.numpy(), out.numpy())
        return out


def kernels_for(device: torch.device) -> Kernels:
    """The fastest kernels that this machine has for tensors on `device`."""
    if device.type == "cpu" and importlib.util.find_spec("numba"):
        return NumbaKernels()
    return TorchKernels()
