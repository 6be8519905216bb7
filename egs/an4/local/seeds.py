"""Figures of several seeds: what the table writers beside this file share."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy import stats

from asrtrain.io.errors import UserError

CONFIDENCE = 0.95


def epochs_of(training: Path) -> list[dict[str, Any]]:
    """The figures of each epoch of a training, in order. Raises UserError if there are none."""
    path = training / "metrics.jsonl"
    try:
        records = [json.loads(line) for line in path.read_text().splitlines()]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; train that arm first") from None
    return [each for each in records if "train_loss" in each and "epoch" in each]


def spread(values: Sequence[float], form: str = ".4f") -> str:
    """`mean ± half-width` of the 95 % interval of Student's t; the mean alone of one value."""
    mean = f"{fmean(values):{form}}"
    if len(values) < 2:
        return mean
    half = stats.sem(values) * stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)
    return f"{mean} ± {half:{form.lstrip('+')}}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(each) + " |" for each in lines)
