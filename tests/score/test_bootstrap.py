"""Intervals: exact where they must be, equal to a plain loop, and of the coverage they claim."""

import kaldialign
import numpy as np
import pytest

from asrtrain.score.bootstrap import Bootstrap, Interval


def sets(utterances: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    words = generator.integers(1, 12, utterances)
    return generator.binomial(words, 0.1), generator.binomial(words, 0.12), words


def test_identical_arms_do_not_differ() -> None:
    errors, _, words = sets()
    assert Bootstrap().difference(errors, errors, words) == Interval(0.0, 0.0, 0.0)


def test_a_constant_difference_has_no_spread() -> None:
    words = np.full(50, 4)
    errors = sets(50)[0]
    found = Bootstrap().difference(errors + 1, errors, words)
    assert found.value == found.low == found.high == pytest.approx(25.0)


def test_a_plain_loop_gives_the_same_interval() -> None:
    errors, other, words = sets()
    bootstrap = Bootstrap(samples=300, seed=3)
    generator = np.random.Generator(np.random.PCG64(3))
    rates = []
    for drawn in generator.integers(60, size=(300, 60), dtype=np.int32):
        total = sum(words[each] for each in drawn)
        rates.append(100 * sum(errors[each] - other[each] for each in drawn) / total)
    found = bootstrap.difference(errors, other, words)
    assert found.low == pytest.approx(np.quantile(rates, 0.025))
    assert found.high == pytest.approx(np.quantile(rates, 0.975))
    assert found.value == pytest.approx(100 * (errors.sum() - other.sum()) / words.sum())


def test_more_confidence_is_wider_and_pairing_is_narrower() -> None:
    errors, _, words = sets()
    nearly = errors.copy()
    nearly[0] += 1
    wide, narrow = (Bootstrap(confidence=share).wer(errors, words) for share in (0.99, 0.8))
    assert wide.low < narrow.low <= narrow.value <= narrow.high < wide.high
    paired = Bootstrap().difference(nearly, errors, words)
    assert paired.high - paired.low < (wide.high - wide.low) / 2


def test_draws_in_pieces_have_the_same_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, _, words = sets()
    whole = Bootstrap().wer(errors, words)
    monkeypatch.setattr("asrtrain.score.bootstrap.DRAWN_AT_ONCE", 1)
    pieces = Bootstrap().wer(errors, words)
    assert (pieces.low, pieces.high) == pytest.approx((whole.low, whole.high), abs=0.3)


def test_swapped_arms_give_mirrored_figures() -> None:
    errors, other, words = sets()
    there, back = (
        Bootstrap().difference(errors, other, words),
        Bootstrap().difference(other, errors, words),
    )
    assert there.value == -back.value
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


def test_a_seed_gives_one_interval() -> None:
    errors, _, words = sets()
    assert Bootstrap(seed=2).wer(errors, words) == Bootstrap(seed=2).wer(errors, words)
    assert Bootstrap(seed=2).wer(errors, words) != Bootstrap(seed=3).wer(errors, words)


def test_kaldis_compute_wer_bootci_agrees() -> None:
    errors, _, words = sets(200)
    references = [["a"] * number for number in words]
    hypotheses = [
        ["b"] * wrong + ["a"] * (number - wrong)
        for wrong, number in zip(errors, words, strict=True)
    ]
    # Kaldi's interval is normal, 1.96 standard errors to either side; ours is of percentiles.
    peer = kaldialign.bootstrap_wer_ci(references, hypotheses, replications=10_000)
    found = Bootstrap().wer(errors, words)
    assert found.value == pytest.approx(100 * peer["wer"], abs=0.05)
    assert found.low == pytest.approx(100 * peer["ci95min"], abs=0.15)
    assert found.high == pytest.approx(100 * peer["ci95max"], abs=0.15)


@pytest.mark.slow
def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    words, covered, trials = np.full(200, 6), 0, 400
    for _ in range(trials):
        # Utterances differ in difficulty, alike for both arms, whose true difference is 3 points.
        hard = generator.beta(1, 8, 200)
        ours, theirs = generator.binomial(6, hard * 0.73 + 0.03), generator.binomial(6, hard * 0.73)
        found = Bootstrap(samples=1000).difference(ours, theirs, words)
        covered += found.low <= 3.0 <= found.high
    assert 0.91 <= covered / trials <= 0.98
