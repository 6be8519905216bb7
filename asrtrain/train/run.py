"""A training run: epochs, their judgement, checkpoints, and the best model at the end."""

import json
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from asrtrain.frames.order import FrameOrder
from asrtrain.frames.shards import FrameSet
from asrtrain.io.progress import progress_bar
from asrtrain.io.stage import CHECKPOINTS, partial_directory
from asrtrain.nnet.model_file import FINAL_MODEL, save_model
from asrtrain.onebit.codec import Float32Codec, codec_for
from asrtrain.onebit.replicas import digest
from asrtrain.onebit.transport import sum_over_workers
from asrtrain.train.checkpoint import Checkpoints, RunState
from asrtrain.train.config import FRAMES_AN_HOUR, TrainConfig
from asrtrain.train.loop import Trainer, TrainerState
from asrtrain.train.parallel import Grid, whole_model
from asrtrain.train.report import SUMMARY, Report
from asrtrain.train.schedule import at_epoch, schedule_for
from asrtrain.train.search import Trials
from asrtrain.train.totals import over_workers

EVERY_STEPS_CLOCK = 50
"""Steps between two looks at the clock, on which all processes have to agree."""


class Run:
    """A training run as one process sees it; the one with `out` writes and logs."""

    def __init__(
        self,
        config: TrainConfig,
        trainer: Trainer,
        grid: Grid,
        data: FrameSet,
        dev: FrameSet,
        out: Path | None,
    ) -> None:
        self.config, self.trainer, self.data, self.dev = config, trainer, data, dev
        self.grid, self.out = grid, out
        self.order = FrameOrder(data.shard_frames, config.trainer.seed)
        self.report = Report(config, trainer, data, dev, out)
        folder = partial_directory(Path(config.out)) / CHECKPOINTS
        self.checkpoints = Checkpoints(folder, config.checkpoint.keep, trainer.exchange, grid)
        self.position, self.epoch = 0, 0
        self.minibatch = config.first_minibatch
        self.trials = Trials(config.search, trainer, data, self.order)
        self._next_search = self._search_frames()
        self.seconds = 0.0
        self.finished = False
        self._before: TrainerState | None = None
        self._epoch_begin, self._epoch_wire_bytes, self._epoch_seconds = 0, 0, 0.0
        self._saved_now()

    def run(self) -> None:
        """All epochs, from the newest checkpoint on, then the best model's figures."""
        self.report.begin(self._of_all_shards(self.trainer.exchange.wire_bytes()))
        if not self._resume():
            loss = self.trainer.evaluate(self.dev, "dev").per_frame("dev")["dev_loss"]
            self.schedule = schedule_for(self.config.schedule, loss)
        while not self.finished:
            self._train_epoch()
            self._judge_epoch()
            self._save()
        self._finish()

    def _train_epoch(self) -> None:
        """The epoch, or what is left of it."""
        if self._before is None:
            self._before = self.trainer.state()
            self.trainer.new_totals()
            self._epoch_begin = self.position
            self._epoch_wire_bytes, self._epoch_seconds = self.trainer.wire_bytes, self.seconds
        end = self._epoch_begin + (self.config.trainer.epoch_frames or self.data.num_frames)
        with progress_bar(f"epoch {self.epoch + 1}", end - self._epoch_begin, "frames") as bar:
            bar.update(self.position - self._epoch_begin)
            while self.position < end:
                self._use_exchange()
                self._search()
                self._segment(min(end, self._next_event()), bar)
        self.trainer.drain()
        self._tick()

    def _segment(self, end: int, bar: Any) -> None:
        """Steps up to position `end`, all of one kind."""
        size = self._minibatch()
        self._begin_epoch(size, self.schedule.learning_rate)
        for minibatch in self.order.minibatches(self.position, end, size):
            self.trainer.step(self.data, minibatch)
            self.position += len(minibatch)
            bar.update(len(minibatch))
            if self._checkpoint_is_due():
                self._tick()
                self._save()

    def _begin_epoch(self, size: int, rate: float) -> None:
        self.trainer.begin_epoch(rate, self.epoch, size)

    def _search(self) -> None:
        """The trials that are due at this position."""
        schedule, size = self.schedule, self._minibatch()
        if self.config.schedule.auto and not self.trials.history:
            schedule.learning_rate = self.trials.best_rate(
                schedule.learning_rate, self.position, size, partial(self._begin_epoch, size)
            )
            self.report.search(self.trials.history[-1])
        if self.config.trainer.minibatch == "auto" and self.position >= self._next_search:
            self.minibatch = self.trials.best_minibatch(
                size, self.position, lambda size: self._begin_epoch(size, schedule.learning_rate)
            )
            self.report.search(self.trials.history[-1])
            self._next_search += self._search_frames()

    def _judge_epoch(self) -> None:
        """Score the epoch and, if it is rejected, undo it."""
        trainer, rate = self.trainer, self.schedule.learning_rate
        totals = over_workers(trainer.totals, trainer.transport)
        dev = trainer.evaluate(self.dev, "dev").per_frame("dev")
        verdict = self.schedule.judge(dev["dev_loss"])
        norms = self._norms()
        steps = trainer.steps
        if not verdict.accepted and self._before:
            trainer.load_state(self._before)
            trainer.steps = steps
        self._before = None
        self.epoch += 1
        self.finished = verdict.finished
        seconds = self.seconds - self._epoch_seconds
        self.report.epoch(
            {"epoch": self.epoch, "learning_rate": rate, "minibatch": self._minibatch()}
            | totals.per_frame("train")
            | dev
            | {"accepted": verdict.accepted, "seconds": seconds, "frames": int(totals.frames)}
            | {"frames_per_second": totals.frames / seconds, "steps": steps}
            | {"wire_bytes": self._of_all_shards(trainer.wire_bytes - self._epoch_wire_bytes)}
            | norms
        )
        self._clock = perf_counter()

    def _norms(self) -> dict[str, float]:
        """Over all workers: of what they owe, and of their last sub-gradients measured.

        A bias counts once for each shard of the model, as it is exchanged.
        """
        trainer = self.trainer
        squares = [
            [trainer.exchange.residual_norm(worker) ** 2, gradient]
            for worker, gradient in enumerate(trainer.gradient_squares)
        ]
        residual, gradient = sum_over_workers(squares, self.grid.world)
        return {"residual_norm": residual**0.5, "gradient_norm": gradient**0.5}

    def _of_all_shards(self, figure: float) -> int:
        """The sum of what the shards of this replica count; a collective."""
        return round(sum_over_workers([[figure]], self.grid.shards)[0])

    def _finish(self) -> None:
        train = self.trainer.evaluate(self.data, "training set")
        dev = self.trainer.evaluate(self.dev, "dev")
        trainer = self.trainer
        model, wire_bytes = whole_model(trainer.model), self._of_all_shards(trainer.wire_bytes)
        if self.out is None:
            return
        parameters = list(model.network.parameters())
        summary = {
            "exchange": self.config.exchange.method,
            "workers": trainer.exchange.workers,
            "processes": self.grid.world.size,
            "shards": self.grid.shards.size,
            "parameters": sum(each.numel() for each in parameters),
            "seed": self.config.trainer.seed,
            "epochs": self.epoch,
            "steps": trainer.steps,
            **train.per_frame("train"),
            **dev.per_frame("dev"),
            "wire_bytes_per_step": round(wire_bytes / trainer.steps),
            "seconds": self.seconds,
            "frames": self.position,
            "frames_per_second": self.position / self.seconds,
            "minibatch": self._minibatch(),
            "searches": self.trials.history,
            "time_spent": trainer.time_spent(),
            "sha256": digest(parameters),
        }
        (self.out / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
        save_model(model, self.out / FINAL_MODEL)
        self.report.end(summary)

    def _minibatch(self) -> int:
        """Frames of a step now."""
        profile = self.config.trainer.minibatch_profile
        return int(at_epoch(profile, self.epoch)) if profile else self.minibatch

    def _next_event(self) -> int:
        """The next position at which steps of another kind may begin."""
        events = [self._warm_frames()]
        if self.config.trainer.minibatch == "auto":
            events.append(self._next_search)
        return min((each for each in events if each > self.position), default=sys.maxsize)

    def _search_frames(self) -> int:
        return max(1, round(self.config.search.every_hours * FRAMES_AN_HOUR))

    def _warm_frames(self) -> int:
        return round(self.config.exchange.warm_start_hours * FRAMES_AN_HOUR)

    def _use_exchange(self) -> None:
        """The exchange that belongs to the position: a plain one in float32 for a warm start."""
        settings = self.config.exchange
        warm = self.position < self._warm_frames()
        self.trainer.double_buffer = settings.double_buffer and not warm
        codec = Float32Codec() if warm else codec_for(settings)
        if codec != self.trainer.exchange.codec:
            self.trainer.drain()
            self.trainer.exchange.use(codec)
            self.report.codec(codec, self.position)

    def _tick(self) -> None:
        """Count the time since the last tick as training time."""
        now = perf_counter()
        self.seconds += now - self._clock
        self._clock = now

    def _checkpoint_is_due(self) -> bool:
        config, steps = self.config.checkpoint, self.trainer.steps
        if not self.trainer.can_be_saved:
            return False
        if config.steps and steps - self._saved_at_step >= config.steps:
            return True
        if not config.minutes or steps - self._looked_at_step < EVERY_STEPS_CLOCK:
            return False
        self._looked_at_step = steps
        self.trainer.settle()
        return self.grid.leader_says(perf_counter() - self._saved_at > 60 * config.minutes)

    def _save(self) -> None:
        """Write a checkpoint; training goes on as if there had been none."""
        self.trainer.settle()
        states = {"now": self.trainer.state()}
        if self._before:
            states["before"] = self._before
        run = {
            "position": self.position,
            "epoch": self.epoch,
            "epoch_begin": self._epoch_begin,
            "epoch_wire_bytes": self._epoch_wire_bytes,
            "epoch_seconds": self._epoch_seconds,
            "wire_bytes": self.trainer.wire_bytes,
            "seconds": self.seconds,
            "finished": self.finished,
            "schedule": self.schedule.state(),
            "minibatch": self.minibatch,
            "next_search": self._next_search,
            "searches": self.trials.history,
            "report": self.report.state(),
        }
        state = RunState(run, states, self.trainer.totals)
        self.checkpoints.save(self.trainer.steps, state)
        self._saved_now()

    def _resume(self) -> bool:
        """Go on from the newest checkpoint; return whether there was one."""
        fresh = self.trainer.state()
        saved = self.checkpoints.load(fresh)
        if saved is None:
            return False
        run = saved.run
        self.position, self.epoch = run["position"], run["epoch"]
        self._epoch_begin, self._epoch_wire_bytes = run["epoch_begin"], run["epoch_wire_bytes"]
        self._epoch_seconds, self.seconds = run["epoch_seconds"], run["seconds"]
        self.trainer.wire_bytes, self.finished = run["wire_bytes"], run["finished"]
        self.minibatch, self._next_search = run["minibatch"], run["next_search"]
        self.trials.history = run["searches"]
        self.schedule = schedule_for(self.config.schedule, 0.0)
        self.schedule.load_state(run["schedule"])
        self._use_exchange()
        self.trainer.load_state(saved.states["now"])
        self._before = saved.states.get("before")
        self.trainer.totals = saved.totals
        self.report.resumed(run["report"], self.trainer.steps, self.epoch)
        self._saved_now()
        return True

    def _saved_now(self) -> None:
        self._clock = self._saved_at = perf_counter()
        self._saved_at_step = self._looked_at_step = self.trainer.steps
