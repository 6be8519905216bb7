"""This process's part in training: steps, evaluation, and going back.

Shapes: N frames of a worker's share of a minibatch, S senones. K workers run in W processes; a
process computes its K / W workers one after the other.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from asrtrain.frames.order import share
from asrtrain.frames.shards import FrameSet, Indices
from asrtrain.io.errors import UserError
from asrtrain.io.progress import progress_bar
from asrtrain.nnet.dnn import frame_scores
from asrtrain.nnet.model_file import AcousticModel
from asrtrain.onebit.exchange import Round, StripedExchange
from asrtrain.onebit.replicas import check_replicas
from asrtrain.train.batch import spliced_batch
from asrtrain.train.config import TrainerConfig
from asrtrain.train.optimizer import Optimizer
from asrtrain.train.parallel import local_gradient, local_parameters
from asrtrain.train.totals import Totals, over_workers

EVALUATION_FRAMES = 4096
"""Frames scored at a time: large enough to be fast, small enough for the cache."""

EVERY_STEPS_NORM = 50
"""Steps between two measurements of the gradient's norm."""


class DivergedError(UserError):
    """Gradients stay NaN or infinite."""


@dataclass
class TrainerState:
    """Copies of all that a step changes, by who holds it; tensors and plain types."""

    shared: dict[str, Any]
    """The same in every process."""
    workers: list[dict[str, Any]]
    """Of each worker of this process."""
    owner: dict[str, Any]
    """Of the stripes that this process owns."""


