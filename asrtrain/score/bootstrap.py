"""Bootstrap intervals of WER: utterances are drawn again, with replacement, many times.

After Bisani & Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation",
ICASSP 2004: for two systems the same utterances are drawn for both, so that what is hard for both
does not widen the interval of their difference.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DRAWN_AT_ONCE = 2**18
"""Utterances drawn at a time, over all draws: a few MiB, whatever the size of the test set."""


@dataclass(frozen=True)
class Interval:
    """A figure in percent, or a difference of two in points, with its percentile interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bootstrap:
    """How to draw."""

    samples: int = 10_000
    """Draws of the whole test set."""
    confidence: float = 0.95
    """Share of draws inside the interval."""
    seed: int = 1

    def wer(self, errors: Integers, words: Integers) -> Interval:
        """Of the WER, from each utterance's errors and reference words."""
        rates = self._rates(errors[None], words)
        return self._interval(100 * errors.sum() / words.sum(), rates[0])

    def difference(self, errors: Integers, baseline: Integers, words: Integers) -> Interval:
        """Of the WER minus the baseline's, in points, both on the same utterances."""
        ours, theirs = self._rates(np.stack((errors, baseline)), words)
        return self._interval(100 * (errors - baseline).sum() / words.sum(), ours - theirs)

    def _rates(self, errors: Integers, words: Integers) -> Floats:
        """(systems, samples) WER of each draw, in percent; `errors` is (systems, utterances)."""
        count = len(words)
        generator = np.random.Generator(np.random.PCG64(self.seed))
        figures = np.vstack((errors, words))
        totals = np.empty((len(figures), self.samples), np.int64)
        step = max(1, DRAWN_AT_ONCE // count)
        for begin in range(0, self.samples, step):
            own = totals[:, begin : begin + step]
            drawn = generator.integers(count, size=(own.shape[1], count), dtype=np.int32)
            for figure, total in zip(figures, own, strict=True):
                total[:] = figure[drawn].sum(axis=1)
        rates: Floats = 100 * totals[:-1] / np.maximum(totals[-1], 1)
        return rates

    def _interval(self, value: float, rates: Floats) -> Interval:
        outside = (1 - self.confidence) / 2
        low, high = np.quantile(rates, [outside, 1 - outside])
        return Interval(float(value), float(low), float(high))
