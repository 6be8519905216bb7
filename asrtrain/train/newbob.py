"""The new-bob learning-rate schedule: halve when the held-out loss stops falling, then stop.

After Kaldi's nnet1 steps/nnet/train_scheduler.sh: an epoch that does not lower the held-out loss is
rejected, and the trainer goes back to the state before it.
"""

from dataclasses import dataclass

from asrtrain.io.settings import require


@dataclass(frozen=True, kw_only=True)
class NewBobConfig:
    """Settings of the schedule."""

    learning_rate: float = 0.0005
    """Initial rate for a frame's gradient (gradients are sums over frames), above 0."""
    max_epochs: int = 20
    """Passes over the training set at most, rejected ones included; at least 1."""
    min_epochs: int = 0
    """Passes before the schedule may stop."""
    keep_rate_epochs: int = 0
    """First passes that keep the rate and are accepted whatever the held-out loss."""
    halving_factor: float = 0.5
    """What the rate is multiplied by, between 0 and 1."""
    start_halving_improvement: float = 0.01
    """Halving begins, for all epochs that follow, once the loss falls by less than this share."""
    end_halving_improvement: float = 0.001
    """Training ends once, while halving, the loss falls by less than this share."""

    def __post_init__(self) -> None:
        require(
            self.learning_rate > 0,
            f"schedule.learning_rate={self.learning_rate}: expected above 0",
        )
        require(self.max_epochs >= 1, f"schedule.max_epochs={self.max_epochs}: expected at least 1")
        require(
            0 < self.halving_factor < 1,
            f"schedule.halving_factor={self.halving_factor}: expected between 0 and 1",
        )
        require(
            self.end_halving_improvement <= self.start_halving_improvement,
            f"schedule.end_halving_improvement={self.end_halving_improvement} is above "
            f"schedule.start_halving_improvement={self.start_halving_improvement}: "
            "training would stop before it halves",
        )


@dataclass(frozen=True)
class Verdict:
    """What to do after an epoch."""

    accepted: bool
    """Whether the epoch's model replaces the one before it."""
    finished: bool
    """Whether training ends here."""


class NewBob:
    """The schedule's state: the rate for the next epoch, the loss to beat."""

    def __init__(self, config: NewBobConfig, initial_loss: float) -> None:
        self._config = config
        self._halving = False
        self._epochs = 0
        self.learning_rate = config.learning_rate
        self.best_loss = initial_loss

    def judge(self, loss: float) -> Verdict:
        """Take an epoch's held-out loss a frame; a NaN is rejected like a loss that rose."""
        config = self._config
        self._epochs += 1
        keeping = self._epochs <= config.keep_rate_epochs
        accepted = loss < self.best_loss or (keeping and loss == loss)
        improvement = (self.best_loss - loss) / self.best_loss if accepted else 0.0
        if accepted:
            self.best_loss = loss
        finished = self._epochs >= config.max_epochs or (
            self._halving
            and improvement < config.end_halving_improvement
            and self._epochs >= config.min_epochs
        )
        if not keeping and improvement < config.start_halving_improvement:
            self._halving = True
        if self._halving:
            self.learning_rate *= config.halving_factor
        return Verdict(accepted, finished)
