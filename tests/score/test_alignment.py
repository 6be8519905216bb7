"""Alignments are of least edit distance; counts add up."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.score.alignment import NOTHING, Counts, align, count

sentences = st.lists(st.sampled_from(["a", "b", "<eps>", "*", "c"]), max_size=7)


def edit_distance(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = first[i - 1] == second[j - 1]
        return min(
            distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (not same)
        )

    return distance(len(first), len(second))


@given(sentences, sentences)
def test_errors_are_the_edit_distance(reference: list[str], hypothesis: list[str]) -> None:
    pairs = align(reference, hypothesis)
    assert [each for each, _ in pairs if each != NOTHING] == reference
    assert [each for _, each in pairs if each != NOTHING] == hypothesis
    counts = count(pairs)
    assert counts.errors == edit_distance(tuple(reference), tuple(hypothesis))
    assert counts.words == len(reference)
    assert counts.insertions - counts.deletions == len(hypothesis) - len(reference)


def test_by_hand() -> None:
    counts = count(align(["the", "cat", "sat", "down"], ["a", "cat", "sat", "down", "there"]))
    assert counts == Counts(substitutions=1, deletions=0, insertions=1, words=4)
    assert counts.wer == 50.0
    assert count(align(["a"], [])) == Counts(0, 1, 0, 1)


def test_pooling() -> None:
    assert Counts(1, 2, 3, 10) + Counts(1, 0, 0, 5) == Counts(2, 2, 3, 15)


def test_errors_against_no_words() -> None:
    assert Counts().wer == 0
    assert Counts(insertions=1).wer == pytest.approx(float("inf"))
