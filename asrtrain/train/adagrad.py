"""AdaGrad: a gradient divided by its root mean square over time (Seide et al. 2014, section 4)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class Adagrad:
    """Running mean squares of some tensors, each of the gradient of one frame.

    The gradient of a minibatch is a sum G over n frames. G^2 / n estimates the square of a frame's
    gradient at any n, so its mean over all minibatches so far, and what a frame moves a parameter,
    do not depend on the minibatch size.
    """

    def __init__(self, like: Sequence[Tensor], floor: float) -> None:
        self._floor = floor
        self.squares = [torch.zeros_like(each) for each in like]
        """Mean of G^2 / n."""
        self.counts = [0] * len(self.squares)
        """Minibatches in each mean."""

    def normalized(self, number: int, gradient: Tensor, frames: int) -> Tensor:
        """Tensor `number`'s gradient, a sum over `frames`, over its root mean square so far."""
        if not frames:
            return gradient
        self.counts[number] += 1
        squares = self.squares[number]
        # Separate roundings, no fused operation: a stripe's edges must not show in the bits.
        change = (gradient.square() / frames).sub_(squares).div_(self.counts[number])
        squares.add_(change)
        return gradient / squares.sqrt().clamp_(min=self._floor)

    def state(self) -> dict[str, Any]:
        """Copies of the means and counts."""
        return {"squares": [each.clone() for each in self.squares], "counts": list(self.counts)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.counts = list(state["counts"])
        for own, saved in zip(self.squares, state["squares"], strict=True):
            own.copy_(saved)