class Trainer:
    """Trains `model` in step with the other processes on `exchange`'s transport."""

    def __init__(
        self,
        config: TrainerConfig,
        model: AcousticModel,
        exchange: StripedExchange,
        optimizer: Optimizer,
        double_buffer: bool = False,
    ) -> None:
        self.config, self.model = config, model
        self.exchange, self.optimizer = exchange, optimizer
        self.double_buffer = double_buffer
        self.transport = exchange.transport
        self.parameters = local_parameters(model.network)
        """As this process holds them: whole, or its shards of them."""
        self.device = self.parameters[0].device
        self.seconds = {"data": 0.0, "compute": 0.0}
        self.steps = 0
        self.wire_bytes = 0
        """Sent so far, if each worker were a machine."""
        self.gradient_squares = [0.0 for _ in exchange.local_workers]
        """Squared norm of each worker's last sub-gradient measured, one every so many steps."""
        self.lost = 0
        """Exchanges so far in which a gradient or an update was NaN or infinite."""
        self._non_finite_steps = 0
        self._pending: Round | None = None
        self._sink: Any = None
        self.new_totals()
        self._watch_gradients(model.network.parameters())

    def new_totals(self) -> None:
        """Forget what `totals` has counted."""
        self.totals = [Totals() for _ in self.exchange.local_workers]
        """Of each worker of this process: of each frame as it was trained on."""

    def begin_epoch(self, rate: float, epoch: int, minibatch: int) -> None:
        """Prepare steps of `minibatch` frames at a rate a frame, in epoch `epoch` (from 0)."""
        self.optimizer.begin_epoch(rate, epoch, minibatch)

    @property
    def can_be_saved(self) -> bool:
        """Whether `state` is all that the next step depends on."""
        return True

    def step(self, data: FrameSet, minibatch: Indices) -> None:
        """Take a step on the frames `minibatch` of all workers.

        Raises DivergedError when gradients stay NaN or infinite.
        """
        middle = (len(minibatch) + 1) // 2
        parts = (minibatch[:middle], minibatch[middle:]) if self.double_buffer else (minibatch,)
        for each in parts:
            self._take(data, each)
        self.steps += 1
        if self.config.check_replicas:
            self.settle()
            check_replicas(self.parameters, self.transport)

    def drain(self) -> None:
        """Apply the update that is still under way with double buffering."""
        if self._pending:
            pending, self._pending = self._pending, None
            self._watch(self.exchange.finish(pending).non_finite)

    def settle(self) -> None:
        """Wait until no exchange is under way, so that another collective may begin."""
        if self._pending:
            self._pending.wait()

    def evaluate(self, data: FrameSet, description: str) -> Totals:
        """Loss and accuracy on all of `data`, which the workers share; a collective."""
        self.settle()
        totals, shares = [], self._shares(np.arange(data.num_frames))
        with progress_bar(description, sum(map(len, shares)), "frames") as bar:
            for own in shares:
                totals.append(Totals())
                for begin in range(0, len(own), EVALUATION_FRAMES):
                    part = own[begin : begin + EVALUATION_FRAMES]
                    inputs, labels = spliced_batch(data, part, self.model)
                    scores = frame_scores(self.model.network, inputs)
                    loss = -scores.gather(1, labels[:, None]).double().sum()
                    totals[-1].add(scores, labels, loss)
                    bar.update(len(labels))
        return over_workers(totals, self.transport)

    def state(self) -> TrainerState:
        """Copies of all that a step changes: parameters, optimizer, residuals, pending update."""
        pending = self._pending.encoded() if self._pending else None
        return TrainerState(
            shared={
                "parameters": [each.detach().clone() for each in self.parameters],
                "pending": pending,
                "steps": self.steps,
                "lost": self.lost,
                "non_finite_steps": self._non_finite_steps,
            },
            workers=[
                {
                    "gradient_squares": self.gradient_squares[worker],
                    "exchange": self.exchange.worker_state(worker),
                    "adagrad": self.optimizer.worker_state(worker),
                }
                for worker in range(len(self.exchange.local_workers))
            ],
            owner={
                "exchange": self.exchange.owner_state(),
                "optimizer": self.optimizer.owner_state(),
            },
        )

    def load_state(self, state: TrainerState) -> None:
        """Go back to what `state` returned."""
        self.settle()
        shared = state.shared
        self.steps, self.lost = shared["steps"], shared["lost"]
        self._non_finite_steps = shared["non_finite_steps"]
        pending = shared["pending"]
        self._pending = self.exchange.restored(pending) if pending else None
        _copy_all(self.parameters, shared["parameters"])
        for worker, saved in enumerate(state.workers):
            self.gradient_squares[worker] = saved["gradient_squares"]
            self.exchange.load_worker_state(worker, saved["exchange"])
            self.optimizer.load_worker_state(worker, saved["adagrad"])
        self.exchange.load_owner_state(state.owner["exchange"])
        self.optimizer.load_owner_state(state.owner["optimizer"])

    def time_spent(self) -> dict[str, float]:
        """Seconds so far of this process by what they went into."""
        return {
            key: round(value, 3) for key, value in (self.seconds | self.exchange.seconds).items()
        }

    def _take(self, data: FrameSet, frames: Indices) -> None:
        """One exchange: of a minibatch, or of half a one, which is then applied after the next."""
        shares = self._shares(frames)
        counts = [len(own) for own in shares]
        step = self.exchange.start(self.optimizer.update, counts)
        self.wire_bytes += self.exchange.wire_bytes()
        held: list[tuple[int, int, Tensor]] = []
        add = step.add if not self.double_buffer else lambda *each: held.append(each)
        for worker, own in enumerate(shares):
            self._compute(data, worker, own, add)
        if self.double_buffer:
            self.drain()
            for each in held:
                step.add(*each)
            self._pending = step
        else:
            self._watch(self.exchange.finish(step).non_finite)

    def _shares(self, frames: Indices) -> list[Indices]:
        """The part of `frames` of each worker of this process."""
        workers = self.exchange.workers
        return [share(frames, worker, workers) for worker in self.exchange.local_workers]

    def _compute(self, data: FrameSet, worker: int, own: Indices, add: Any) -> None:
        """Hand each of a worker's gradients, of the loss summed over its frames, to `add`."""
        begin = perf_counter()

        measured = self.steps % EVERY_STEPS_NORM == 0 and len(own)
        if measured:
            self.gradient_squares[worker] = 0.0

        def sink(number: int, gradient: Tensor) -> None:
            if measured:
                self.gradient_squares[worker] += float(gradient.square().sum())
            prepared = self.optimizer.prepared(worker, number, gradient, len(own))
            add(worker, number, prepared)

        if not len(own):
            for number in reversed(range(len(self.parameters))):
                sink(number, torch.zeros_like(self.parameters[number]))
            return
        inputs, labels = spliced_batch(data, own, self.model)
        read = perf_counter()
        self.seconds["data"] += read - begin
        self._sink = sink
        with self._not_counting_exchange():
            scores, loss = self._loss(worker, inputs, labels)
            self.totals[worker].add(scores, labels, loss.detach())
            loss.backward()

    def _loss(self, worker: int, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (N, S) and the cross entropy summed over the frames."""
        lower = self.config.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=lower):
            scores = self._forward(worker, inputs)
        scores = scores.float()
        return scores.detach(), cross_entropy(scores, labels, reduction="sum")

    def _forward(self, worker: int, inputs: Tensor) -> Tensor:
        """What worker `worker`'s model makes of the inputs."""
        scores: Tensor = self.model.network(inputs)
        return scores

    def _watch_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Have `_arrived` called for the gradients of `parameters`, all of the network's."""
        for number, parameter in enumerate(parameters):
            parameter.register_post_accumulate_grad_hook(partial(self._arrived, number))

    def _arrived(self, number: int, parameter: Tensor) -> None:
        """Called by autograd as soon as the gradient of parameter `number` is there."""
        gradient, parameter.grad = parameter.grad, None
        self._sink(number, local_gradient(parameter, gradient))

    @contextmanager
    def _not_counting_exchange(self) -> Iterator[None]:
        """Count the time as computation, but for what the exchange did in this thread meanwhile."""
        begin, before = perf_counter(), self._exchange_seconds()
        yield
        within = self._exchange_seconds() - before
        self.seconds["compute"] += perf_counter() - begin - within

    def _exchange_seconds(self) -> float:
        """That the exchange has spent in this thread."""
        if self.exchange.overlaps:
            return 0.0
        return sum(self.exchange.seconds[key] for key in ("quantize", "exchange", "update"))

    def _watch(self, non_finite: int) -> None:
        self.lost += bool(non_finite)
        self._non_finite_steps = self._non_finite_steps + 1 if non_finite else 0
        if self._non_finite_steps > self.config.max_non_finite_steps:
            raise DivergedError(
                f"gradients were NaN or infinite for {self._non_finite_steps} steps in a row, up "
                f"to step {self.steps}; lower schedule.learning_rate, or check the features for NaN"
            )


def _copy_all(own: list[Tensor], saved: list[Tensor]) -> None:
    with torch.no_grad():
        for to, each in zip(own, saved, strict=True):
            to.copy_(each)
