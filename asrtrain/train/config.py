"""All settings of the verb `train`."""

from dataclasses import dataclass, field

from asrtrain.io.settings import StageConfig
from asrtrain.nnet.dnn import DnnConfig
from asrtrain.onebit import ExchangeConfig
from asrtrain.train.launch import LaunchConfig
from asrtrain.train.loop import TrainerConfig
from asrtrain.train.newbob import NewBobConfig


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
