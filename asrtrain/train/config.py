"""All settings of the verb `train`."""

from dataclasses import dataclass, field

from asrtrain.io.settings import StageConfig, require, run_only
from asrtrain.nnet.config import DnnConfig
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.train.newbob import NewBobConfig


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """Settings of the steps."""

    minibatch: int = 256
    """Frames a step, over all workers; at least 1."""
    momentum_frames: float = 2000.0
    """Time constant of the momentum in frames; 0 for none."""
    seed: int = 1
    """Of the initial weights and of the order of frames."""
    max_non_finite_steps: int = 10
    """Steps in a row with a NaN or infinite gradient before training gives up."""
    check_replicas: bool = False
    """Compare all workers' parameters, bit by bit, after every step: slow, for debugging."""

    def __post_init__(self) -> None:
        require(self.minibatch >= 1, f"trainer.minibatch={self.minibatch}: expected at least 1")
        require(
            self.momentum_frames >= 0,
            f"trainer.momentum_frames={self.momentum_frames}: expected 0 or more",
        )


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """Where the workers run."""

    nproc: int = 1
    """Workers, one process each, on this machine; at least 1. (`torchrun` sets its own number.)"""
    threads: int = 1
    """Threads of a worker's computation; another number gives other rounding."""
    timeout_s: int = run_only(60)
    """Seconds that a worker waits for the others before it gives up."""

    def __post_init__(self) -> None:
        for key in ("nproc", "threads", "timeout_s"):
            value = getattr(self, key)
            require(value >= 1, f"launch.{key}={value}: expected at least 1")


@dataclass(frozen=True, kw_only=True)
class TrainConfig(StageConfig):
    """Settings of `train`."""

    frames: str
    """Training set: a directory that `frames` made."""
    dev: str
    """Held-out set, likewise: judges every epoch, and is never trained on."""
    model: DnnConfig = field(default_factory=DnnConfig)
    """The network."""
    exchange: ExchangeConfig = field(default_factory=ExchangeConfig)
    """How gradients travel."""
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    """The steps."""
    schedule: NewBobConfig = field(default_factory=NewBobConfig)
    """The learning rate."""
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    """The workers."""
