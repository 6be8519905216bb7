"""CMVN: after it a speaker's features have mean 0 and variance 1; Kaldi's layout of statistics."""

import numpy as np
import pytest

from asrtrain.feats.statistics import normalize, statistics_of
from asrtrain.io.errors import UserError


def features(frames: int = 50) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal((frames, 3)) * 5 + 7).astype(np.float32)


def test_layout() -> None:
    values = np.array([[1, 2], [3, 5]], np.float32)
    np.testing.assert_array_equal(statistics_of(values), [[4, 7, 2], [10, 29, 0]])


def test_the_sum_of_two_is_of_both() -> None:
    values = features()
    together = statistics_of(values[:20]) + statistics_of(values[20:])
    np.testing.assert_allclose(together, statistics_of(values))


def test_mean_and_variance() -> None:
    got = normalize(features(), statistics_of(features()), variances=True)
    np.testing.assert_allclose(got.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(got.std(axis=0), 1, rtol=1e-5)
    centred = normalize(features(), statistics_of(features()), variances=False)
    np.testing.assert_allclose(centred, features() - features().mean(axis=0), atol=1e-5)


def test_a_dimension_that_never_changes_stays_finite() -> None:
    constant = np.full((9, 2), 3, np.float32)
    assert np.isfinite(normalize(constant, statistics_of(constant), variances=True)).all()


def test_statistics_that_do_not_fit() -> None:
    with pytest.raises(UserError, match="do not fit features of 3 dimensions"):
        normalize(features(), np.zeros((2, 3)), variances=True)
    with pytest.raises(UserError, match="of no frames"):
        normalize(features(), np.zeros((2, 4)), variances=True)
