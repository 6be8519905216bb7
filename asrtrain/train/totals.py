"""Loss and accuracy summed over frames."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from asrtrain.onebit.transport import Transport, sum_over_workers


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

    def values(self) -> list[float]:
        """The three sums, to make another of."""
        return [self.loss, self.correct, self.frames]

    def per_frame(self, prefix: str) -> dict[str, float]:
        """`PREFIX_loss` in nats a frame and `PREFIX_frame_accuracy` from 0 to 1."""
        return {
            f"{prefix}_loss": self.loss / self.frames,
            f"{prefix}_frame_accuracy": self.correct / self.frames,
        }


def over_workers(own: Sequence[Totals], transport: Transport) -> Totals:
    """The sum over all workers, given those of this process's; a collective."""
    return Totals(*sum_over_workers([each.values() for each in own], transport))
