"""The verb `cmvn`: mean and variance statistics of features that exist already."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.reader import (
    CMVN_OPTIONS,
    GLOBAL,
    STATISTICS_BY,
    read_global_statistics,
    statistics_key,
)
from asrtrain.feats.statistics import Statistics, statistics_of
from asrtrain.io.archive import MatrixReader, MatrixWriter
from asrtrain.io.progress import progress
from asrtrain.io.settings import StageConfig, require, require_choice
from asrtrain.io.stage import stage
from asrtrain.io.tables import read_table, write_table


@dataclass(frozen=True, kw_only=True)
class NormalizeConfig:
    """What is normalized, over what."""

    by: str = "speaker"
    """speaker: over a speaker's utterances. utterance: over each. global: over all. none: off."""
    variances: bool = True
    """Whether variances become 1 as well; Kaldi's variance floors want features of that scale."""

    def __post_init__(self) -> None:
        require_choice("cmvn.by", self.by, (*STATISTICS_BY, "none"))


@dataclass(frozen=True, kw_only=True)
class CmvnConfig(StageConfig):
    """Settings of `cmvn`."""

    data: str
    """Data directory with feats.scp."""
    by: str = "speaker"
    """speaker: over a speaker's utterances. utterance: over each. global: over all."""
    variances: bool = True
    """Whether variances become 1 as well."""
    stats: str = ""
    """Features directory whose global statistics are taken, such as the training set's; if empty,
    `data`'s own. Only with by=global."""

    def __post_init__(self) -> None:
        require_choice("by", self.by, STATISTICS_BY)
        check_borrowing("by", self.by, self.stats)


@stage("cmvn", inputs=("data", "stats"))
def cmvn(config: CmvnConfig, out: Path) -> None:
    """Make a features directory of the same features with statistics of its own.

    The archives are not copied: feats.scp refers to them.
    """
    data = Path(config.data)
    directory = DataDirectory.read(data)
    directory.write(out)
    places = read_table(data / "feats.scp")
    write_table(out / "feats.scp", {key: _from_root(data, each) for key, each in places.items()})
    reader = MatrixReader(data / "feats.scp")
    if config.stats:
        dim = reader.read(directory.utterances[0]).shape[1]
        borrowed = read_global_statistics(config.stats, dim)
        write_global_statistics(out, borrowed, config.variances)
        return
    utterances = progress(directory.utterances, "cmvn", len(directory.utterances), "utterances")
    statistics = ((each, statistics_of(reader.read(each))) for each in utterances)
    write_statistics(
        out,
        statistics,
        directory.utt2spk,
        NormalizeConfig(by=config.by, variances=config.variances),
    )


def check_borrowing(key: str, by: str, stats: str) -> None:
    """Raise UserError, naming the setting `key`, if `stats` is given but `by` is not global."""
    require(
        not stats or by == "global",
        f"stats={stats}: is for {key}=global, not {key}={by}; say {key}=global or leave stats out",
    )


def write_statistics(
    out: Path,
    utterances: Iterable[tuple[str, Statistics]],
    utt2spk: dict[str, str],
    config: NormalizeConfig,
) -> None:
    """Sum the utterances' statistics, in order, as `config.by` says, into cmvn.ark and .scp."""
    sums: defaultdict[str, npt.NDArray[Any] | float] = defaultdict(float)
    for utterance, statistics in utterances:
        sums[statistics_key(utterance, utt2spk[utterance], config.by)] += statistics
    _write(out, sums, config.by, config.variances)


def write_global_statistics(out: Path, statistics: Statistics, variances: bool) -> None:
    """Write the statistics of another set, for features to be normalized alike."""
    _write(out, {GLOBAL: statistics}, "global", variances)


def _write(
    out: Path, sums: Mapping[str, npt.NDArray[Any] | float], by: str, variances: bool
) -> None:
    with MatrixWriter(out, "cmvn") as writer:
        for key in sorted(sums, key=str.encode):
            writer.write(key, np.asarray(sums[key]))
    options = {"by": by, "variances": variances}
    (out / CMVN_OPTIONS).write_text(json.dumps(options) + "\n")


def _from_root(data: Path, place: str) -> str:
    """An archive's place, absolute if it was given relative to the folder `data`."""
    beside = data / place.rpartition(":")[0]
    return f"{beside.resolve()}:{place.rpartition(':')[2]}" if beside.exists() else place
