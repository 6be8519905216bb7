"""One bit a value with error feedback: the method's definition, in plain torch.

Shapes: R rows (output units), C columns (inputs of a unit), W = ceil(C / 32) words a row.

With V = gradient + residual, a value becomes the bit `V >= 0`. Each row has two reconstruction
levels, the means of its values on either side of the threshold, which make the squared error
least. What quantization loses, V - dequantized, stays in the residual and is part of the next V,
so that over time nothing is lost (Seide et al. 2014, section 3).

Bits are packed in planes: bit k of word w stands for column k * W + w, which lets one vector
instruction work on neighbouring columns (CNTK packs likewise). A row's last bits, past column C,
are zero.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

WORD_BITS = 32


class NonFiniteGradientError(ArithmeticError):
    """A value to be quantized is NaN or infinite; no residual was changed."""


@dataclass(frozen=True)
class QuantizedMatrix:
    """A matrix at one bit a value."""

    words: Tensor
    """(R, W) int32: the packed bits."""
    levels: Tensor
    """(R, 2) float32: what a bit of 0 and a bit of 1 stand for in that row."""
    columns: int
    """C: how many columns the matrix has."""


def words_per_row(columns: int) -> int:
    """W: how many 32-bit words the bits of one row take."""
    return -(-columns // WORD_BITS)


def quantize(gradient: Tensor, residual: Tensor) -> QuantizedMatrix:
    """Quantize `gradient + residual` and leave in `residual` what that loses.

    Both are (R, C) float32 of any strides; a vector is passed as one row.

    Raises NonFiniteGradientError, before the residual changes, if a value is NaN or infinite.
    """
    value = gradient + residual
    above_sum = value.clamp(min=0).sum(dim=1)
    below_sum = value.clamp(max=0).sum(dim=1)
    # A NaN or an infinity makes its row's sum one too, so R sums tell of R * C values.
    if not bool(torch.isfinite(above_sum - below_sum).all()):
        raise NonFiniteGradientError("NaN or infinity in the values to be quantized")
    bits = value >= 0
    above_count = bits.sum(dim=1)
    below_count = value.shape[1] - above_count
    levels = torch.stack(
        (below_sum / below_count.clamp(min=1), above_sum / above_count.clamp(min=1)), dim=1
    )
    torch.sub(value, torch.where(bits, levels[:, 1:], levels[:, :1]), out=value)
    residual.copy_(value)
    return QuantizedMatrix(pack(bits), levels, value.shape[1])


def dequantize(quantized: QuantizedMatrix) -> Tensor:
    """The (R, C) float32 matrix of levels that the bits choose."""
    bits = unpack(quantized.words, quantized.columns)
    return torch.where(bits, quantized.levels[:, 1:], quantized.levels[:, :1])


def dequantize_add_(quantized: QuantizedMatrix, out: Tensor) -> Tensor:
    """Add the dequantized matrix to `out` (R, C) in place; return `out`."""
    return out.add_(dequantize(quantized))


def pack(bits: Tensor) -> Tensor:
    """(R, C) bool to (R, W) int32, in planes."""
    rows, columns = bits.shape
    words = words_per_row(columns)
    padded = torch.nn.functional.pad(bits, (0, words * WORD_BITS - columns))
    planes = padded.view(rows, WORD_BITS, words).to(torch.int32)
    return (planes << _bit_numbers(bits.device)).sum(dim=1, dtype=torch.int32)


def unpack(words: Tensor, columns: int) -> Tensor:
    """(R, W) int32 to (R, `columns`) bool: the inverse of `pack`."""
    planes = (words.unsqueeze(1) >> _bit_numbers(words.device)) & 1
    return planes.view(words.shape[0], -1)[:, :columns].to(torch.bool)


def _bit_numbers(device: torch.device) -> Tensor:
    return torch.arange(WORD_BITS, dtype=torch.int32, device=device).view(WORD_BITS, 1)
