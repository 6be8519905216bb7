"""The quantizer's inner loops for the CPU, compiled by numba; see `quantize.py` for what they do.

R rows, C columns, W = ceil(C / 32) words a row; bit k of word w is column k * W + w, so that each
plane k is a run of neighbouring columns, which the compiler turns into vector instructions.
"""

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.int32]


# Summation in any order lets the compiler add several columns at once. (Under this flag numba's
# own isfinite() is folded to True: callers look at the levels.)
@numba.njit(cache=True, nogil=True, fastmath={"reassoc"})
def find_levels(gradient: Floats, residual: Floats, levels: Floats) -> None:
    """Fill `levels` (R, 2) for gradient + residual (R, C).

    If a value of a row is not finite, one of its levels is not.
    """
    rows, columns = gradient.shape
    zero, one = np.float32(0), np.float32(1)
    for row in range(rows):
        below_sum, above_sum, above_count = zero, zero, zero
        for column in range(columns):
            value = gradient[row, column] + residual[row, column]
            above = value >= zero
            above_sum += value if above else zero
            below_sum += zero if above else value  # a NaN is not above, so it shows here
            above_count += one if above else zero  # float32 counts to 2^24 exactly
        levels[row, 0] = below_sum / max(np.float32(columns) - above_count, one)
        levels[row, 1] = above_sum / max(above_count, one)


@numba.njit(cache=True, nogil=True)
def quantize_rows(gradient: Floats, residual: Floats, levels: Floats, words: Words) -> None:
    """Pack the bits of gradient + residual into `words` (R, W); update `residual` (R, C)."""
    rows, columns = gradient.shape
    width = words.shape[1]
    for row in range(rows):
        below, above = levels[row, 0], levels[row, 1]
        words[row, :] = 0
        for bit in range(32):
            first = bit * width
            plane = np.int32(np.uint32(1) << np.uint32(bit))
            for word in range(min(width, columns - first)):
                value = gradient[row, first + word] + residual[row, first + word]
                chosen = value >= np.float32(0)
                words[row, word] |= plane if chosen else np.int32(0)
                residual[row, first + word] = value - (above if chosen else below)


@numba.njit(cache=True, nogil=True)
def dequantize_add_rows(words: Words, levels: Floats, out: Floats) -> None:
    """Add to `out` (R, C) the levels (R, 2) that the bits of `words` (R, W) choose."""
    rows, columns = out.shape
    width = words.shape[1]
    for row in range(rows):
        below, above = levels[row, 0], levels[row, 1]
        for bit in range(32):
            first = bit * width
            plane = np.int32(np.uint32(1) << np.uint32(bit))
            for word in range(min(width, columns - first)):
                chosen = (words[row, word] & plane) != 0
                out[row, first + word] += above if chosen else below
