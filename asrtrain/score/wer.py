"""The verb `score`: word error rate over a grid of hypotheses, at the point chosen on a dev set."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.errors import UserError
from asrtrain.io.json_file import read_json
from asrtrain.io.progress import progress
from asrtrain.io.settings import StageConfig
from asrtrain.io.stage import stage, write_counts
from asrtrain.io.tables import read_table, write_lines
from asrtrain.score.alignment import NOTHING, Counts, Pair, align, count

log = logging.getLogger(__name__)

SCORE = "score.json"
GRID = "grid.json"
SHOWN_NOTHING = "***"
"""Kaldi's sign for no word, in per_utt."""

Texts = dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class ScoreConfig(StageConfig):
    """Settings of `score`."""

    data: str
    """Data directory with the reference transcripts."""
    decode: str
    """Directory that `decode` made."""
    choice: str = ""
    """score.json of a development set, whose acoustic scale and word penalty are used; empty: the
    point of fewest errors on this set is chosen, which is fair only on a development set."""


@dataclass(frozen=True)
class Point:
    """A point of the grid and its errors."""

    scale: float
    penalty: float
    counts: Counts


@stage("score", inputs=("data", "decode", "choice"))
def score(config: ScoreConfig, out: Path) -> None:
    """Score every point of a decoding's grid; report one in score.json, wer, per_utt, per_spk, ops.

    Without choice= the point of fewest errors is chosen (ties: least word penalty in size, then
    least acoustic scale). With choice= that point is used as it is.
    """
    directory = DataDirectory.read(config.data)
    if not any(directory.text.values()):
        raise UserError(f"{directory.path / 'text'}: has no words, so there is no error rate")
    grid = _read_grid(Path(config.decode))
    points = []
    for each in progress(grid, "score", len(grid), "points"):
        hypotheses = read_hypotheses(Path(config.decode) / each["file"], directory)
        pairs = [align(directory.text[utt], hypotheses[utt]) for utt in directory.utterances]
        counts = sum(map(count, pairs), start=Counts())
        points.append(Point(each["scale"], each["penalty"], counts))
    chosen = _chosen_elsewhere(config, points) if config.choice else choose(points)
    if not config.choice:
        _warn_at_the_edge(config, points, chosen)
    file = grid[points.index(chosen)]["file"]
    _write_reports(config, out, directory, points, chosen, file)
    log.info("%s", kaldi_line(chosen.counts))
    log.info("acoustic scale %g, word insertion penalty %g", chosen.scale, chosen.penalty)
    write_counts(out, **asdict(chosen.counts))


def choose(points: list[Point]) -> Point:
    """The point of fewest errors; of several, that of least |penalty|, then of least scale."""
    return min(points, key=lambda each: (each.counts.errors, abs(each.penalty), each.scale))


def file_digest(path: Path) -> str:
    """SHA-256 of a file: tells which score a choice was taken from, wherever it lies."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kaldi_line(counts: Counts) -> str:
    """The summary as Kaldi's compute-wer prints it."""
    return (
        f"%WER {counts.wer:.2f} [ {counts.errors} / {counts.words}, {counts.insertions} ins, "
        f"{counts.deletions} del, {counts.substitutions} sub ]"
    )


def read_hypotheses(path: Path, directory: DataDirectory) -> Texts:
    """Words by utterance. Raises UserError unless they are of just the directory's utterances."""
    hypotheses = {key: rest.split() for key, rest in read_table(path).items()}
    missing = [utt for utt in directory.utterances if utt not in hypotheses]
    extra = sorted(hypotheses.keys() - directory.utt2spk.keys(), key=str.encode)
    if missing:
        raise UserError(
            f"{path}: no hypothesis for {_some(missing)}, which {directory.path} has; decode the "
            "same data"
        )
    if extra:
        raise UserError(
            f"{path}: has {_some(extra)}, which {directory.path} lacks; score all of it"
        )
    return hypotheses


def _some(utterances: list[str]) -> str:
    more = f" and {len(utterances) - 3} more" if len(utterances) > 3 else ""
    return ", ".join(utterances[:3]) + more


def _read_grid(decode: Path) -> list[dict[str, Any]]:
    path = decode / GRID
    remedy = f"make it with `asrtrain decode out={decode} overwrite=true`"
    grid: list[dict[str, Any]] = read_json(path, list, remedy)
    for point in grid:
        if not (isinstance(point, dict) and point.keys() >= {"scale", "penalty", "file"}):
            raise UserError(f"{path}: {point} is not a point with scale, penalty, file; {remedy}")
    if not grid:
        raise UserError(f"{path}: has no points; {remedy}")
    return grid


