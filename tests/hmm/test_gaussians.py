"""Mixtures against Kaldi's own code and against sums written out in float64."""

import math

import kaldi_hmm_gmm as khg
import numpy as np
import pytest

from asrtrain.hmm.gaussians import Estimation, Mixtures, flat_mixtures

SIZES, DIM = [2, 1, 3], 4


def mixtures(seed: int = 0) -> Mixtures:
    generator = np.random.default_rng(seed)
    weights = np.concatenate([generator.dirichlet(np.ones(size)) for size in SIZES])
    gaussians = sum(SIZES)
    return Mixtures(
        np.array(SIZES),
        weights,
        generator.standard_normal((gaussians, DIM)),
        generator.uniform(0.5, 2, (gaussians, DIM)),
    )


def features(frames: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((frames, DIM)).astype(np.float32)


def kaldis(own: Mixtures) -> list[khg.DiagGmm]:
    gmms = []
    for start, size in zip(own.starts, own.sizes, strict=True):
        part = slice(start, start + size)
        gmm = khg.DiagGmm(int(size), DIM)
        gmm.set_weights(own.weights[part].astype(np.float32))
        gmm.set_invvars((1 / own.variances[part]).astype(np.float32))
        gmm.set_means(own.means[part].astype(np.float32))
        gmm.compute_gconsts()
        gmms.append(gmm)
    return gmms


def test_log_likelihoods_are_kaldis() -> None:
    own, frames = mixtures(), features(20)
    got = own.log_likelihoods(frames)
    wanted = [[gmm.log_likelihood(frame) for gmm in kaldis(own)] for frame in frames]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_statistics_written_out() -> None:
    own, frames = mixtures(), features(30)
    pdfs = np.random.default_rng(2).integers(0, 3, 30)
    got = own.accumulate(frames, pdfs)
    occupancy = np.zeros(6)
    sums, squares = np.zeros((6, DIM)), np.zeros((6, DIM))
    total = 0.0
    for frame, pdf in zip(frames.astype(np.float64), pdfs, strict=True):
        parts = range(own.starts[pdf], own.starts[pdf] + own.sizes[pdf])
        densities = [
            own.weights[g]
            * math.prod(
                math.exp(-((x - m) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v)
                for x, m, v in zip(frame, own.means[g], own.variances[g], strict=True)
            )
            for g in parts
        ]
        total += math.log(sum(densities))
        for g, density in zip(parts, densities, strict=True):
            posterior = density / sum(densities)
            occupancy[g] += posterior
            sums[g] += posterior * frame
            squares[g] += posterior * frame**2
    np.testing.assert_allclose(got.occupancy, occupancy, rtol=1e-9)
    np.testing.assert_allclose(got.sums, sums, rtol=1e-9)
    np.testing.assert_allclose(got.squares, squares, rtol=1e-9)
    assert got.log_likelihood == pytest.approx(total)
    assert got.frames == 30


def test_statistics_of_batches_add_up() -> None:
    own, frames = mixtures(), features(40)
    pdfs = np.random.default_rng(2).integers(0, 3, 40)
    whole = own.accumulate(frames, pdfs)
    parts = own.accumulate(frames[:15], pdfs[:15]) + own.accumulate(frames[15:], pdfs[15:])
    np.testing.assert_allclose(parts.sums, whole.sums)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood)


def test_each_estimation_raises_the_likelihood() -> None:
    own, frames = mixtures(), features(600)
    pdfs = np.random.default_rng(2).integers(0, 3, 600)
    limits = Estimation(min_occupancy=0, min_variance=1e-6)
    last = -np.inf
    for _ in range(6):
        statistics = own.accumulate(frames, pdfs)
        assert statistics.log_likelihood > last
        last = statistics.log_likelihood
        own = own.estimate(statistics, limits)


def test_of_one_gaussian_the_estimate_is_mean_and_variance() -> None:
    frames = features(50) * 2 + 1
    flat = flat_mixtures([frames[:20], frames[20:]], 2)
    np.testing.assert_allclose(flat.means, np.tile(frames.mean(0), (2, 1)), rtol=1e-5)
    pdfs = (np.arange(50) < 30).astype(int)
    new = flat.estimate(flat.accumulate(frames, pdfs), Estimation())
    np.testing.assert_allclose(new.means[1], frames[:30].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(new.variances[1], frames[:30].var(axis=0), rtol=1e-4)


def test_starved_gaussians_go_but_a_senone_keeps_one() -> None:
    own, frames = mixtures(), features(40)
    statistics = own.accumulate(frames, np.zeros(40, int))  # senones 1 and 2 have no frames
    new = own.estimate(statistics, Estimation(min_occupancy=3))
    assert new.sizes[1:].tolist() == [1, 1]
    assert np.isfinite(new.means).all()
    assert new.weights[new.starts[0] : new.starts[1]].sum() == pytest.approx(1)
    np.testing.assert_array_equal(new.means[new.starts[1]], own.means[own.starts[1]])


def test_variances_have_a_floor() -> None:
    same = np.ones((20, DIM), np.float32)
    flat = flat_mixtures([features(20)], 1)
    new = flat.estimate(flat.accumulate(same, np.zeros(20, int)), Estimation(min_variance=0.25))
    np.testing.assert_array_equal(new.variances, 0.25)


def test_splitting_reaches_its_target_and_favours_the_occupied() -> None:
    flat = flat_mixtures([features(50)], 3)
    split = flat.split(np.array([1000.0, 10.0, 10.0]), 9, 0.5, np.random.default_rng(0))
    assert split.sizes.sum() == 9
    assert split.sizes[0] > split.sizes[1]
    for start, size in zip(split.starts, split.sizes, strict=True):
        part = slice(start, start + size)
        assert split.weights[part].sum() == pytest.approx(1)
        centre = split.weights[part] @ split.means[part]
        np.testing.assert_allclose(centre, flat.means[0], atol=0.05)


def test_boosting_adds_the_factors_logarithm() -> None:
    own, frames = mixtures(), features(5)
    difference = own.boost([2], 1.5).log_likelihoods(frames) - own.log_likelihoods(frames)
    np.testing.assert_allclose(difference, np.tile([0, 0, math.log(1.5)], (5, 1)), atol=1e-5)
