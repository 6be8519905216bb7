"""Mixtures against the library's own Gaussians, and against plain formulas in float64."""

import kaldi_hmm_gmm as khg
import numpy as np
import pytest

from asrtrain.hmm.gaussians import Estimation, Mixtures, Statistics, flat_mixtures
from asrtrain.io.errors import UserError

SIZES, DIM, FRAMES = [2, 1, 3], 4, 200


def random_mixtures(seed: int = 0) -> Mixtures:
    generator = np.random.default_rng(seed)
    count = sum(SIZES)
    weights = [generator.dirichlet(np.full(size, 3.0)) for size in SIZES]
    return Mixtures(
        np.array(SIZES),
        np.concatenate(weights),
        generator.standard_normal((count, DIM)),
        generator.uniform(0.5, 2, (count, DIM)),
    )


def random_features(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((FRAMES, DIM)).astype(np.float32)


def as_library(mixtures: Mixtures) -> khg.AmDiagGmm:
    model = khg.AmDiagGmm()
    for start, size in zip(mixtures.starts, mixtures.sizes, strict=True):
        own = slice(start, start + size)
        gmm = khg.DiagGmm(int(size), mixtures.means.shape[1])
        gmm.set_weights(mixtures.weights[own].astype(np.float32))
        gmm.set_invvars((1 / mixtures.variances[own]).astype(np.float32))
        gmm.set_means(mixtures.means[own].astype(np.float32))
        gmm.compute_gconsts()
        model.add_pdf(gmm)
    return model


def test_far_from_every_mean_likelihoods_stay_finite() -> None:
    far = np.full((1, DIM), 100, np.float32)
    assert np.isfinite(random_mixtures().log_likelihoods(far)).all()


def test_estimation_is_the_librarys() -> None:
    mixtures, features = random_mixtures(), random_features()
    pdfs = np.random.default_rng(2).integers(0, len(SIZES), FRAMES)
    estimated = mixtures.estimate(mixtures.accumulate(features, pdfs), Estimation())
    model = as_library(mixtures)
    statistics = khg.AccumAmDiagGmm()
    statistics.init(model, 15)
    for frame, pdf in zip(features, pdfs, strict=True):
        statistics.accumulate_for_gmm(model, frame, int(pdf), 1.0)
    khg.mle_am_diag_gmm_update(khg.MleDiagGmmOptions(), statistics, 15, model)
    for pdf, (start, size) in enumerate(zip(estimated.starts, estimated.sizes, strict=True)):
        peer = model.get_pdf(pdf)
        own = slice(start, start + size)
        np.testing.assert_allclose(peer.weights, estimated.weights[own], rtol=1e-4)
        np.testing.assert_allclose(peer.means, estimated.means[own], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(peer.vars, estimated.variances[own], rtol=1e-3)


def test_starved_gaussians_go_but_a_senone_keeps_one() -> None:
    mixtures = random_mixtures()
    occupancy = np.array([50.0, 9.0, 0.0, 30.0, 2.0, 20.0])
    sums, squares = occupancy[:, None] * np.ones(DIM), occupancy[:, None] * np.full(DIM, 3.0)
    statistics = Statistics(occupancy, sums, squares, 0.0, 111)
    estimated = mixtures.estimate(statistics, Estimation(min_occupancy=10))
    assert estimated.sizes.tolist() == [1, 1, 2]
    np.testing.assert_allclose(estimated.weights, [1, 1, 0.6, 0.4])
    np.testing.assert_allclose(estimated.variances[0], 2.0)  # 3 - 1
    np.testing.assert_allclose(estimated.means[1], mixtures.means[2])  # no frames: as it was


@pytest.mark.parametrize("target", [3, 8, 14, 40])
def test_senones_share_gaussians_as_the_library_shares_them(target: int) -> None:
    features = [random_features()]
    mixtures = flat_mixtures(features, 3)
    occupancy = np.array([400.0, 90.0, 1000.0])
    split = mixtures.split(occupancy, target, 0.25, np.random.default_rng(0))
    model = as_library(mixtures)
    model.split_by_count(occupancy.astype(np.float32), target, 0.01, 0.25, 20.0)
    assert split.sizes.tolist() == [model.num_gauss_in_pdf(pdf) for pdf in range(3)]


def test_halves_of_a_split_gaussian_share_its_weight_and_lie_about_its_mean() -> None:
    mixtures = flat_mixtures([random_features()], 1)
    split = mixtures.split(np.array([500.0]), 2, 0.25, np.random.default_rng(0))
    np.testing.assert_allclose(split.weights, [0.5, 0.5])
    np.testing.assert_allclose(split.means.mean(axis=0), mixtures.means[0])
    np.testing.assert_allclose(split.variances, mixtures.variances[[0, 0]])
    away = np.abs(split.means - mixtures.means[0]) / np.sqrt(mixtures.variances[0])
    assert (away > 0).all()
    assert (away < 0.05).all()


def test_flat_start_has_the_moments_of_all_frames() -> None:
    parts = [random_features(1), 3 * random_features(2)]
    mixtures = flat_mixtures(parts, 2)
    together = np.concatenate(parts).astype(np.float64)
    for pdf in range(2):
        np.testing.assert_allclose(mixtures.means[pdf], together.mean(axis=0))
        np.testing.assert_allclose(mixtures.variances[pdf], together.var(axis=0))


def test_a_dimension_that_never_changes_is_named() -> None:
    features = random_features()
    features[:, 2] = 7
    with pytest.raises(UserError, match="feature dimension 2 has the same value in every frame"):
        flat_mixtures([features], 2)
