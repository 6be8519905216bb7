"""The verbs `data-split` and `data-subset`: parts of a data directory, chosen by a seed."""

import logging
import random
from dataclasses import dataclass
from pathlib import Path

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.settings import StageConfig, require, require_choice
from asrtrain.io.stage import stage, write_counts

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SplitConfig(StageConfig):
    """Settings of `data-split`."""

    data: str
    """Data directory."""
    speakers: int = 8
    """How many speakers to hold out; at least 1."""
    seed: int = 1
    """Chooses them."""
    part: str = "train"
    """Which part to write: dev, the speakers held out, or train, all others."""

    def __post_init__(self) -> None:
        require(self.speakers >= 1, f"speakers={self.speakers}: expected at least 1")
        require_choice("part", self.part, ("train", "dev"))


@dataclass(frozen=True, kw_only=True)
class SubsetConfig(StageConfig):
    """Settings of `data-subset`."""

    data: str
    """Data directory."""
    speakers: int = 0
    """How many speakers to keep; 0 for all."""
    utterances: int = 0
    """How many of their utterances to keep; 0 for all."""
    seed: int = 1
    """Chooses them."""

    def __post_init__(self) -> None:
        for key in ("speakers", "utterances"):
            value = getattr(self, key)
            require(value >= 0, f"{key}={value}: expected 0 or more")


@stage("data-split", inputs=("data",))
def split(config: SplitConfig, out: Path) -> None:
    """Hold out some speakers: part=dev writes them, part=train all others, for the same seed."""
    directory = DataDirectory.read(config.data)
    held_out = set(_choose(directory, "speakers", config.speakers, config.seed))
    require(
        len(held_out) < len(directory.spk2utt),
        f"{config.data}: speakers={config.speakers} leaves none of {len(directory.spk2utt)}",
    )
    dev = config.part == "dev"
    _write(
        directory,
        [each for each in directory.utterances if (directory.utt2spk[each] in held_out) == dev],
        out,
    )


@stage("data-subset", inputs=("data",))
def subset(config: SubsetConfig, out: Path) -> None:
    """Keep some speakers, and of their utterances some, each drawn by the seed."""
    directory = DataDirectory.read(config.data)
    if config.speakers:
        speakers = _choose(directory, "speakers", config.speakers, config.seed)
        kept = [utterance for each in speakers for utterance in directory.spk2utt[each]]
        directory = directory.subset(kept)
    utterances = directory.utterances
    if config.utterances:
        utterances = _choose(directory, "utterances", config.utterances, config.seed)
    _write(directory, utterances, out)


def _choose(directory: DataDirectory, what: str, count: int, seed: int) -> list[str]:
    among = directory.utterances if what == "utterances" else sorted(directory.spk2utt)
    require(
        count <= len(among), f"{directory.path}: {what}={count} but there are only {len(among)}"
    )
    return random.Random(seed).sample(among, count)


def _write(directory: DataDirectory, utterances: list[str], out: Path) -> None:
    part = directory.subset(utterances)
    part.write(out)
    counts = {"utterances": len(part.utterances), "speakers": len(part.spk2utt)}
    log.info("%(utterances)d utterances of %(speakers)d speakers", counts)
    write_counts(out, **counts)
