"""The order in which frames are seen: it depends on seed and epoch only, never on workers or time.

Shards are permuted; the frames of `window_shards` shards at a time are permuted among themselves
(CNTK's randomization window), so that random access stays within memory however large the set is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from asrtrain.frames.shards import Indices


@dataclass(frozen=True)
class FrameOrder:
    """Minibatches of frame numbers over a set whose shards have `shard_frames` frames."""

    shard_frames: list[int]
    seed: int
    window_shards: int = 8

    def minibatches(self, epoch: int, size: int) -> Iterator[Indices]:
        """The epoch's minibatches: `size` frame numbers each, the last one what is left over.

        Every frame comes once.
        """
        left_over = np.empty(0, np.int64)
        for window in self._windows(epoch):
            stream = np.concatenate((left_over, window))
            whole = len(stream) - len(stream) % size
            yield from stream[:whole].reshape(-1, size)
            left_over = stream[whole:]
        if len(left_over):
            yield left_over

    def steps(self, size: int) -> int:
        """How many minibatches an epoch has."""
        return -(-sum(self.shard_frames) // size)

    def _windows(self, epoch: int) -> Iterator[Indices]:
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        starts = np.concatenate(([0], np.cumsum(self.shard_frames)))
        shards = generator.permutation(len(self.shard_frames))
        for first in range(0, len(shards), self.window_shards):
            chosen = shards[first : first + self.window_shards]
            frames = np.concatenate([np.arange(starts[each], starts[each + 1]) for each in chosen])
            yield generator.permutation(frames)


def share(minibatch: Indices, rank: int, workers: int) -> Indices:
    """The contiguous part of a minibatch that worker `rank` of `workers` computes.

    Parts differ by one frame at most and may be empty at an epoch's end.
    """
    size = len(minibatch)
    return minibatch[size * rank // workers : size * (rank + 1) // workers]
