"""What is known of a trained arm: its training's figures and its scores on two sets."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asrtrain.io.errors import UserError
from asrtrain.score.alignment import Counts
from asrtrain.score.bootstrap import Integers
from asrtrain.score.wer import SCORE

SUMMARY = "summary.json"
KINDS = ("substitutions", "deletions", "insertions", "words")


@dataclass(frozen=True)
class Scored:
    """An arm's score on a set."""

    counts: Counts
    utterances: list[str]
    errors: Integers
    """Of each utterance."""
    words: Integers
    """Reference words of each utterance."""
    chosen_on: str
    """What the acoustic scale and the penalty were chosen on."""
    scale: float
    penalty: float


@dataclass(frozen=True)
class Arm:
    """A trained network and its scores."""

    name: str
    training: dict[str, Any]
    """summary.json of `train`."""
    dev: Scored
    test: Scored


def read_arm(directory: Path, dev: str, test: str) -> Arm:
    """Read an arm's folder. Raises UserError if something is missing or chosen on the test set."""
    arm = Arm(
        directory.name,
        _read_json(directory / SUMMARY, "asrtrain train"),
        _read_score(directory / dev),
        _read_score(directory / test),
    )
    if Path(arm.test.chosen_on).resolve() != (directory / dev / SCORE).resolve():
        raise UserError(
            f"{directory / test / SCORE}: acoustic scale and penalty were chosen on "
            f"{arm.test.chosen_on}; score it with choice={directory / dev / SCORE}"
        )
    return arm


def check_same_sets(arm: Arm, baseline: Arm) -> None:
    """Raise UserError unless both arms were scored on the same utterances and references."""
    for name in ("dev", "test"):
        own, other = getattr(arm, name), getattr(baseline, name)
        if own.utterances != other.utterances or not np.array_equal(own.words, other.words):
            raise UserError(
                f"{arm.name} and {baseline.name} were scored on different {name} sets "
                f"({len(own.utterances)} and {len(other.utterances)} utterances, or other "
                "references); score both on the same data directory"
            )


def _read_score(directory: Path) -> Scored:
    held = _read_json(directory / SCORE, "asrtrain score")
    utterances = held["utterances"]
    counts = [Counts(*(each[kind] for kind in KINDS)) for each in utterances.values()]
    return Scored(
        sum(counts, start=Counts()),
        list(utterances),
        np.array([each.errors for each in counts]),
        np.array([each.words for each in counts]),
        held["chosen_on"],
        held["chosen"]["scale"],
        held["chosen"]["penalty"],
    )


def _read_json(path: Path, maker: str) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with `{maker} out={path.parent}`")
    held: dict[str, Any] = json.loads(path.read_text())
    return held
