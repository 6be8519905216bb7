"""Time derivatives of features, as Kaldi's add-deltas.

Shapes: T frames, D feature dims.
"""

import numpy as np
import numpy.typing as npt

Features = npt.NDArray[np.float32]


def add_deltas(features: Features, order: int = 2, window: int = 2) -> Features:
    """(T, D) to (T, D * (order + 1)): the features, their deltas, the deltas' deltas and so on.

    A delta is the regression slope over `window` frames to either side. As in Kaldi's
    feature-functions.cc, one filter an order is applied to the features themselves, whose first
    and last frame are repeated past the edges.
    """
    blocks = [features]
    kernel = np.ones(1)
    slope = np.arange(-window, window + 1) / sum(each * each for each in range(-window, window + 1))
    for _ in range(order):
        kernel = np.convolve(kernel, slope)
        blocks.append(_correlate(features, kernel))
    return np.concatenate(blocks, axis=1)


def _correlate(features: Features, kernel: npt.NDArray[np.float64]) -> Features:
    reach = len(kernel) // 2
    padded = np.pad(features, ((reach, reach), (0, 0)), mode="edge").astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel), axis=0)
    return (windows @ kernel).astype(np.float32)
