"""Diagonal-covariance Gaussian mixtures of all senones: likelihoods, statistics, estimation.

Shapes: T frames, D feature dims, S senones (pdfs), G Gaussians of all senones, in pdf order.
"""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from asrtrain.io.errors import UserError

Array = npt.NDArray[np.float64]
Features = npt.NDArray[np.float32]

SPLIT_DISTANCE = 0.01
"""Standard deviations by which the halves of a split Gaussian move apart, times a normal draw."""


SPLIT_MIN_COUNT = 20.0
"""Frames that each Gaussian of a senone must have on average for the senone to get one more."""


@dataclass(frozen=True)
class Statistics:
    """Sums over frames, for each Gaussian; adding them is the only operation between batches."""

    occupancy: Array
    """(G,) sums of posteriors."""
    sums: Array
    """(G, D) of features weighted by posteriors."""
    squares: Array
    """(G, D) of their squares."""
    log_likelihood: float
    """Of all frames under their senones."""
    frames: int

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(
            self.occupancy + other.occupancy,
            self.sums + other.sums,
            self.squares + other.squares,
            self.log_likelihood + other.log_likelihood,
            self.frames + other.frames,
        )


@dataclass(frozen=True)
class Estimation:
    """Limits of re-estimation; the defaults of Kaldi's gmm-est."""

    min_occupancy: float = 10.0
    """A Gaussian with less is removed, unless it is its senone's last."""
    min_weight: float = 1e-5
    """Likewise for its weight."""
    min_variance: float = 0.001
    """Floor, in the features' units squared: they should have variances near 1."""


@dataclass(frozen=True)
class Mixtures:
    """The mixtures."""

    sizes: npt.NDArray[np.int64]
    """(S,) Gaussians of each senone, at least 1."""
    weights: Array
    """(G,) summing to 1 over a senone."""
    means: Array
    """(G, D)."""
    variances: Array
    """(G, D)."""

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """(S,) first Gaussian of each senone."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def gconsts(self) -> Array:
        """(G,) log weight and normalizer of each Gaussian, with the mean's square term."""
        log_det = np.log(2 * math.pi * self.variances) + self.means**2 / self.variances
        return np.log(self.weights) - 0.5 * log_det.sum(axis=1)

    def log_likelihoods(self, features: Features) -> Features:
        """(T, D) features to (T, S) log-likelihoods of the senones."""
        scores = self._component_scores(features)
        top = np.maximum.reduceat(scores, self.starts, axis=1)
        scores -= np.repeat(top, self.sizes, axis=1)
        np.exp(scores, out=scores)
        return np.log(np.add.reduceat(scores, self.starts, axis=1)) + top

    def accumulate(self, features: Features, pdfs: npt.NDArray[np.integer]) -> Statistics:
        """Statistics of (T, D) frames that belong to the senones `pdfs` (T,)."""
        gaussians, dim = self.means.shape
        occupancy = np.zeros(gaussians)
        sums, squares = np.zeros((gaussians, dim)), np.zeros((gaussians, dim))
        total = 0.0
        for pdf in np.unique(pdfs):
            frames = features[pdfs == pdf].astype(np.float64)
            own = slice(self.starts[pdf], self.starts[pdf] + self.sizes[pdf])
            scores = self.gconsts[own] + frames @ (self.means[own] / self.variances[own]).T
            scores -= 0.5 * (frames**2 @ (1 / self.variances[own]).T)
            top = scores.max(axis=1, keepdims=True)
            posteriors = np.exp(scores - top)
            likelihood = posteriors.sum(axis=1, keepdims=True)
            posteriors /= likelihood
            total += float((np.log(likelihood) + top).sum())
            occupancy[own] = posteriors.sum(axis=0)
            sums[own] = posteriors.T @ frames
            squares[own] = posteriors.T @ frames**2
        return Statistics(occupancy, sums, squares, total, len(features))

    def estimate(self, statistics: Statistics, limits: Estimation) -> "Mixtures":
        """Maximum-likelihood mixtures; starved Gaussians are removed (Kaldi: MleDiagGmmUpdate).

        A senone without frames keeps what it has.
        """
        parts = [self._estimate_senone(pdf, statistics, limits) for pdf in range(len(self.sizes))]
        sizes = np.array([len(weights) for weights, _, _ in parts])
        return Mixtures(sizes, *(np.concatenate(each) for each in zip(*parts, strict=True)))

    def split(
        self, occupancy: Array, target: int, power: float, generator: np.random.Generator
    ) -> "Mixtures":
        """Split the heaviest Gaussians until there are `target` in all.

        Senones get them by (Kaldi: GetSplitTargets) occupancy ** power; halves differ in the mean.
        """
        targets = _split_targets(occupancy, self.sizes, target, power)
        parts = []
        for pdf, wanted in enumerate(targets):
            own = slice(self.starts[pdf], self.starts[pdf] + self.sizes[pdf])
            parts.append(
                _split_senone(
                    list(self.weights[own]),
                    list(self.means[own]),
                    list(self.variances[own]),
                    wanted,
                    generator,
                )
            )
        sizes = np.array([len(weights) for weights, _, _ in parts])
        return Mixtures(sizes, *(np.concatenate(each) for each in zip(*parts, strict=True)))

    def boost(self, pdfs: list[int], factor: float) -> "Mixtures":
        """The same mixtures, weights of `pdfs` times `factor` (Kaldi: gmm-boost-silence)."""
        weights = self.weights.copy()
        for pdf in pdfs:
            weights[self.starts[pdf] : self.starts[pdf] + self.sizes[pdf]] *= factor
        return replace(self, weights=weights)

    def _component_scores(self, features: Features) -> Features:
        """(T, G) log of weight times density."""
        import torch  # slow to import, so not before there is work

        values = torch.from_numpy(np.require(features, requirements="W"))  # else torch warns
        linear = torch.from_numpy((self.means / self.variances).astype(np.float32))
        inverse = torch.from_numpy((-0.5 / self.variances).astype(np.float32))
        constant = torch.from_numpy(self.gconsts.astype(np.float32))
        scores = torch.addmm(constant, values, linear.T)
        return torch.addmm(scores, values * values, inverse.T).numpy()

    def _estimate_senone(
        self, pdf: int, statistics: Statistics, limits: Estimation
    ) -> tuple[Array, Array, Array]:
        own = slice(self.starts[pdf], self.starts[pdf] + self.sizes[pdf])
        occupancy = statistics.occupancy[own]
        total = occupancy.sum()
        fed = (occupancy > limits.min_occupancy) & (occupancy > limits.min_weight * total)
        if not fed.any():
            best = int(np.argmax(occupancy))
            keep = slice(own.start + best, own.start + best + 1)
            return np.ones(1), self.means[keep], self.variances[keep]
        count = occupancy[fed, None]
        means = statistics.sums[own][fed] / count
        variances = np.maximum(statistics.squares[own][fed] / count - means**2, limits.min_variance)
        return occupancy[fed] / occupancy[fed].sum(), means, variances


