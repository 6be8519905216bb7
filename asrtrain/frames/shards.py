"""A set of labelled frames on disk: shards that are memory-mapped, so that any size opens at once.

Each shard holds whole utterances, one after the other:

    NNN.features.npy    (T, D) float32
    NNN.labels.npy      (T,) int32 senone of each frame
    NNN.bounds.npy      (utterances + 1,) int64: utterance u is the frames bounds[u] to bounds[u+1]

`frames.json` gives the dimensions, `pdf_counts` the frames of each senone as Kaldi's text vector.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.io.errors import UserError

INDEX = "frames.json"
PDF_COUNTS = "pdf_counts"

Features = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """One shard, memory-mapped."""

    features: Features
    labels: Labels
    bounds: Indices


class FrameSet:
    """Labelled frames of a folder that the `frames` verb made.

    Frames are numbered 0 to `num_frames` - 1 over the shards in order. Raises UserError if the
    folder is not such a set.
    """

    def __init__(self, directory: Path) -> None:
        if not (directory / INDEX).is_file():
            raise UserError(
                f"{directory}: no {INDEX}; make it with `asrtrain frames out={directory}`"
            )
        index = json.loads((directory / INDEX).read_text())
        self.dim: int = index["dim"]
        self.num_senones: int = index["num_senones"]
        self.shards = [_open_shard(directory, number) for number in range(index["shards"])]
        self.shard_frames = [len(shard.labels) for shard in self.shards]
        self._starts = np.concatenate(([0], np.cumsum(self.shard_frames)))
        self.pdf_counts = read_pdf_counts(directory / PDF_COUNTS)

    @property
    def num_frames(self) -> int:
        """Frames in all shards."""
        return int(self._starts[-1])

    def batch(self, indices: Indices, left: int, right: int) -> tuple[Features, Labels]:
        """Spliced features (N, (left + 1 + right) * D) and labels (N,) of the frames `indices`.

        Context past an utterance's edge repeats its first or last frame, as Kaldi's splice-feats.
        """
        width = left + 1 + right
        features = np.empty((len(indices), width, self.dim), np.float32)
        labels = np.empty(len(indices), np.int32)
        which = np.searchsorted(self._starts, indices, side="right") - 1
        offsets = np.arange(-left, right + 1)
        for number in np.unique(which):
            shard, chosen = self.shards[number], which == number
            local = indices[chosen] - self._starts[number]
            utterance = np.searchsorted(shard.bounds, local, side="right") - 1
            first, last = shard.bounds[utterance], shard.bounds[utterance + 1] - 1
            context = np.clip(local[:, None] + offsets, first[:, None], last[:, None])
            features[chosen] = shard.features[context]
            labels[chosen] = shard.labels[local]
        return features.reshape(len(indices), width * self.dim), labels


def write_frame_set(
    directory: Path,
    utterances: Iterable[tuple[Features, Labels]],
    num_senones: int,
    shard_frames: int,
) -> int:
    """Write a set from each utterance's features (T, D) and labels (T,); return its frames.

    A shard closes with the utterance that brings it to `shard_frames` frames.
    """
    counts = np.zeros(num_senones, np.int64)
    pending: list[tuple[Features, Labels]] = []
    shards, dim, held = 0, 0, 0
    for features, labels in utterances:
        counts += np.bincount(labels, minlength=num_senones)
        pending.append((features, labels))
        dim, held = features.shape[1], held + len(labels)
        if held >= shard_frames:
            _write_shard(directory, shards, pending)
            shards, pending, held = shards + 1, [], 0
    if pending:
        _write_shard(directory, shards, pending)
        shards += 1
    index = {"dim": dim, "num_senones": num_senones, "shards": shards}
    (directory / INDEX).write_text(json.dumps(index) + "\n")
    (directory / PDF_COUNTS).write_text(f"[ {' '.join(map(str, counts))} ]\n")
    return int(counts.sum())


def read_pdf_counts(path: Path) -> Indices:
    """Frames of each senone from Kaldi's text form `[ 12 7 ... ]`; UserError if it is not that."""
    words = path.read_text().split()
    if len(words) < 3 or words[0] != "[" or words[-1] != "]":
        raise UserError(f"{path}: expected counts in Kaldi's text form '[ 12 7 ... ]'")
    return np.array(words[1:-1], np.int64)


def _write_shard(directory: Path, number: int, utterances: list[tuple[Features, Labels]]) -> None:
    lengths = [len(labels) for _, labels in utterances]
    arrays = {
        "features": np.concatenate([features for features, _ in utterances]),
        "labels": np.concatenate([labels for _, labels in utterances]),
        "bounds": np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
    }
    for name, array in arrays.items():
        np.save(directory / f"{number:03d}.{name}.npy", array, allow_pickle=False)


def _open_shard(directory: Path, number: int) -> Shard:
    arrays = {}
    for name in ("features", "labels", "bounds"):
        path = directory / f"{number:03d}.{name}.npy"
        try:
            arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UserError(
                f"{path}: cannot be read as an array ({error}); make the set again"
            ) from error
    return Shard(**arrays)
