"""Learning-rate schedules: new-bob, a given profile, exponential decay.

New-bob is after Kaldi's nnet1 steps/nnet/train_scheduler.sh: halve when the held-out loss stops
falling, then stop; an epoch that does not lower the held-out loss is rejected, and the trainer goes
back to the state before it. The other two accept every epoch.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from asrtrain.io.settings import require, require_choice

KINDS = ("newbob", "profile", "exponential")


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Settings of the schedule."""

    kind: str = "newbob"
    """newbob: halves when the held-out loss stops falling. profile: the rates given. exponential:
    the rate is multiplied by `decay` after every epoch."""
    learning_rate: float = 0.0005
    """Initial rate for a frame's gradient (gradients are sums over frames), above 0."""
    auto: bool = False
    """Find the initial rate by trials (search.*) around `learning_rate`."""
    profile: list[float] = field(default_factory=list)
    """profile: rate for a frame in each epoch; the last one stays."""
    decay: float = 0.9
    """exponential: what the rate is multiplied by after an epoch, above 0 and up to 1."""
    max_epochs: int = 20
    """Epochs at most, rejected ones included; at least 1."""
    min_epochs: int = 0
    """newbob: epochs before the schedule may stop."""
    keep_rate_epochs: int = 0
    """newbob: first epochs that keep the rate and are accepted whatever the held-out loss."""
    halving_factor: float = 0.5
    """newbob: what the rate is multiplied by, between 0 and 1."""
    start_halving_improvement: float = 0.01
    """newbob: halving begins, for all epochs that follow, once the loss falls by less than this
    share."""
    end_halving_improvement: float = 0.001
    """newbob: training ends once, while halving, the loss falls by less than this share."""

    def __post_init__(self) -> None:
        require_choice("schedule.kind", self.kind, KINDS)
        require(
            self.learning_rate > 0,
            f"schedule.learning_rate={self.learning_rate}: expected above 0",
        )
        require(self.max_epochs >= 1, f"schedule.max_epochs={self.max_epochs}: expected at least 1")
        require(0 < self.decay <= 1, f"schedule.decay={self.decay}: expected above 0 and up to 1")
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
        self._check_profile()

    def _check_profile(self) -> None:
        given = self.kind == "profile"
        require(
            bool(self.profile) == given and all(rate > 0 for rate in self.profile),
            f"schedule.profile={self.profile} and schedule.kind={self.kind} do not fit: "
            "kind=profile needs rates above 0, one an epoch; the other kinds take none",
        )
        require(
            not (given and self.auto),
            "schedule.auto=true and schedule.kind=profile cannot work together: the profile gives "
            "the rates",
        )


@dataclass(frozen=True)
class Verdict:
    """What to do after an epoch."""

    accepted: bool
    """Whether the epoch's model replaces the one before it."""
    finished: bool
    """Whether training ends here."""


class Schedule(Protocol):
    """The rate for the next epoch, and what becomes of an epoch once it is judged."""

    learning_rate: float

    def judge(self, loss: float) -> Verdict:
        """Take an epoch's held-out loss a frame."""

    def state(self) -> dict[str, Any]:
        """Plain values to go on from."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""


def schedule_for(config: ScheduleConfig, initial_loss: float) -> Schedule:
    """The schedule that `config.kind` names; `initial_loss` is held-out, before any training."""
    return NewBob(config, initial_loss) if config.kind == "newbob" else FixedRates(config)


class NewBob:
    """The schedule's state: the rate for the next epoch, the loss to beat."""

    def __init__(self, config: ScheduleConfig, initial_loss: float) -> None:
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

    def state(self) -> dict[str, Any]:
        """Plain values to go on from."""
        return {
            "halving": self._halving,
            "epochs": self._epochs,
            "learning_rate": self.learning_rate,
            "best_loss": self.best_loss,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._halving, self._epochs = state["halving"], state["epochs"]
        self.learning_rate, self.best_loss = state["learning_rate"], state["best_loss"]


class FixedRates:
    """A rate that depends on the number of the epoch alone; every epoch is accepted."""

    def __init__(self, config: ScheduleConfig) -> None:
        self._config = config
        self._epochs = 0
        self.learning_rate = config.profile[0] if config.profile else config.learning_rate

    def judge(self, loss: float) -> Verdict:
        """Count the epoch; its loss does not matter."""
        config = self._config
        self._epochs += 1
        if config.profile:
            self.learning_rate = at_epoch(config.profile, self._epochs)
        else:
            self.learning_rate *= config.decay
        return Verdict(accepted=True, finished=self._epochs >= config.max_epochs)

    def state(self) -> dict[str, Any]:
        """Plain values to go on from."""
        return {"epochs": self._epochs, "learning_rate": self.learning_rate}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._epochs, self.learning_rate = state["epochs"], state["learning_rate"]


def at_epoch(profile: list[float], epoch: int) -> float:
    """The value of `epoch`, which counts from 0, in a profile whose last value stays."""
    return profile[min(epoch, len(profile) - 1)]
