"""One bit a value (or 2, 4, 8) with error feedback: the method's definition, in plain torch.

Shapes: R rows (output units), C columns (inputs of a unit), W words a row.

With V = gradient + residual, a value becomes the bit `V >= 0`. Each row has two reconstruction
levels, the means of its values on either side of the threshold, which make the squared error
least. What quantization loses, V - dequantized, stays in the residual and is part of the next V,
so that over time nothing is lost (Seide et al. 2014, section 3).

With more bits a value, the first is still the sign, and the others say how far it lies from the
threshold, in equal steps whose size is a fixed multiple of the mean of the row's side (`STEPS`).
With one bit this is the paper's rule.

Values are packed in planes: with V = 32 / bits values a word and W = ceil(C / V) words a row, slot
k of word w stands for column k * W + w, which lets one vector instruction work on neighbouring
columns (CNTK packs likewise). A row's last slots, past column C, are zero.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

WORD_BITS = 32

STEPS = {1: 2.0, 2: 1.5378, 4: 0.65195, 8: 0.07756}
"""By bits: width of a step over the mean magnitude, such that the mean squared error of values
with a Laplace distribution is least. With one bit the middle of the only step is the mean."""

LARGEST = 1e30
"""A gradient value beyond this counts as infinite: sums of a row would not be safe."""


LARGEST_INVERSE = 3e38
"""Bound of one over a step, such that 0 times it is 0 even where a level is subnormal."""


class NonFiniteGradientError(ArithmeticError):
    """A value to be quantized is NaN or infinite; no residual was changed."""


@dataclass(frozen=True)
class QuantizedMatrix:
    """A matrix at a few bits a value."""

    words: Tensor
    """(R, W) int32: the packed values."""
    levels: Tensor
    """(R, 2) float32: the mean of the row's values below the threshold, and of the others."""
    columns: int
    """C: how many columns the matrix has."""
    bits: int = 1
    """Bits a value: 1, 2, 4 or 8."""
    tie: str = "output"
    """output: levels per row. input: per column; R then counts the columns of the matrix."""


def words_per_row(columns: int, bits: int = 1) -> int:
    """W: how many 32-bit words one row takes."""
    return -(-columns * bits // WORD_BITS)


def quantize(
    gradient: Tensor, residual: Tensor, bits: int = 1, tie: str = "output"
) -> QuantizedMatrix:
    """Quantize `gradient + residual` and leave in `residual` what that loses.

    Both are (R, C) float32 of any strides; a vector is passed as one row. `bits` is 1, 2, 4 or 8;
    `tie` is "output" (levels per row: per output unit of a torch Linear) or "input" (per column, as
    CNTK does).

    Raises NonFiniteGradientError, before the residual changes, if a value is NaN or infinite.
    """
    if tie == "input":
        turned = quantize(gradient.t(), residual.t(), bits)
        return QuantizedMatrix(turned.words, turned.levels, turned.columns, bits, tie)
    check_finite(gradient)
    value = gradient + residual
    levels = _levels(value)
    codes = _codes(value, levels, bits)
    residual.copy_(value - _reconstruct(codes, levels, bits))
    return QuantizedMatrix(pack(codes, bits), levels, value.shape[1], bits)


def dequantize(quantized: QuantizedMatrix) -> Tensor:
    """The (R, C) float32 matrix that the codes and levels stand for."""
    codes = unpack(quantized.words, quantized.columns, quantized.bits)
    values = _reconstruct(codes, quantized.levels, quantized.bits)
    return values if quantized.tie == "output" else values.t()


def dequantize_add_(quantized: QuantizedMatrix, out: Tensor) -> Tensor:
    """Add the dequantized matrix to `out` (R, C) in place; return `out`."""
    return out.add_(dequantize(quantized))


def check_finite(gradient: Tensor) -> None:
    """Raise NonFiniteGradientError if a value is NaN, infinite or beyond `LARGEST`."""
    if not is_finite(gradient):
        raise NonFiniteGradientError("NaN or infinity in the values to be quantized")


def is_finite(gradient: Tensor) -> bool:
    """Whether no value is NaN, infinite or beyond `LARGEST`."""
    if not gradient.numel():
        return True
    least, largest = torch.aminmax(gradient)
    return float(least) >= -LARGEST and float(largest) <= LARGEST  # false for a NaN, too


def pack(codes: Tensor, bits: int = 1) -> Tensor:
    """(R, C) codes from 0 to 2^bits - 1 to (R, W) int32, in planes."""
    rows, columns = codes.shape
    slots, words = WORD_BITS // bits, words_per_row(columns, bits)
    padded = torch.nn.functional.pad(codes, (0, words * slots - columns))
    planes = padded.view(rows, slots, words).to(torch.int32)
    return (planes << _shifts(bits, codes.device)).sum(dim=1, dtype=torch.int32)


def unpack(words: Tensor, columns: int, bits: int = 1) -> Tensor:
    """(R, W) int32 to (R, `columns`) int32 codes: the inverse of `pack`."""
    shifted = words.unsqueeze(1) >> _shifts(bits, words.device)
    planes = torch.bitwise_and(shifted, 2**bits - 1)
    return planes.reshape(words.shape[0], -1)[:, :columns]


def _levels(value: Tensor) -> Tensor:
    # In float64, so that the order of summation all but never shows in a float32 level: with more
    # than one bit, a value's code depends on it.
    above = value >= 0
    above_count = above.sum(dim=1)
    below_count = value.shape[1] - above_count
    above_sum = value.clamp(min=0).sum(dim=1, dtype=torch.float64)
    below_sum = value.clamp(max=0).sum(dim=1, dtype=torch.float64)
    return torch.stack(
        (below_sum / below_count.clamp(min=1), above_sum / above_count.clamp(min=1)), dim=1
    ).float()


def _codes(value: Tensor, levels: Tensor, bits: int) -> Tensor:
    """Codes (R, C): the sign as the highest bit, below it the number of the step."""
    above = value >= 0
    if bits == 1:
        return above.to(torch.int32)
    half = 2 ** (bits - 1)
    # Finite even for a level of zero or a subnormal one, so that 0 times it is 0.
    inverse = (1 / (levels * STEPS[bits])).nan_to_num().clamp(-LARGEST_INVERSE, LARGEST_INVERSE)
    steps = value * torch.where(above, inverse[:, 1:], inverse[:, :1])
    return torch.add(steps.clamp(max=half - 1).to(torch.int32), above, alpha=half)


def _reconstruct(codes: Tensor, levels: Tensor, bits: int) -> Tensor:
    half = 2 ** (bits - 1)
    level = torch.where(codes >= half, levels[:, 1:], levels[:, :1])
    if bits == 1:
        return level
    return torch.mul(level * STEPS[bits], (codes & (half - 1)) + 0.5)


def _shifts(bits: int, device: torch.device) -> Tensor:
    return torch.arange(0, WORD_BITS, bits, dtype=torch.int32, device=device).view(-1, 1)
