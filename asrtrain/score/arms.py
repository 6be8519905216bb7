"""What is known of a trained arm: its training's figures and its scores on two sets."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asrtrain.io.errors import UserError
from asrtrain.io.json_file import read_json
from asrtrain.score.alignment import Counts
from asrtrain.score.bootstrap import Integers
from asrtrain.score.wer import SCORE, file_digest

SUMMARY = "summary.json"
FIGURES = (
    *("workers", "epochs", "steps", "train_frame_accuracy", "dev_frame_accuracy"),
    *("wire_bytes_per_step", "seconds", "frames_per_second"),
)
"""Of summary.json, needed here."""

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
    """What the acoustic scale and the penalty were chosen on: a path."""
    choice_sha256: str
    """Of the score that they were taken from; empty if they were chosen on this set itself."""
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


def read_arms(directories: Sequence[str], dev: str, test: str) -> list[Arm]:
    """Read trained arms, each named by its folder, or by its path where folders share a name.

    Raises UserError if something is missing, or if scale and penalty were chosen on a test set.
    """
    shared = Counter(Path(each).name for each in directories)
    return [
        _read_arm(Path(each), each if shared[Path(each).name] > 1 else Path(each).name, dev, test)
        for each in directories
    ]


def _read_arm(directory: Path, name: str, dev: str, test: str) -> Arm:
    remedy = f"make it with `asrtrain train out={directory}`"
    training = read_json(directory / SUMMARY, dict, remedy, FIGURES)
    arm = Arm(name, training, _read_score(directory / dev), _read_score(directory / test))
    dev_score, test_score = directory / dev / SCORE, directory / test / SCORE
    if arm.dev.choice_sha256:
        raise UserError(
            f"{dev_score}: acoustic scale and penalty were chosen on {arm.dev.chosen_on}; "
            "score the dev set without choice="
        )
    if arm.test.choice_sha256 != file_digest(dev_score):
        raise UserError(
            f"{test_score}: acoustic scale and penalty were chosen on {arm.test.chosen_on}, not "
            f"on {dev_score} as it is now; score it with choice={dev_score}"
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
    remedy = f"make it with `asrtrain score out={directory} overwrite=true`"
    keys = ("chosen", "chosen_on", "choice_sha256", "utterances")
    held = read_json(directory / SCORE, dict, remedy, keys)
    counts = [Counts(*(each[kind] for kind in KINDS)) for each in held["utterances"].values()]
    return Scored(
        sum(counts, start=Counts()),
        list(held["utterances"]),
        np.array([each.errors for each in counts]),
        np.array([each.words for each in counts]),
        held["chosen_on"],
        held["choice_sha256"],
        held["chosen"]["scale"],
        held["chosen"]["penalty"],
    )