def flat_mixtures(features: Iterable[Features], num_pdfs: int) -> Mixtures:
    """One Gaussian a senone, with the mean and variance of all features (Kaldi: gmm-init-mono).

    Raises UserError if a dimension does not vary.
    """
    count, sums, squares = 0, 0.0, 0.0
    for each in features:
        values = each.astype(np.float64)
        count += len(values)
        sums, squares = sums + values.sum(axis=0), squares + (values**2).sum(axis=0)
    mean = sums / count
    variance = squares / count - mean**2
    if (variance <= 0).any():
        raise UserError(
            f"feature dimension {int(np.argmin(variance))} has the same value in every frame; "
            "make the features without it"
        )
    return Mixtures(
        np.ones(num_pdfs, np.int64),
        np.ones(num_pdfs),
        np.tile(mean, (num_pdfs, 1)),
        np.tile(variance, (num_pdfs, 1)),
    )


def _split_targets(
    occupancy: Array, sizes: npt.NDArray[np.int64], target: int, power: float
) -> list[int]:
    """How many Gaussians each senone should have; none has fewer than now."""
    counts = [1] * len(sizes)
    # A heap of how much a senone wants one more; ties go to the lower pdf id.
    wants = [(-(occupancy[pdf] ** power), pdf) for pdf in range(len(sizes))]
    heapq.heapify(wants)
    missing = target - len(sizes)
    while missing > 0 and wants:
        _, pdf = heapq.heappop(wants)
        if (counts[pdf] + 1) * SPLIT_MIN_COUNT < occupancy[pdf]:
            counts[pdf] += 1
            missing -= 1
            heapq.heappush(wants, (-(occupancy[pdf] ** power) / counts[pdf], pdf))
    return [max(count, int(size)) for count, size in zip(counts, sizes, strict=True)]


def _split_senone(
    weights: list[float],
    means: list[Array],
    variances: list[Array],
    wanted: int,
    generator: np.random.Generator,
) -> tuple[Array, Array, Array]:
    while len(weights) < wanted:
        heaviest = int(np.argmax(weights))
        deviation = np.sqrt(variances[heaviest])
        move = SPLIT_DISTANCE * generator.standard_normal(len(deviation)) * deviation
        weights[heaviest] /= 2
        weights.append(weights[heaviest])
        means.append(means[heaviest] + move)
        means[heaviest] = means[heaviest] - move
        variances.append(variances[heaviest])
    return np.array(weights), np.array(means), np.array(variances)
