"""Block momentum: workers train alone for a block, then their changes are averaged and exchanged.

After Chen & Huo, "Scalable training of deep learning machines by incremental block training with
intra-block parallel optimization and blockwise model-update filtering", ICASSP 2016. Local momentum
starts anew with every block, as in CNTK.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from asrtrain.frames.shards import FrameSet, Indices
from asrtrain.nnet.model_file import AcousticModel
from asrtrain.onebit.bucket import as_matrix
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.train.config import TrainerConfig
from asrtrain.train.loop import Trainer, TrainerState
from asrtrain.train.optimizer import StripeOptimizer
from asrtrain.train.optimizer_config import OptimizerConfig


class BlockMomentum:
    """What the owner of a stripe does to the summed changes of a block, and each worker's own SGD.

    With G the mean over K workers of how a block has changed the model, D = m D + G is added to the
    model. With Nesterov's form a block starts m D further on, and that is the model held here: its
    change is D + m (D - the D before).
    """

    def __init__(
        self,
        settings: TrainerConfig,
        config: OptimizerConfig,
        stripes: Sequence[Tensor],
        copies: Sequence[Sequence[Tensor]],
        workers: int,
    ) -> None:
        given = settings.block_momentum
        self.momentum = 1 - 1 / workers if given < 0 else given
        self._nesterov, self._workers = settings.nesterov, workers
        self.changes = [torch.zeros_like(each) for each in stripes]
        """D, of the owned stripes."""
        self.alone = [
            StripeOptimizer(config, [as_matrix(each.detach()) for each in own], [], 0)
            for own in copies
        ]
        """Of each worker of this process, for its whole model."""

    def begin_epoch(self, rate: float, epoch: int, minibatch: int) -> None:
        """Set rate and momentum of the workers, whose minibatches are a share of `minibatch`."""
        for each in self.alone:
            each.begin_epoch(rate, epoch, max(1, minibatch // self._workers))

    def prepared(self, worker: int, number: int, gradient: Tensor, frames: int) -> Tensor:
        """The gradient as it is: none travels."""
        return gradient

    def update(self, number: int, total: Tensor, frames: int) -> Tensor:
        """What to add to the owned rows, given the sum over workers of (start - end of block)."""
        before = self.changes[number]
        change = before * self.momentum - total / self._workers
        self.changes[number] = change
        return change + (change - before) * self.momentum if self._nesterov else change

    def owner_state(self) -> dict[str, Any]:
        """Copies of what belongs to the owned stripes."""
        return {"changes": [each.clone() for each in self.changes]}

    def worker_state(self, worker: int) -> dict[str, Any]:
        """Copies of what belongs to one of this process's workers."""
        return self.alone[worker].owner_state()

    def load_owner_state(self, state: dict[str, Any]) -> None:
        """Go back to what `owner_state` returned."""
        self.changes = [each.clone() for each in state["changes"]]

    def load_worker_state(self, worker: int, state: dict[str, Any]) -> None:
        """Go back to what `worker_state` returned."""
        self.alone[worker].load_owner_state(state)


class BlockTrainer(Trainer):
    """Trains with block momentum: an exchange every `trainer.block_frames` frames."""

    optimizer: BlockMomentum

    def __init__(
        self,
        config: TrainerConfig,
        model: AcousticModel,
        exchange: StripedExchange,
        optimizer: BlockMomentum,
        copies: Sequence[dict[str, Tensor]],
    ) -> None:
        super().__init__(config, model, exchange, optimizer)
        self._copies = list(copies)
        """Of each worker of this process: its model, parameters by name."""
        self._frames = [0 for _ in copies]
        """Of each worker of this process, since the last exchange."""
        self._block_frames = 0
        for own in copies:
            self._watch_gradients(own.values())

    @property
    def can_be_saved(self) -> bool:
        """Between blocks, when all workers' models are the same."""
        return not self._block_frames

    def drain(self) -> None:
        """Exchange what the workers have changed in an unfinished block."""
        if self._block_frames:
            self._exchange_changes()

    def load_state(self, state: TrainerState) -> None:
        """Go back to what `state` returned, between two blocks."""
        super().load_state(state)
        self._begin_block()

    def _take(self, data: FrameSet, frames: Indices) -> None:
        for worker, own in enumerate(self._shares(frames)):
            if len(own):
                self._step_alone(data, worker, own)
        self._block_frames += len(frames)
        if self._block_frames >= self.config.block_frames:
            self._exchange_changes()

    def _step_alone(self, data: FrameSet, worker: int, own: Indices) -> None:
        gradients: list[tuple[int, Tensor]] = []
        self._compute(data, worker, own, lambda _, *each: gradients.append(each))
        parameters = list(self._copies[worker].values())
        with torch.no_grad():
            for number, gradient in gradients:
                step = self.optimizer.alone[worker].update(number, as_matrix(gradient), len(own))
                as_matrix(parameters[number]).add_(step)
        self._frames[worker] += len(own)

    def _forward(self, worker: int, inputs: Tensor) -> Tensor:
        scores: Tensor = functional_call(self.model.network, self._copies[worker], (inputs,))
        return scores

    def _exchange_changes(self) -> None:
        changes = [
            [start - end.detach() for start, end in zip(self.parameters, own.values(), strict=True)]
            for own in self._copies
        ]
        report = self.exchange.step(changes, self._frames, self.optimizer.update)
        self.wire_bytes += self.exchange.wire_bytes()
        self._begin_block()
        self._watch(report.non_finite)

    def _begin_block(self) -> None:
        """All workers start from the same model, at rest."""
        with torch.no_grad():
            for own in self._copies:
                for copy, start in zip(own.values(), self.parameters, strict=True):
                    copy.copy_(start)
        for each in self.optimizer.alone:
            each.rest()
        self._frames, self._block_frames = [0 for _ in self._copies], 0


def worker_copies(model: AcousticModel, workers: int) -> list[dict[str, Tensor]]:
    """For each of `workers`, a copy of the model's parameters by name, to take gradients of."""
    return [
        {
            name: each.detach().clone().requires_grad_()
            for name, each in model.network.named_parameters()
        }
        for _ in range(workers)
    ]
