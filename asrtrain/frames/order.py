"""The order in which frames are seen: it depends on the seed only, never on workers or time.

Frames come as one endless stream, pass after pass over the set, in which a position is the number
of frames before it. In a pass, shards are permuted; the frames of `window_shards` shards at a time
are permuted among themselves (CNTK's randomization window), so that random access stays within
memory however large the set is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from asrtrain.frames.shards import Indices


@dataclass(frozen=True)
class FrameOrder:
    """The stream of frame numbers over a set whose shards have `shard_frames` frames."""

    shard_frames: list[int]
    seed: int
    window_shards: int = 8

    def minibatches(self, begin: int, end: int, size: int) -> Iterator[Indices]:
        """The frames from position `begin` to `end` in minibatches of `size` frame numbers each.

        The last one is what is left over. Every frame comes once a pass.
        """
        left_over = np.empty(0, np.int64)
        for window in self._windows(begin, end):
            stream = np.concatenate((left_over, window))
            whole = len(stream) - len(stream) % size
            yield from stream[:whole].reshape(-1, size)
            left_over = stream[whole:]
        if len(left_over):
            yield left_over

    def _windows(self, begin: int, end: int) -> Iterator[Indices]:
        """The stream from `begin` to `end` in parts, a window each at most."""
        frames = sum(self.shard_frames)
        position = begin - begin % frames
        while position < end:
            for window in self._pass_windows(position // frames + 1):
                length = len(window)
                if position < end and position + length > begin:
                    yield window[max(begin - position, 0) : end - position]
                position += length

    def _pass_windows(self, number: int) -> Iterator[Indices]:
        """The windows of pass `number`, which counts from 1."""
        generator = np.random.Generator(np.random.PCG64([self.seed, number]))
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
