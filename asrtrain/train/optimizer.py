"""What the owner of a stripe does to its summed gradient; the state exists once over all owners."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from asrtrain.train.adagrad import Adagrad
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.schedule import at_epoch


class Optimizer(Protocol):
    """Turns what the workers' exchange has summed into what is added to the model."""

    def begin_epoch(self, rate: float, epoch: int, minibatch: int) -> None:
        """Prepare minibatches of that many frames in epoch `epoch` (from 0) at a rate a frame."""

    def prepared(self, worker: int, number: int, gradient: Tensor, frames: int) -> Tensor:
        """Worker `worker`'s gradient of parameter `number` as it goes into the exchange."""

    def update(self, number: int, total: Tensor, frames: int) -> Tensor:
        """What to add to this owner's rows of parameter `number`, given their sum."""

    def owner_state(self) -> dict[str, Any]:
        """Copies of what belongs to the owned stripes."""

    def worker_state(self, worker: int) -> dict[str, Any]:
        """Copies of what belongs to one of this process's workers."""

    def load_owner_state(self, state: dict[str, Any]) -> None:
        """Go back to what `owner_state` returned."""

    def load_worker_state(self, worker: int, state: dict[str, Any]) -> None:
        """Go back to what `worker_state` returned."""


class StripeOptimizer:
    """Unit-gain momentum SGD with AdaGrad at one of its places (Seide et al. 2014, 2 to 4).

    v = m v + (1 - m) g with m = exp(-frames / time constant), g the sum over the minibatch's
    frames, and the update is -rate * v. The gain of 1 and the time constant make the effective
    rate a frame the same at any minibatch size.

    `stripes` are views of the owned rows of the parameters; `gradients` are examples of whole
    gradients, and `workers` is how many workers this process runs, for AdaGrad at `partial`.
    """

    def __init__(
        self,
        config: OptimizerConfig,
        stripes: Sequence[Tensor],
        gradients: Sequence[Tensor],
        workers: int,
    ) -> None:
        self._config, self._stripes = config, list(stripes)
        self.rate = 0.0
        """Learning rate a frame, set before each epoch."""
        self.time_constant = 0.0
        """Of momentum, in frames; set by `begin_epoch`."""
        self.velocities = [torch.zeros_like(each) for each in stripes]
        by_owner = config.adagrad in ("aggregate", "smoothed")
        self._owned = Adagrad(stripes if by_owner else [], config.adagrad_floor)
        partial = gradients if config.adagrad == "partial" else []
        self._partial = [Adagrad(partial, config.adagrad_floor) for _ in range(workers)]

    def begin_epoch(self, rate: float, epoch: int, minibatch: int) -> None:
        """Set the rate, and the momentum of epoch `epoch` (from 0) at that minibatch size."""
        config = self._config
        self.rate = rate
        given = at_epoch(config.momentum_profile or [config.momentum], epoch)
        if config.momentum_unit == "minibatch":
            self.time_constant = -minibatch / math.log(given) if given else 0.0
        else:
            self.time_constant = given

    def prepared(self, worker: int, number: int, gradient: Tensor, frames: int) -> Tensor:
        """Worker `worker`'s gradient of parameter `number` as it goes into the exchange."""
        if self._config.adagrad == "partial":
            return self._partial[worker].normalized(number, gradient, frames)
        return gradient

    def update(self, number: int, total: Tensor, frames: int) -> Tensor:
        """What to add to this owner's rows of parameter `number`, given their summed gradient."""
        config, gradient = self._config, total
        if config.clip_value:
            bound = config.clip_value * frames
            gradient = gradient.clamp(-bound, bound)
        if config.adagrad == "aggregate":
            gradient = self._owned.normalized(number, gradient, frames)
        if config.weight_decay:
            gradient = gradient + self._stripes[number] * (config.weight_decay * frames)
        keep = math.exp(-frames / self.time_constant) if self.time_constant else 0.0
        # Not add_(alpha=): a fused multiply would round differently at a stripe's edges.
        velocity = self.velocities[number].mul_(keep).add_(gradient * (1 - keep))
        if config.adagrad == "smoothed":
            velocity = self._owned.normalized(number, velocity, frames)
        return velocity * -self.rate

    def rest(self) -> None:
        """Forget the momentum."""
        for each in self.velocities:
            each.zero_()

    def owner_state(self) -> dict[str, Any]:
        """Copies of what belongs to the owned stripes."""
        return {
            "velocities": [each.clone() for each in self.velocities],
            "adagrad": self._owned.state(),
        }

    def worker_state(self, worker: int) -> dict[str, Any]:
        """Copies of what belongs to one of this process's workers."""
        return self._partial[worker].state()

    def load_owner_state(self, state: dict[str, Any]) -> None:
        """Go back to what `owner_state` returned."""
        self._owned.load_state(state["adagrad"])
        for own, saved in zip(self.velocities, state["velocities"], strict=True):
            own.copy_(saved)

    def load_worker_state(self, worker: int, state: dict[str, Any]) -> None:
        """Go back to what `worker_state` returned."""
        self._partial[worker].load_state(state)
