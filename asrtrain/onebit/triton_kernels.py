"""Quantization on a GPU, in Triton: one program a row, the same words as the definition.

Importing this module needs triton. With TRITON_INTERPRET=1 in the environment before triton is
first imported, the kernels run in Triton's interpreter, on tensors in the CPU's memory.

A program reads its row twice. The first pass finds the levels. The second works on tiles of some
slots of some neighbouring words: slot k of word w stands for column k * W + w, so that neighbours
in a tile are neighbours in memory, too.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from asrtrain.onebit.quantize import (
    LARGEST_INVERSE,
    STEPS,
    WORD_BITS,
    QuantizedMatrix,
    check_finite,
    words_per_row,
)

WARPS = 4
THREADS = 32 * WARPS
"""Threads of a program."""

TILE = 1024
"""Values that a program works on at a time."""

MOST_WORDS = 256
"""Words that a tile spans at most."""


class TritonKernels:
    """The two operations of `asrtrain.onebit.quantize`, for float32 tensors of any strides."""

    def quantize(self, gradient: Tensor, residual: Tensor, bits: int = 1) -> QuantizedMatrix:
        """See `asrtrain.onebit.quantize.quantize`."""
        check_finite(gradient)
        rows, columns = gradient.shape
        words_count = words_per_row(columns, bits)
        words = gradient.new_empty((rows, words_count), dtype=torch.int32)
        levels = gradient.new_empty((rows, 2))
        if rows:
            slots_tile, words_tile = _tile(words_count, bits)
            with torch.cuda.device_of(gradient):  # type: ignore[no-untyped-call]
                _quantize_row[(rows,)](
                    gradient,
                    *gradient.stride(),
                    residual,
                    *residual.stride(),
                    words,
                    levels,
                    columns,
                    words_count,
                    BITS=bits,
                    STEP=STEPS[bits],
                    LARGEST_INVERSE=LARGEST_INVERSE,
                    COLUMNS_TILE=TILE,
                    SLOTS_TILE=slots_tile,
                    WORDS_TILE=words_tile,
                    num_warps=WARPS,
                    enable_fp_fusion=False,  # a fused multiply-add rounds otherwise
                )
        return QuantizedMatrix(words, levels, columns, bits)

    def dequantize_add_(self, quantized: QuantizedMatrix, out: Tensor) -> Tensor:
        """See `asrtrain.onebit.quantize.dequantize_add_`."""
        bits = quantized.bits
        target = out.t() if quantized.tie == "input" else out
        rows, words_count = quantized.words.shape
        if rows:
            slots_tile, words_tile = _tile(words_count, bits)
            with torch.cuda.device_of(out):  # type: ignore[no-untyped-call]
                _dequantize_add_row[(rows,)](
                    quantized.words.contiguous(),
                    quantized.levels.contiguous(),
                    target,
                    *target.stride(),
                    quantized.columns,
                    words_count,
                    BITS=bits,
                    STEP=STEPS[bits],
                    SLOTS_TILE=slots_tile,
                    WORDS_TILE=words_tile,
                    num_warps=WARPS,
                    enable_fp_fusion=False,
                )
        return out


def _tile(words_count: int, bits: int) -> tuple[int, int]:
    """How many slots and words a tile spans: powers of two.

    No fewer values than threads: of two threads with one value, the second might read a residual
    that the first has changed.
    """
    slots = WORD_BITS // bits
    words_tile = THREADS // slots
    while words_tile < min(words_count, MOST_WORDS):
        words_tile *= 2
    return min(slots, TILE // words_tile), words_tile


@triton.jit  # type: ignore[untyped-decorator]
def _quantize_row(
    gradient: tl.tensor,
    gradient_row_stride: tl.tensor,
    gradient_column_stride: tl.tensor,
    residual: tl.tensor,
    residual_row_stride: tl.tensor,
    residual_column_stride: tl.tensor,
    words: tl.tensor,
    levels: tl.tensor,
    columns: tl.tensor,
    words_count: tl.tensor,
    BITS: tl.constexpr,
    STEP: tl.constexpr,
    LARGEST_INVERSE: tl.constexpr,
    COLUMNS_TILE: tl.constexpr,
    SLOTS_TILE: tl.constexpr,
    WORDS_TILE: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    gradient += row * gradient_row_stride
    residual += row * residual_row_stride

    below_level, above_level = _find_levels(
        gradient, gradient_column_stride, residual, residual_column_stride, columns, COLUMNS_TILE
    )
    tl.store(levels + row * 2, below_level)
    tl.store(levels + row * 2 + 1, above_level)

    HALF: tl.constexpr = 1 << (BITS - 1)
    SLOTS: tl.constexpr = 32 // BITS
    below_step = below_level * STEP
    above_step = above_level * STEP
    below_inverse = _bounded_inverse(below_step, LARGEST_INVERSE)
    above_inverse = _bounded_inverse(above_step, LARGEST_INVERSE)
    for start in range(0, words_count, WORDS_TILE):
        word = start + tl.arange(0, WORDS_TILE)
        packed = tl.zeros((WORDS_TILE,), tl.int32)
        for first in range(0, SLOTS, SLOTS_TILE):
            slot = first + tl.arange(0, SLOTS_TILE)
            column = slot[:, None] * words_count + word[None, :]
            inside = (column < columns) & (word < words_count)[None, :]
            column = column.to(tl.int64)
            owed = residual + column * residual_column_stride
            value = tl.load(gradient + column * gradient_column_stride, inside, 0.0)
            value += tl.load(owed, inside, 0.0)
            above = value >= 0
            if BITS == 1:
                code = above.to(tl.int32)
                meant = tl.where(above, above_level, below_level)
            else:
                steps = value * tl.where(above, above_inverse, below_inverse)
                step = tl.minimum(steps, HALF - 1.0).to(tl.int32)
                code = above.to(tl.int32) * HALF + step
                meant = tl.where(above, above_step, below_step) * (step.to(tl.float32) + 0.5)
            tl.store(owed, value - meant, inside)
            # Each slot has bits of its own, so that a sum unites them.
            packed += tl.sum(tl.where(inside, code, 0) << (slot * BITS)[:, None], axis=0)
        tl.store(words + row * words_count + word, packed, word < words_count)


@triton.jit  # type: ignore[untyped-decorator]
def _find_levels(
    gradient: tl.tensor,
    gradient_column_stride: tl.tensor,
    residual: tl.tensor,
    residual_column_stride: tl.tensor,
    columns: tl.tensor,
    COLUMNS_TILE: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    # In float64, like the definition: with more than one bit, a code depends on its level.
    below_sums = tl.zeros((COLUMNS_TILE,), tl.float64)
    above_sums = tl.zeros((COLUMNS_TILE,), tl.float64)
    above_counts = tl.zeros((COLUMNS_TILE,), tl.int32)
    for start in range(0, columns, COLUMNS_TILE):
        column = start + tl.arange(0, COLUMNS_TILE)
        inside = column < columns
        column = column.to(tl.int64)
        value = tl.load(gradient + column * gradient_column_stride, inside, 0.0)
        value += tl.load(residual + column * residual_column_stride, inside, 0.0)
        above = value >= 0
        below_sums += tl.where(above, 0.0, value).to(tl.float64)
        above_sums += tl.where(above, value, 0.0).to(tl.float64)
        above_counts += (above & inside).to(tl.int32)
    above_count = tl.sum(above_counts)
    below_count = columns - above_count
    below_level = tl.sum(below_sums) / tl.maximum(below_count, 1).to(tl.float64)
    above_level = tl.sum(above_sums) / tl.maximum(above_count, 1).to(tl.float64)
    return below_level.to(tl.float32), above_level.to(tl.float32)


@triton.jit  # type: ignore[untyped-decorator]
def _bounded_inverse(step: tl.tensor, LARGEST: tl.constexpr) -> tl.tensor:
    # `/` would be less exact than in the definition.
    return tl.minimum(tl.maximum(tl.div_rn(1.0, step), -LARGEST), LARGEST)


@triton.jit  # type: ignore[untyped-decorator]
def _dequantize_add_row(
    words: tl.tensor,
    levels: tl.tensor,
    out: tl.tensor,
    out_row_stride: tl.tensor,
    out_column_stride: tl.tensor,
    columns: tl.tensor,
    words_count: tl.tensor,
    BITS: tl.constexpr,
    STEP: tl.constexpr,
    SLOTS_TILE: tl.constexpr,
    WORDS_TILE: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    out += row * out_row_stride
    below_level = tl.load(levels + row * 2)
    above_level = tl.load(levels + row * 2 + 1)

    HALF: tl.constexpr = 1 << (BITS - 1)
    SLOTS: tl.constexpr = 32 // BITS
    for start in range(0, words_count, WORDS_TILE):
        word = start + tl.arange(0, WORDS_TILE)
        packed = tl.load(words + row * words_count + word, word < words_count, 0)
        for first in range(0, SLOTS, SLOTS_TILE):
            slot = first + tl.arange(0, SLOTS_TILE)
            column = slot[:, None] * words_count + word[None, :]
            inside = (column < columns) & (word < words_count)[None, :]
            place = out + column.to(tl.int64) * out_column_stride
            code = (packed[None, :] >> (slot * BITS)[:, None]) & (2 * HALF - 1)
            meant = tl.where(code >= HALF, above_level, below_level)
            if BITS > 1:
                meant = meant * STEP * ((code & (HALF - 1)).to(tl.float32) + 0.5)
            tl.store(place, tl.load(place, inside, 0.0) + meant, inside)
