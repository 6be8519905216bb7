"""One worker's part in training: epochs of steps, evaluation, and going back.

Shapes: N frames of this worker's share of a minibatch, S senones.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from asrtrain.frames.order import FrameOrder, share
from asrtrain.frames.shards import FrameSet, Indices
from asrtrain.io.errors import UserError
from asrtrain.io.progress import progress_bar
from asrtrain.nnet.dnn import frame_scores
from asrtrain.nnet.model_file import AcousticModel
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.replicas import check_replicas
from asrtrain.onebit.transport import Transport, sum_over_workers
from asrtrain.train.config import TrainerConfig
from asrtrain.train.momentum import MomentumSgd

EVALUATION_FRAMES = 4096
"""Frames scored at a time: large enough to be fast, small enough for the cache."""


@dataclass
class Totals:
    """Sums over frames."""

    loss: float = 0.0
    """Cross entropy in nats."""
    correct: float = 0.0
    """Frames whose best-scoring senone is the label."""
    frames: float = 0.0

    def add(self, scores: Tensor, labels: Tensor, loss: Tensor) -> None:
        """Count a batch's scores (N, S) against its labels (N,); `loss` is its sum."""
        self.loss += float(loss)
        self.correct += float((scores.argmax(dim=1) == labels).sum())
        self.frames += len(labels)

    def over_workers(self, transport: Transport) -> "Totals":
        """The sum over all workers; a collective."""
        return Totals(*sum_over_workers([self.loss, self.correct, self.frames], transport))

    def per_frame(self, prefix: str) -> dict[str, float]:
        """`PREFIX_loss` in nats a frame and `PREFIX_frame_accuracy` from 0 to 1."""
        return {
            f"{prefix}_loss": self.loss / self.frames,
            f"{prefix}_frame_accuracy": self.correct / self.frames,
        }


@dataclass
class Trainer:
    """Trains `model` in step with the other workers on `transport`."""

    config: TrainerConfig
    model: AcousticModel
    exchange: StripedExchange
    optimizer: MomentumSgd
    transport: Transport

    def __post_init__(self) -> None:
        self.parameters = list(self.model.network.parameters())
        self.seconds = {"data": 0.0, "compute": 0.0}
        self.steps = 0
        self._non_finite_steps = 0

    def train_epoch(self, data: FrameSet, order: FrameOrder, epoch: int) -> Totals:
        """One pass; the totals, over all workers, are of each frame as it was trained on.

        Raises UserError when gradients stay NaN or infinite.
        """
        totals = Totals()
        with progress_bar(f"epoch {epoch}", data.num_frames, "frames") as bar:
            for minibatch in order.minibatches(epoch, self.config.minibatch):
                self._step(data, minibatch, totals, epoch)
                bar.update(len(minibatch))
        return totals.over_workers(self.transport)

    def evaluate(self, data: FrameSet, description: str) -> Totals:
        """Loss and accuracy on all of `data`, which the workers share; a collective."""
        totals = Totals()
        own = share(np.arange(data.num_frames), self.transport.rank, self.transport.workers)
        with progress_bar(description, len(own), "frames") as bar:
            for begin in range(0, len(own), EVALUATION_FRAMES):
                inputs, labels = self._batch(data, own[begin : begin + EVALUATION_FRAMES])
                scores = frame_scores(self.model.network, inputs)
                totals.add(scores, labels, -scores.gather(1, labels[:, None]).double().sum())
                bar.update(len(labels))
        return totals.over_workers(self.transport)

    def state(self) -> dict[str, Any]:
        """Copies of all that a step changes: parameters, optimizer, residuals."""
        return {
            "parameters": [each.detach().clone() for each in self.parameters],
            "optimizer": self.optimizer.state(),
            "exchange": self.exchange.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""
        with torch.no_grad():
            for own, saved in zip(self.parameters, state["parameters"], strict=True):
                own.copy_(saved)
        self.optimizer.load_state(state["optimizer"])
        self.exchange.load_state(state["exchange"])

    def time_spent(self) -> dict[str, float]:
        """Seconds so far of this worker by what they went into."""
        return {
            key: round(value, 3) for key, value in (self.seconds | self.exchange.seconds).items()
        }

    def _step(self, data: FrameSet, minibatch: Indices, totals: Totals, epoch: int) -> None:
        begin = perf_counter()
        own = share(minibatch, self.transport.rank, self.transport.workers)
        inputs, labels = self._batch(data, own)
        read = perf_counter()
        gradients = self._gradients(inputs, labels, totals)
        self.seconds["data"] += read - begin
        self.seconds["compute"] += perf_counter() - read
        report = self.exchange.step(gradients, len(own), self.optimizer.update)
        self.steps += 1
        self._watch(report.non_finite, epoch)
        if self.config.check_replicas:
            check_replicas(self.parameters, self.transport)

    def _gradients(self, inputs: Tensor, labels: Tensor, totals: Totals) -> tuple[Tensor, ...]:
        """Of the loss summed over frames; zeros when this worker has no frames."""
        if not len(labels):
            return tuple(torch.zeros_like(each) for each in self.parameters)
        scores = self.model.network(inputs)
        loss = cross_entropy(scores, labels, reduction="sum")
        totals.add(scores.detach(), labels, loss.detach())
        return torch.autograd.grad(loss, self.parameters)

    def _batch(self, data: FrameSet, indices: Indices) -> tuple[Tensor, Tensor]:
        config = self.model.config
        features, labels = data.batch(indices, config.left_context, config.right_context)
        return torch.from_numpy(features), torch.from_numpy(labels).long()

    def _watch(self, non_finite: int, epoch: int) -> None:
        self._non_finite_steps = self._non_finite_steps + 1 if non_finite else 0
        if self._non_finite_steps > self.config.max_non_finite_steps:
            raise UserError(
                f"gradients were NaN or infinite for {self._non_finite_steps} steps in a row, up "
                f"to step {self.steps} in epoch {epoch}; lower schedule.learning_rate, or check "
                "the features for NaN"
            )
