"""Cepstral mean and variance normalization with Kaldi's statistics.

Statistics are a (2, D + 1) float64 matrix: sums and the frame count, then sums of squares and 0.
"""

import numpy as np
import numpy.typing as npt

from asrtrain.io.errors import UserError

Statistics = npt.NDArray[np.float64]

VARIANCE_FLOOR = 1e-20
"""Kaldi's, for a dimension that never changes."""


def statistics_of(features: npt.NDArray[np.float32]) -> Statistics:
    """The statistics of (T, D) features."""
    values = features.astype(np.float64)
    sums, squares = values.sum(axis=0), (values * values).sum(axis=0)
    return np.array([[*sums, len(values)], [*squares, 0.0]])


def normalize(
    features: npt.NDArray[np.float32], statistics: Statistics, variances: bool
) -> npt.NDArray[np.float32]:
    """Subtract the mean and, if `variances`, divide by the standard deviation (Kaldi: apply-cmvn).

    Raises UserError if the dimensions do not fit or the statistics are of no frames.
    """
    dim, count = features.shape[1], statistics[0, -1]
    if statistics.shape != (2, dim + 1):
        raise UserError(
            f"statistics of shape {statistics.shape} do not fit features of {dim} dimensions"
        )
    if count < 1:
        raise UserError("statistics of no frames")
    mean = statistics[0, :-1] / count
    scale = np.ones(dim)
    if variances:
        variance = statistics[1, :-1] / count - mean * mean
        scale = 1 / np.sqrt(np.maximum(variance, VARIANCE_FLOOR))
    return ((features - mean) * scale).astype(np.float32)