def _chosen_elsewhere(config: ScoreConfig, points: list[Point]) -> Point:
    remedy = f"choice= expects a {SCORE} of `asrtrain score`"
    held = read_json(Path(config.choice), dict, remedy, ("chosen",))
    wanted = (held["chosen"]["scale"], held["chosen"]["penalty"])
    for point in points:
        if (point.scale, point.penalty) == wanted:
            return point
    raise UserError(
        f"{config.decode}/{GRID}: has no point of scale {wanted[0]:g} and penalty {wanted[1]:g}, "
        f"which {config.choice} chose; decode both sets with the same scales and penalties"
    )


def _warn_at_the_edge(config: ScoreConfig, points: list[Point], chosen: Point) -> None:
    for key, own in (("scales", "scale"), ("penalties", "penalty")):
        values = sorted({getattr(point, own) for point in points})
        if len(values) > 1 and getattr(chosen, own) in (values[0], values[-1]):
            log.warning(
                "%s: the best %s, %g, is the last of the grid; decode with more %s=",
                config.decode,
                own,
                getattr(chosen, own),
                key,
            )


def _write_reports(
    config: ScoreConfig,
    out: Path,
    directory: DataDirectory,
    points: list[Point],
    chosen: Point,
    file: str,
) -> None:
    hypotheses = read_hypotheses(Path(config.decode) / file, directory)
    alignments = {utt: align(directory.text[utt], hypotheses[utt]) for utt in directory.utterances}
    by_utterance = {utt: count(pairs) for utt, pairs in alignments.items()}
    by_speaker: dict[str, Counts] = {}
    for utt, counts in by_utterance.items():
        speaker = directory.utt2spk[utt]
        by_speaker[speaker] = by_speaker.get(speaker, Counts()) + counts
    report = {
        "chosen": {"scale": chosen.scale, "penalty": chosen.penalty},
        "chosen_on": config.choice or config.decode,
        "choice_sha256": file_digest(Path(config.choice)) if config.choice else "",
        "data": config.data,
        "decode": config.decode,
        "wer": chosen.counts.wer,
        "counts": asdict(chosen.counts),
        "speakers": {speaker: asdict(each) for speaker, each in sorted(by_speaker.items())},
        "utterances": {
            utt: {"speaker": directory.utt2spk[utt]} | asdict(each)
            for utt, each in by_utterance.items()
        },
        "grid": [
            {"scale": each.scale, "penalty": each.penalty, "wer": each.counts.wer}
            | asdict(each.counts)
            for each in points
        ],
    }
    (out / SCORE).write_text(json.dumps(report, indent=1) + "\n")
    write_lines(out / "wer", [kaldi_line(chosen.counts)])
    write_lines(out / "per_utt", _per_utterance(alignments))
    write_lines(out / "per_spk", _per_speaker(by_speaker))
    write_lines(out / "ops", _operations(alignments))


def _per_utterance(alignments: dict[str, list[Pair]]) -> Iterator[str]:
    """Kaldi's per_utt: reference, hypothesis, operations, counts."""
    for utt, pairs in alignments.items():
        counts = count(pairs)
        correct = counts.words - counts.substitutions - counts.deletions
        yield f"{utt} ref  {' '.join(_shown(reference) for reference, _ in pairs)}"
        yield f"{utt} hyp  {' '.join(_shown(hypothesis) for _, hypothesis in pairs)}"
        yield f"{utt} op   {' '.join(map(_operation, pairs))}"
        yield (
            f"{utt} #csid {correct} {counts.substitutions} {counts.insertions} {counts.deletions}"
        )


def _per_speaker(by_speaker: dict[str, Counts]) -> Iterator[str]:
    yield "speaker words sub del ins wer"
    for speaker, counts in sorted(by_speaker.items()):
        yield (
            f"{speaker} {counts.words} {counts.substitutions} {counts.deletions} "
            f"{counts.insertions} {counts.wer:.2f}"
        )


def _operations(alignments: dict[str, list[Pair]]) -> Iterator[str]:
    """Kaldi's ops: how often each word was confused, deleted, inserted; most frequent first."""
    times = Counter(
        (_operation(pair), *map(_shown, pair))
        for pairs in alignments.values()
        for pair in pairs
        if pair[0] != pair[1]
    )
    for (operation, reference, hypothesis), number in sorted(
        times.items(), key=lambda item: (-item[1], item[0])
    ):
        yield f"{operation} {reference} {hypothesis} {number}"


def _operation(pair: Pair) -> str:
    reference, hypothesis = pair
    if reference == hypothesis:
        return "C"
    return {reference: "I", hypothesis: "D"}.get(NOTHING, "S")


def _shown(word: str) -> str:
    return SHOWN_NOTHING if word == NOTHING else word
