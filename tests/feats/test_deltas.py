"""Deltas against Kaldi's formula in float64, frame by frame."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.feats.deltas import add_deltas
from asrtrain.feats.splice import splice


def slope(values: np.ndarray, frame: int, window: int) -> np.ndarray:
    last = len(values) - 1
    total = np.zeros(values.shape[1])
    for offset in range(-window, window + 1):
        total += offset * values[min(max(frame + offset, 0), last)]
    return total / sum(offset**2 for offset in range(-window, window + 1))


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("frames", [1, 2, 9])
def test_first_order(frames: int, window: int) -> None:
    features = np.random.default_rng(0).standard_normal((frames, 3)).astype(np.float32)
    got = add_deltas(features, order=1, window=window)
    np.testing.assert_array_equal(got[:, :3], features)
    wanted = [slope(features.astype(np.float64), frame, window) for frame in range(frames)]
    np.testing.assert_allclose(got[:, 3:], wanted, atol=1e-6)


def test_second_order_filters_the_features_with_one_longer_window() -> None:
    """Kaldi convolves the windows, so that at an edge it is not the delta of the deltas there."""
    features = np.random.default_rng(0).standard_normal((12, 2)).astype(np.float32)
    got = add_deltas(features)[:, 4:]
    # (-2 -1 0 1 2)/10 with itself, by hand:
    window = np.array([4, 4, 1, -4, -10, -4, 1, 4, 4]) / 100
    padded = np.pad(features.astype(np.float64), ((4, 4), (0, 0)), mode="edge")
    wanted = [window @ padded[frame : frame + 9] for frame in range(12)]
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    inside = add_deltas(add_deltas(features, order=1)[:, 2:], order=1)[:, 2:]
    np.testing.assert_allclose(got[4:-4], inside[4:-4], atol=1e-6)


def test_of_a_line_the_delta_is_its_slope() -> None:
    line = (np.arange(20, dtype=np.float32) * 3)[:, None]
    got = add_deltas(line)[4:-4]
    np.testing.assert_allclose(got[:, 1], 3, rtol=1e-6)
    np.testing.assert_allclose(got[:, 2], 0, atol=1e-5)


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 3))
def test_splicing_repeats_the_edges(frames: int, left: int, right: int) -> None:
    features = np.arange(frames * 2, dtype=np.float32).reshape(frames, 2)
    got = splice(features, left, right)
    for frame, row in enumerate(got):
        context = range(frame - left, frame + right + 1)
        wanted = [features[min(max(each, 0), frames - 1)] for each in context]
        np.testing.assert_array_equal(row, np.concatenate(wanted))
