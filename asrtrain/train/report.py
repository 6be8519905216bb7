"""What a run says of itself: log lines, metrics.jsonl, TensorBoard scalars."""

import logging
import os
from pathlib import Path
from typing import Any

import torch

from asrtrain.frames.shards import FrameSet
from asrtrain.io.stage import COUNTS, write_counts
from asrtrain.onebit.codec import Codec
from asrtrain.train.config import FRAMES_AN_HOUR, TrainConfig
from asrtrain.train.loop import Trainer

SUMMARY = "summary.json"
TENSORBOARD = "tensorboard"

log = logging.getLogger(__name__)


class Report:
    """Writes to `out`; without it, in all processes but one, it is silent."""

    def __init__(
        self,
        config: TrainConfig,
        trainer: Trainer,
        data: FrameSet,
        dev: FrameSet,
        out: Path | None,
    ) -> None:
        self._config, self._trainer, self._out = config, trainer, out
        self._data, self._dev = data, dev
        self._scalars: Any = None

    def begin(self, wire_bytes: int) -> None:
        """The settings that matter for speed, the sizes, and what an exchange puts on the wire."""
        if self._out is None:
            return
        config, exchange = self._config, self._trainer.exchange
        shards = config.parallel.model
        log.info(
            "exchange %s: %s, %d worker(s) in %d process(es) of %d thread(s) on "
            "%s%s; %s frames a step%s",
            config.exchange.method,
            exchange.form,
            exchange.workers,
            exchange.transport.size * shards,
            torch.get_num_threads(),
            config.launch.device,
            f", every model split over {shards} of them" if shards > 1 else "",
            config.trainer.minibatch_profile or config.trainer.minibatch,
            ", double-buffered" if config.exchange.double_buffer else "",
        )
        log.info(
            "%d training frames, %d dev frames, %d senones, %d parameters%s; "
            "%d bytes an exchange on the wire",
            self._data.num_frames,
            self._dev.num_frames,
            self._data.num_senones,
            sum(each.numel() for each in self._trainer.model.network.parameters()),
            f", of which {sum(each.numel() for each in self._trainer.parameters)} in this process"
            if shards > 1
            else "",
            wire_bytes,
        )

    def codec(self, codec: Codec, position: int) -> None:
        """The codec changed at a position in the data."""
        if self._out is not None:
            log.info("exchange at %d bit(s) a value from frame %d on", codec.bits, position)

    def search(self, found: dict[str, Any]) -> None:
        """What a search has tried and chosen."""
        if self._out is None:
            return
        figures = ", ".join(f"{key:g}: {_accuracy(each)}" for key, each in found["tried"])
        log.info(
            "%s %g from frame %d on; frame accuracy of trials %s; they cost %d frames, %.1f s",
            found["searched"],
            found["chosen"],
            found["position"],
            figures,
            found["frames"],
            found["seconds"],
        )

    def epoch(self, figures: dict[str, Any]) -> None:
        """The figures of an epoch."""
        if self._out is None:
            return
        write_counts(self._out, **figures, time_spent=self._trainer.time_spent())
        self._write_scalars(figures)
        log.info(
            "epoch %d: rate %.6g, train loss %.4f, frame accuracy %.2f %%; dev loss %.4f, frame "
            "accuracy %.2f %%; %.0f frames/s; residual norm %.3g, gradient norm %.3g%s",
            figures["epoch"],
            figures["learning_rate"],
            figures["train_loss"],
            100 * figures["train_frame_accuracy"],
            figures["dev_loss"],
            100 * figures["dev_frame_accuracy"],
            figures["frames_per_second"],
            figures["residual_norm"],
            figures["gradient_norm"],
            "" if figures["accepted"] else " (rejected, undone)",
        )

    def end(self, summary: dict[str, Any]) -> None:
        """Where the time went, and the digest of the model."""
        spent = summary["time_spent"]
        total = sum(spent.values()) or 1.0
        shares = ", ".join(f"{key} {100 * value / total:.0f} %" for key, value in spent.items())
        log.info(
            "%d steps in %.1f s (%.0f frames/s, %.2f hours of audio); of process 0's time: %s",
            summary["steps"],
            summary["seconds"],
            summary["frames_per_second"],
            summary["frames"] / FRAMES_AN_HOUR,
            shares,
        )
        log.info("model SHA-256 %s", summary["sha256"])
        if self._scalars:
            self._scalars.close()

    def state(self) -> dict[str, Any]:
        """How much of metrics.jsonl belongs to a checkpoint."""
        metrics = self._out and self._out / COUNTS
        return {"metrics_bytes": metrics.stat().st_size if metrics and metrics.exists() else 0}

    def resumed(self, state: dict[str, Any], steps: int, epochs: int) -> None:
        """Drop what was written after the checkpoint that the run goes on from."""
        if self._out is None:
            return
        if (self._out / COUNTS).exists():
            os.truncate(self._out / COUNTS, state["metrics_bytes"])
        log.info("going on from step %d, after %d epoch(s)", steps, epochs)

    def _write_scalars(self, figures: dict[str, Any]) -> None:
        if self._scalars is None:
            # Imported late: it is slow, and other verbs have no use for it.
            from torch.utils.tensorboard import SummaryWriter

            self._scalars = SummaryWriter(str(self._out / TENSORBOARD))
        for key, value in figures.items():
            if isinstance(value, float):
                self._scalars.add_scalar(key, value, figures["epoch"])
        for key, value in self._trainer.time_spent().items():
            self._scalars.add_scalar(f"seconds/{key}", value, figures["epoch"])


def _accuracy(share: float | None) -> str:
    return "diverged" if share is None else f"{100 * share:.2f} %"
