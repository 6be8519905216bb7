"""The verb `feats`: audio or Sphinx cepstra to normalized features with their derivatives."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.cmvn import (
    NormalizeConfig,
    check_borrowing,
    write_global_statistics,
    write_statistics,
)
from asrtrain.feats.deltas import add_deltas
from asrtrain.feats.mfcc import MfccConfig, read_mfcc
from asrtrain.feats.reader import read_global_statistics
from asrtrain.feats.statistics import Statistics, statistics_of
from asrtrain.io.archive import MatrixWriter
from asrtrain.io.errors import UserError
from asrtrain.io.parallel import map_jobs
from asrtrain.io.settings import StageConfig, require, run_only
from asrtrain.io.sphinx import read_sphinx_cepstra
from asrtrain.io.stage import stage, write_counts

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FeatsConfig(StageConfig):
    """Settings of `feats`."""

    data: str
    """Data directory, with wav.scp (audio) or cepstra.scp (Sphinx .mfc files)."""
    mfcc: MfccConfig = field(default_factory=MfccConfig)
    """How audio becomes cepstra; of Sphinx files only mfcc.num_ceps counts."""
    num_ceps: int = 0
    """Cepstra kept of each frame, the first ones, C0 on; 0 for all mfcc.num_ceps."""
    delta_order: int = 2
    """Derivatives to append, 0 or more."""
    delta_window: int = 2
    """Frames to either side that a derivative is taken over, 1 or more."""
    cmvn: NormalizeConfig = field(default_factory=NormalizeConfig)
    """Normalization, of cepstra and derivatives alike."""
    stats: str = ""
    """Features directory whose global statistics are taken, such as the training set's; if empty,
    those of this set. Only with cmvn.by=global."""
    max_empty: float = 0.01
    """Share of utterances, 0 to 1, that may have no frames and be dropped; more is an error."""
    nj: int = run_only(1)
    """Processes."""

    def __post_init__(self) -> None:
        require(
            0 <= self.num_ceps <= self.mfcc.num_ceps,
            f"num_ceps={self.num_ceps}: expected 0 to mfcc.num_ceps={self.mfcc.num_ceps}",
        )
        check_borrowing("cmvn.by", self.cmvn.by, self.stats)
        require(self.delta_order >= 0, f"delta_order={self.delta_order}: expected 0 or more")
        require(self.delta_window >= 1, f"delta_window={self.delta_window}: expected 1 or more")
        require(self.nj >= 1, f"nj={self.nj}: expected at least 1")

    @property
    def kept_ceps(self) -> int:
        """Cepstra kept of each frame."""
        return self.num_ceps or self.mfcc.num_ceps

    @property
    def dim(self) -> int:
        """D: cepstra and their derivatives."""
        return self.kept_ceps * (1 + self.delta_order)


@stage("feats", inputs=("data", "stats"))
def extract(config: FeatsConfig, out: Path) -> None:
    """Make a features directory: the data directory's tables, feats.scp and cmvn.scp.

    Cepstra come from audio as Kaldi computes MFCC, or from Sphinx files as they are; then deltas as
    Kaldi's add-deltas. Statistics for mean and variance normalization are kept beside the features
    and applied by every verb that reads them.
    """
    directory = DataDirectory.read(config.data)
    if directory.recordings is None:
        raise UserError(f"{config.data}: neither wav.scp nor cepstra.scp there")
    borrowed = read_global_statistics(config.stats, config.dim) if config.stats else None
    statistics: dict[str, Statistics] = {}
    frames = 0
    with MatrixWriter(out, "feats") as writer:
        for utterance, features in _all_features(config, directory):
            if len(features):
                writer.write(utterance, features)
                statistics[utterance] = statistics_of(features)
                frames += len(features)
    empty = directory.utt2spk.keys() - statistics.keys()
    _report_empty(config, empty, len(directory.utterances))
    directory.subset(statistics).write(out)
    if borrowed is not None:
        write_global_statistics(out, borrowed, config.cmvn.variances)
    elif config.cmvn.by != "none":
        write_statistics(out, statistics.items(), directory.utt2spk, config.cmvn)
    log.info("%d utterances, %d frames of %d dimensions", len(statistics), frames, config.dim)
    write_counts(out, utterances=len(statistics), frames=frames, empty=len(empty))


def _all_features(
    config: FeatsConfig, directory: DataDirectory
) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    utterances = directory.utterances
    paths = [Path(directory.recordings[each]) for each in utterances]
    compute = partial(_features, config, directory.recording_table)
    # Small files and a fast reader: a process would cost more than it saves.
    nj = config.nj if directory.recording_table == "wav.scp" else 1
    results = map_jobs(compute, paths, nj, "features", "utterances")
    yield from zip(utterances, results, strict=True)


def _features(config: FeatsConfig, table: str, path: Path) -> npt.NDArray[np.float32]:
    if table == "wav.scp":
        cepstra = read_mfcc(path, config.mfcc)
    else:
        cepstra = read_sphinx_cepstra(path, config.mfcc.num_ceps)
    cepstra = cepstra[:, : config.kept_ceps]
    if not len(cepstra):
        return cepstra
    return add_deltas(cepstra, config.delta_order, config.delta_window)


def _report_empty(config: FeatsConfig, empty: set[str], total: int) -> None:
    for utterance in sorted(empty):
        log.warning("%s: %s has no frames, dropped", config.data, utterance)
    if len(empty) > config.max_empty * total:
        raise UserError(
            f"{config.data}: {len(empty)} of {total} utterances have no frames, such as "
            f"{min(empty)}; repair the files, or raise max_empty={config.max_empty}"
        )
