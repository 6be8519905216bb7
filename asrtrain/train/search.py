"""Trials: train a little with other settings, look at the frame accuracy, and go back exactly.

They choose the minibatch size while training goes on (Seide et al. 2014, section 4): the largest
whose training-set frame accuracy, on the audio that comes next, is within a margin of the best. A
trial runs without double buffering even if training has it: with it smaller sizes would win, and
the gain would be lost (section 5.4). One that meets a NaN is rejected.
"""

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

from asrtrain.frames.order import FrameOrder
from asrtrain.frames.shards import FrameSet
from asrtrain.io.progress import progress_bar
from asrtrain.io.settings import require
from asrtrain.train.config import FRAMES_AN_HOUR, SearchConfig
from asrtrain.train.loop import DivergedError, Trainer
from asrtrain.train.totals import over_workers

RATE_OCTAVES = 3
"""Initial rates are tried from 2^-RATE_OCTAVES to 2^RATE_OCTAVES times the one given."""


class Trials:
    """Tries settings on the frames of `order` that follow a position."""

    def __init__(
        self, config: SearchConfig, trainer: Trainer, data: FrameSet, order: FrameOrder
    ) -> None:
        self._config, self._trainer = config, trainer
        self._data, self._order = data, order
        self._frames = max(1, round(config.hours * FRAMES_AN_HOUR))
        self.history: list[dict[str, Any]] = []
        """Of each search: where it was, what was tried, what was chosen, what it cost."""

    def best_minibatch(
        self, current: int, position: int, begin_epoch: Callable[[int], None]
    ) -> int:
        """The minibatch size to go on with; a collective.

        Candidates grow by the square root of 2 from half of `current` to `max_growth` times it, and
        end early where accuracy has left the margin. `begin_epoch(size)` prepares the optimizer.
        """
        begin, tried = perf_counter(), dict[int, float | None]()
        for size in minibatch_candidates(self._config, current):
            begin_epoch(size)
            tried[size] = self._accuracy(position, size, f"minibatch {size}")
            if size > current and not self._is_good(tried, size):
                break
        good = [size for size in tried if self._is_good(tried, size)]
        chosen = max(good, default=min(tried))
        self._record("minibatch", position, tried, chosen, perf_counter() - begin)
        return chosen

    def best_rate(
        self, given: float, position: int, size: int, begin_epoch: Callable[[float], None]
    ) -> float:
        """The learning rate, out of powers of 2 times `given`, with the best accuracy.

        Raises UserError if training diverges at all of them.
        """
        begin, tried = perf_counter(), dict[float, float | None]()
        for octave in range(-RATE_OCTAVES, RATE_OCTAVES + 1):
            rate = given * 2.0**octave
            begin_epoch(rate)
            tried[rate] = self._accuracy(position, size, f"rate {rate:.6g}")
            if tried[rate] is None:
                break
        require(
            any(each is not None for each in tried.values()),
            f"schedule.learning_rate={given}: training diverges at {min(tried):.6g} already, the "
            "least rate tried; give a lower one",
        )
        chosen = max(tried, key=lambda rate: tried[rate] or 0.0)
        self._record("learning rate", position, tried, chosen, perf_counter() - begin)
        return chosen

    def _is_good(self, tried: dict[Any, float | None], key: Any) -> bool:
        best = max((each for each in tried.values() if each is not None), default=0.0)
        accuracy = tried[key]
        return accuracy is not None and accuracy >= (1 - self._config.margin) * best

    def _accuracy(self, position: int, size: int, description: str) -> float | None:
        """Frame accuracy of the frames as they were trained on; None after a NaN. Undone."""
        trainer = self._trainer
        trainer.drain()
        state, totals, double = trainer.state(), trainer.totals, trainer.double_buffer
        wire_bytes = trainer.wire_bytes
        trainer.new_totals()
        trainer.double_buffer = False
        finite = True
        try:
            with progress_bar(f"trying {description}", self._frames, "frames") as bar:
                end = position + self._frames
                for minibatch in self._order.minibatches(position, end, size):
                    trainer.step(self._data, minibatch)
                    bar.update(len(minibatch))
        except DivergedError:
            finite = False
        found = over_workers(trainer.totals, trainer.transport)
        finite = finite and math.isfinite(found.loss) and trainer.lost == state.shared["lost"]
        trainer.load_state(state)
        trainer.totals, trainer.double_buffer, trainer.wire_bytes = totals, double, wire_bytes
        return found.correct / found.frames if finite else None

    def _record(
        self, what: str, position: int, tried: dict[Any, float | None], chosen: Any, seconds: float
    ) -> None:
        frames = self._frames * len(tried)
        self.history.append(
            {
                "searched": what,
                "position": position,
                "tried": [[key, accuracy] for key, accuracy in tried.items()],
                "chosen": chosen,
                "frames": frames,
                "seconds": seconds,
            }
        )


def minibatch_candidates(config: SearchConfig, current: int) -> list[int]:
    """Sizes to try, smallest first, each about the square root of 2 times the one before it."""
    largest = 2 * math.log2(config.max_growth)
    sizes = [round(current * 2 ** (step / 2)) for step in range(-2, math.floor(largest) + 1)]
    within = {min(max(size, config.min_minibatch), config.max_minibatch) for size in sizes}
    return sorted(within)
