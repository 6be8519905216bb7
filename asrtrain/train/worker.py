"""What each worker does from start to end: set up, train epoch by epoch, keep the best model."""

import json
import logging
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from asrtrain.frames.order import FrameOrder
from asrtrain.frames.shards import FrameSet
from asrtrain.io.log import log_file
from asrtrain.io.stage import LOG, write_counts
from asrtrain.nnet.model_file import FINAL_MODEL, log_priors_from_counts, new_model, save_model
from asrtrain.onebit.codec import codec_for
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.replicas import digest
from asrtrain.onebit.transport import Transport, sum_over_workers
from asrtrain.train.config import TrainConfig
from asrtrain.train.environment import rank
from asrtrain.train.launch import process_group
from asrtrain.train.loop import Totals, Trainer
from asrtrain.train.momentum import momentum_for
from asrtrain.train.newbob import NewBob

SUMMARY = "summary.json"

log = logging.getLogger(__name__)


def run_worker(config: TrainConfig, out: Path | None) -> None:
    """Train as one of the workers; the one that is given `out` writes the results there."""
    with process_group(config.launch) as transport:
        _Run(config, out, transport).run()


def launched_worker(config: TrainConfig, out: Path) -> None:
    """A worker that our own launcher started; worker 0 writes and logs."""
    leader = rank() == 0
    with log_file(out / LOG) if leader else nullcontext():
        run_worker(config, out if leader else None)


class _Run:
    """A training run as one worker sees it."""

    def __init__(self, config: TrainConfig, out: Path | None, transport: Transport) -> None:
        self.config, self.out, self.transport = config, out, transport
        self.data, self.dev = FrameSet(Path(config.frames)), FrameSet(Path(config.dev))
        self.order = FrameOrder(self.data.shard_frames, config.trainer.seed)
        self.trainer = _new_trainer(config, self.data, transport)
        self.wire_bytes = 0.0

    def run(self) -> None:
        """All epochs, then the best model's figures."""
        self._log_settings()
        begin = perf_counter()
        initial = self.trainer.evaluate(self.dev, "dev").per_frame("dev")
        schedule = NewBob(self.config.schedule, initial["dev_loss"])
        epochs, finished = 0, False
        while not finished:
            epochs += 1
            finished = self._epoch(epochs, schedule)
        seconds = perf_counter() - begin
        self._finish(epochs, seconds)

    def _epoch(self, epoch: int, schedule: NewBob) -> bool:
        """Train, judge and, if rejected, undo one epoch; return whether it was the last."""
        trainer, begin = self.trainer, perf_counter()
        before, sent = trainer.state(), self.transport.bytes_sent
        trainer.optimizer.rate = rate = schedule.learning_rate
        train = trainer.train_epoch(self.data, self.order, epoch)
        sent = self.transport.bytes_sent - sent
        seconds = perf_counter() - begin
        self.wire_bytes += sum_over_workers([sent], self.transport)[0]
        residual = trainer.exchange.residual_norm()
        dev = trainer.evaluate(self.dev, "dev").per_frame("dev")
        verdict = schedule.judge(dev["dev_loss"])
        if not verdict.accepted:
            trainer.load_state(before)
        self._report(
            {"epoch": epoch, "learning_rate": rate}
            | train.per_frame("train")
            | dev
            | {"accepted": verdict.accepted, "seconds": seconds, "frames": train.frames}
            | {"frames_per_second": train.frames / seconds, "residual_norm": residual}
        )
        return verdict.finished

    def _report(self, figures: dict[str, Any]) -> None:
        if self.out is None:
            return
        write_counts(self.out, **figures, time_spent=self.trainer.time_spent())
        log.info(
            "epoch %d: rate %.6g, train loss %.4f, frame accuracy %.2f %%; dev loss %.4f, frame "
            "accuracy %.2f %%; %.0f frames/s%s",
            figures["epoch"],
            figures["learning_rate"],
            figures["train_loss"],
            100 * figures["train_frame_accuracy"],
            figures["dev_loss"],
            100 * figures["dev_frame_accuracy"],
            figures["frames_per_second"],
            "" if figures["accepted"] else " (rejected, undone)",
        )

    def _finish(self, epochs: int, seconds: float) -> None:
        train = self.trainer.evaluate(self.data, "training set")
        dev = self.trainer.evaluate(self.dev, "dev")
        if self.out is not None:
            summary = self._summary(train, dev, epochs, seconds)
            (self.out / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
            save_model(self.trainer.model, self.out / FINAL_MODEL)
            _log_time(summary)
            log.info("model SHA-256 %s", summary["sha256"])

    def _summary(self, train: Totals, dev: Totals, epochs: int, seconds: float) -> dict[str, Any]:
        trainer = self.trainer
        frames = epochs * self.data.num_frames
        return {
            "exchange": self.config.exchange.method,
            "workers": self.transport.workers,
            "parameters": sum(each.numel() for each in trainer.parameters),
            "seed": self.config.trainer.seed,
            "epochs": epochs,
            "steps": trainer.steps,
            **train.per_frame("train"),
            **dev.per_frame("dev"),
            "wire_bytes_per_step": round(self.wire_bytes / trainer.steps),
            "seconds": seconds,
            "frames": frames,
            "frames_per_second": frames / seconds,
            "time_spent": trainer.time_spent(),
            "sha256": digest(trainer.parameters),
        }

    def _log_settings(self) -> None:
        if self.out is None:
            return
        codec = codec_for(self.config.exchange)
        log.info(
            "exchange %s: %d bit(s) a value, %d worker(s) with %d thread(s), backend %s; "
            "%d frames a step, %d steps an epoch",
            self.config.exchange.method,
            codec.bits,
            self.transport.workers,
            torch.get_num_threads(),
            "gloo" if self.transport.workers > 1 else "none",
            self.config.trainer.minibatch,
            self.order.steps(self.config.trainer.minibatch),
        )
        log.info(
            "%d training frames, %d dev frames, %d senones, %d parameters; "
            "%d bytes a step on the wire",
            self.data.num_frames,
            self.dev.num_frames,
            self.data.num_senones,
            sum(each.numel() for each in self.trainer.parameters),
            self.trainer.exchange.wire_bytes(),
        )


def _new_trainer(config: TrainConfig, data: FrameSet, transport: Transport) -> Trainer:
    log_priors = log_priors_from_counts(torch.from_numpy(data.pdf_counts))
    model = new_model(config.model, data.dim, log_priors, config.trainer.seed)
    exchange = StripedExchange(
        list(model.network.parameters()), codec_for(config.exchange), transport
    )
    optimizer = momentum_for(exchange.owned_shapes(), config.trainer.momentum_frames)
    return Trainer(config.trainer, model, exchange, optimizer, transport)


def _log_time(summary: dict[str, Any]) -> None:
    spent = summary["time_spent"]
    total = sum(spent.values()) or 1.0
    shares = ", ".join(f"{key} {100 * value / total:.0f} %" for key, value in spent.items())
    log.info(
        "%d steps in %.1f s; of worker 0's time: %s", summary["steps"], summary["seconds"], shares
    )
