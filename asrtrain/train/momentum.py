"""Momentum SGD on the stripes that a worker owns; its state exists once over all workers."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class MomentumSgd:
    """Unit-gain momentum with a time constant in frames (Seide et al. 2014, sections 2 and 3.1).

    v = m v + (1 - m) g with m = exp(-frames / time constant), g the sum over the minibatch's
    frames, and the update is -rate * v. The gain of 1 and the time constant make the effective
    rate a frame the same at any minibatch size.
    """

    time_constant: float
    """Frames after which a gradient's weight has fallen to 1/e; 0 for no momentum."""
    velocities: list[Tensor]
    """v of each owned stripe."""
    rate: float = 0.0
    """Learning rate a frame, set by the schedule before each epoch."""

    def update(self, sums: list[Tensor], frames: int) -> list[Tensor]:
        """What to add to each stripe's parameters, given its summed gradient."""
        keep = math.exp(-frames / self.time_constant) if self.time_constant else 0.0
        for velocity, gradient in zip(self.velocities, sums, strict=True):
            velocity.mul_(keep).add_(gradient, alpha=1 - keep)
        return [velocity * -self.rate for velocity in self.velocities]

    def state(self) -> list[Tensor]:
        """Copies of the velocities, so that a rejected epoch can be undone."""
        return [each.clone() for each in self.velocities]

    def load_state(self, state: list[Tensor]) -> None:
        """Put back what `state` returned."""
        for own, saved in zip(self.velocities, state, strict=True):
            own.copy_(saved)


def momentum_for(shapes: list[tuple[int, int]], time_constant: float) -> MomentumSgd:
    """Momentum at rest for stripes of `shapes`."""
    return MomentumSgd(time_constant, [torch.zeros(shape) for shape in shapes])
