"""Alignment of a hypothesis with its reference by least edit distance, and what it counts."""

from collections.abc import Sequence
from dataclasses import dataclass

import kaldialign

NOTHING = " "
"""Stands for the missing side of an insertion or deletion; no word can be it, as none has spaces.
kaldialign's usual sign, `*` or `<eps>`, could be a word, whose errors would then be miscounted."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Counts:
    """Errors against a number of reference words; adding them pools them."""

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    words: int = 0
    """Of the reference."""

    @property
    def errors(self) -> int:
        """All three kinds."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def wer(self) -> float:
        """Word error rate in percent; infinite for errors against no words."""
        if not self.words:
            return float("inf") if self.errors else 0.0
        return 100 * self.errors / self.words

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.words + other.words,
        )


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Pair]:
    """Pairs (reference word, hypothesis word); `NOTHING` where a side has none.

    Substitution, deletion and insertion cost 1 each, as in Kaldi's compute-wer.
    """
    return list(kaldialign.align(list(reference), list(hypothesis), NOTHING))


def count(pairs: Sequence[Pair]) -> Counts:
    """Count the errors of an alignment."""
    deletions = sum(hypothesis == NOTHING for _, hypothesis in pairs)
    insertions = sum(reference == NOTHING for reference, _ in pairs)
    different = sum(reference != hypothesis for reference, hypothesis in pairs)
    return Counts(
        different - deletions - insertions, deletions, insertions, len(pairs) - insertions
    )
