"""Small sets of labelled frames that a network can learn: each senone has a mean of its own."""

from pathlib import Path

import numpy as np

from asrtrain.frames.shards import write_frame_set

SENONES, DIM = 5, 4


def make_set(directory: Path, lengths: list[int], seed: int, shard_frames: int = 100) -> Path:
    """A set of utterances of the given lengths; the senones' means are the same for any seed."""
    means = np.random.default_rng(0).standard_normal((SENONES, DIM)) * 2
    generator = np.random.default_rng(seed)
    utterances = []
    for length in lengths:
        labels = generator.integers(0, SENONES, length).astype(np.int32)
        noise = generator.standard_normal((length, DIM))
        utterances.append(((means[labels] + noise).astype(np.float32), labels))
    directory.mkdir(parents=True)
    write_frame_set(directory, utterances, SENONES, shard_frames)
    return directory
