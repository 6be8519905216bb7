"""The quantizer's inner loops for the CPU, compiled by numba; see `quantize.py` for what they do.

R rows, C columns, W words a row. With 32 / bits slots a word, slot k of word w is column k * W + w,
so that each plane k is a run of neighbouring columns, which the compiler turns into vector
instructions. A row is read from memory once: its second pass finds it in the cache.
"""

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.int32]


# Summation in any order lets the compiler add several columns at once. (Under this flag numba's
# own isfinite() is folded to True: callers check before.)
@numba.njit(nogil=True, fastmath={"reassoc"})
def _row_levels(gradient, residual):  # type: ignore[no-untyped-def]
    zero, one = np.float32(0), np.float32(1)
    below_sum, above_sum, above_count = zero, zero, zero
    for column in range(len(gradient)):
        value = gradient[column] + residual[column]
        above = value >= zero
        above_sum += value if above else zero
        below_sum += zero if above else value
        above_count += one if above else zero  # float32 counts to 2^24 exactly
    below_count = np.float32(len(gradient)) - above_count
    return below_sum / max(below_count, one), above_sum / max(above_count, one)


@numba.njit(nogil=True, fastmath={"reassoc"})
def _row_levels_float64(gradient, residual):  # type: ignore[no-untyped-def]
    below_sum, above_sum, above_count = 0.0, 0.0, 0.0
    for column in range(len(gradient)):
        value = gradient[column] + residual[column]
        above = value >= np.float32(0)
        above_sum += np.float64(value) if above else 0.0
        below_sum += 0.0 if above else np.float64(value)
        above_count += 1.0 if above else 0.0
    below_count = len(gradient) - above_count
    return np.float32(below_sum / max(below_count, 1.0)), np.float32(
        above_sum / max(above_count, 1.0)
    )


@numba.njit(cache=True, nogil=True)
def quantize_rows(gradient: Floats, residual: Floats, levels: Floats, words: Words) -> None:
    """One bit a value: fill `levels` (R, 2) and `words` (R, W); update `residual` (R, C)."""
    rows, columns = gradient.shape
    width = words.shape[1]
    for row in range(rows):
        values, owed, packed = gradient[row], residual[row], words[row]
        below, above = _row_levels(values, owed)
        levels[row, 0], levels[row, 1] = below, above
        packed[:] = 0
        for bit in range(32):
            first = bit * width
            plane = np.int32(np.uint32(1) << np.uint32(bit))
            for word in range(min(width, columns - first)):
                value = values[first + word] + owed[first + word]
                chosen = value >= np.float32(0)
                packed[word] |= plane if chosen else np.int32(0)
                owed[first + word] = value - (above if chosen else below)


@numba.njit(cache=True, nogil=True)
def quantize_rows_bits(
    gradient: Floats,
    residual: Floats,
    levels: Floats,
    words: Words,
    bits: int,
    step: np.float32,
    largest_inverse: np.float32,
) -> None:
    """2, 4 or 8 bits a value: as `quantize_rows`; `step` is the step over the level."""
    rows, columns = gradient.shape
    width, half = words.shape[1], 1 << (bits - 1)
    last, middle = np.float32(half - 1), np.float32(0.5)
    for row in range(rows):
        values, owed, packed = gradient[row], residual[row], words[row]
        below, above = _row_levels_float64(values, owed)
        levels[row, 0], levels[row, 1] = below, above
        below_step, above_step = below * step, above * step
        below_inverse = above_inverse = largest_inverse
        if below_step != 0:
            below_inverse = max(np.float32(1) / below_step, -largest_inverse)
        if above_step != 0:
            above_inverse = min(np.float32(1) / above_step, largest_inverse)
        packed[:] = 0
        for slot in range(32 // bits):
            first = slot * width
            for word in range(min(width, columns - first)):
                value = values[first + word] + owed[first + word]
                chosen = value >= np.float32(0)
                steps = value * (above_inverse if chosen else below_inverse)
                number = np.int32(min(steps, last))
                code = (half if chosen else 0) + number
                packed[word] |= np.int32(np.uint32(code) << np.uint32(slot * bits))
                middle_of_step = np.float32(number) + middle
                owed[first + word] = value - (above_step if chosen else below_step) * middle_of_step


@numba.njit(cache=True, nogil=True)
def dequantize_add_rows(words: Words, levels: Floats, out: Floats) -> None:
    """Add to `out` (R, C) the levels (R, 2) that the bits of `words` (R, W) choose."""
    rows, columns = out.shape
    width = words.shape[1]
    for row in range(rows):
        sums, packed = out[row], words[row]
        below, above = levels[row, 0], levels[row, 1]
        for bit in range(32):
            first = bit * width
            plane = np.int32(np.uint32(1) << np.uint32(bit))
            for word in range(min(width, columns - first)):
                sums[first + word] += above if (packed[word] & plane) != 0 else below


@numba.njit(cache=True, nogil=True)
def dequantize_add_rows_bits(
    words: Words, levels: Floats, out: Floats, bits: int, step: np.float32
) -> None:
    """The same for 2, 4 or 8 bits a value."""
    rows, columns = out.shape
    width, half = words.shape[1], 1 << (bits - 1)
    mask = np.int32((1 << bits) - 1)
    for row in range(rows):
        sums, packed = out[row], words[row]
        below_step, above_step = levels[row, 0] * step, levels[row, 1] * step
        for slot in range(32 // bits):
            first = slot * width
            for word in range(min(width, columns - first)):
                code = (packed[word] >> np.int32(slot * bits)) & mask
                middle = np.float32(code & (half - 1)) + np.float32(0.5)
                sums[first + word] += (above_step if code >= half else below_step) * middle
