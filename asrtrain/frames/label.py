"""The verb `frames`: features and their senone labels, joined into shards for training."""

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asrtrain.feats.reader import FeatureReader, open_features
from asrtrain.frames.shards import Features, Labels, write_frame_set
from asrtrain.hmm.labels import read_pdf_labels
from asrtrain.io.errors import UserError
from asrtrain.io.progress import progress
from asrtrain.io.settings import StageConfig, require
from asrtrain.io.stage import stage, write_counts

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FramesConfig(StageConfig):
    """Settings of `frames`."""

    data: str
    """Features directory (from `feats`)."""
    ali: str
    """Alignment directory: from `align`, or from `import-ali`."""
    max_difference: int = 5
    """Features and labels that differ by fewer frames are cut to the shorter; else skipped."""
    max_lost: float = 0.05
    """Share of utterances, 0 to 1, that may be skipped or lack an alignment; more is an error."""
    shard_frames: int = 1_000_000
    """Frames a shard, at least; about 150 MB at 39 dimensions."""

    def __post_init__(self) -> None:
        require(
            self.max_difference >= 1, f"max_difference={self.max_difference}: expected at least 1"
        )
        require(0 <= self.max_lost <= 1, f"max_lost={self.max_lost}: expected a share from 0 to 1")
        require(self.shard_frames >= 1, f"shard_frames={self.shard_frames}: expected at least 1")


@stage("frames", inputs=("data", "ali"))
def label(config: FramesConfig, out: Path) -> None:
    """Join features and senone labels, frame by frame, into memory-mapped shards.

    The order is that of the utterance ids; `train` shuffles. An utterance whose features and
    labels differ in length by a few frames is cut to the shorter; by more, it is skipped, with a
    warning.
    """
    reader = open_features(config.data)
    alignment = read_pdf_labels(config.ali)
    lost: Counter[str] = Counter()
    frames = write_frame_set(
        out,
        _labelled(reader, alignment.labels, config, lost),
        alignment.num_pdfs,
        config.shard_frames,
    )
    total, skipped = len(reader.utterances), sum(lost.values())
    if skipped > config.max_lost * total:
        raise UserError(
            f"{config.data}: {skipped} of {total} utterances have no usable labels in {config.ali} "
            f"({', '.join(f'{count} {why}' for why, count in sorted(lost.items()))}); align the "
            f"same features again, or raise max_lost={config.max_lost}"
        )
    kept = total - skipped
    log.info("%d frames of %d utterances, %d senones", frames, kept, alignment.num_pdfs)
    write_counts(out, frames=frames, utterances=kept, senones=alignment.num_pdfs, **lost)


def _labelled(
    reader: FeatureReader, labels: dict[str, Labels], config: FramesConfig, lost: Counter[str]
) -> Iterator[tuple[Features, Labels]]:
    for utterance in progress(reader.utterances, "frames", len(reader.utterances), "utterances"):
        if utterance not in labels:
            log.warning(
                "%s: %s has no alignment in %s, skipped", config.data, utterance, config.ali
            )
            lost["unaligned"] += 1
            continue
        features, states = reader.read(utterance), labels[utterance]
        length = min(len(features), len(states))
        if abs(len(features) - len(states)) >= config.max_difference:
            log.warning(
                "%s: %s has %d frames of features but %d of labels, skipped",
                config.data,
                utterance,
                len(features),
                len(states),
            )
            lost["mismatched"] += 1
            continue
        yield features[:length], states[:length]
