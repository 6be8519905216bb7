"""All settings of the verb `train`."""

from dataclasses import dataclass, field

from asrtrain.io.settings import StageConfig, require, require_choice, run_only
from asrtrain.nnet.config import DnnConfig, require_rbm_can_pretrain
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.schedule import ScheduleConfig

FRAMES_AN_HOUR = 360_000
"""Frames of 10 ms in an hour of audio."""


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """Settings of the steps."""

    kind: str = "sgd"
    """sgd: the exchange takes every step. block_momentum: each worker trains alone for a block,
    then the blocks' changes are exchanged (Chen & Huo 2016)."""
    minibatch: int | str = 256
    """Frames a step, over all workers; at least 1. auto: searched for while training (search.*)."""
    minibatch_profile: list[int] = field(default_factory=list)
    """Frames a step in each epoch, the last one stays; empty: `minibatch` in all."""
    epoch_frames: int = 0
    """Frames an epoch, after which the held-out set is scored; 0: one pass over the set."""
    precision: str = "float32"
    """float32, or bfloat16: autocast, with float32 weights, gradients and exchange."""
    seed: int = 1
    """Of the initial weights and of the order of frames."""
    block_frames: int = 20_000
    """block_momentum: frames of a block, over all workers."""
    block_momentum: float = -1.0
    """block_momentum: momentum of the blocks, from 0 to below 1; -1: 1 - 1/K."""
    nesterov: bool = True
    """block_momentum: workers start a block from where momentum will have carried the model."""
    max_non_finite_steps: int = 10
    """Steps in a row with a NaN or infinite gradient before training gives up."""
    check_replicas: bool = run_only(False)
    """Compare all processes' parameters, bit by bit, after every step: slow, for debugging."""

    def __post_init__(self) -> None:
        require_choice("trainer.kind", self.kind, ("sgd", "block_momentum"))
        require_choice("trainer.precision", self.precision, ("float32", "bfloat16"))
        require(
            self.minibatch == "auto" or (isinstance(self.minibatch, int) and self.minibatch >= 1),
            f"trainer.minibatch={self.minibatch}: expected at least 1, or auto",
        )
        require(
            all(size >= 1 for size in self.minibatch_profile),
            f"trainer.minibatch_profile={self.minibatch_profile}: expected at least 1 in each",
        )
        require(
            not (self.minibatch_profile and self.minibatch == "auto"),
            "trainer.minibatch=auto and trainer.minibatch_profile cannot work together: give one",
        )
        for key, least in (("epoch_frames", 0), ("block_frames", 1), ("max_non_finite_steps", 0)):
            value = getattr(self, key)
            require(value >= least, f"trainer.{key}={value}: expected {least} or more")
        require(
            self.block_momentum == -1 or 0 <= self.block_momentum < 1,
            f"trainer.block_momentum={self.block_momentum}: expected 0 to below 1, or -1",
        )


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """Settings of the layers' first weights."""

    method: str = "none"
    """none: random weights. discriminative: back-propagation, a hidden layer more at a time (Seide
    et al. 2011). rbm: a stack of restricted Boltzmann machines, by contrastive divergence."""
    frames: int = 0
    """Frames for each layer; 0: one pass over the set."""
    learning_rate: float = 0.0
    """discriminative: rate for a frame; 0: the schedule's first."""
    rbm_rate: float = 4e-3
    """rbm: rate for a frame of the machines of bits (Kaldi: 0.4 for the mean of 100 frames)."""
    rbm_gaussian_rate: float = 1e-4
    """rbm: rate for a frame of the first machine, of Gaussian inputs (Kaldi: 0.01 likewise)."""
    rbm_l2: float = 2e-4
    """rbm: weight decay a frame (Kaldi's l2-penalty)."""
    rbm_minibatch: int = 128
    """rbm: frames a step, over all workers."""

    def __post_init__(self) -> None:
        require_choice("pretrain.method", self.method, ("none", "discriminative", "rbm"))
        for key, least in (
            ("frames", 0),
            ("learning_rate", 0),
            ("rbm_l2", 0),
            ("rbm_minibatch", 1),
        ):
            value = getattr(self, key)
            require(value >= least, f"pretrain.{key}={value}: expected {least} or more")
        for key in ("rbm_rate", "rbm_gaussian_rate"):
            value = getattr(self, key)
            require(value > 0, f"pretrain.{key}={value}: expected above 0")


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Settings of the trials that choose a minibatch size (section 4) or an initial rate."""

    every_hours: float = 24.0
    """Hours of audio between two searches for the minibatch size, above 0."""
    hours: float = 0.75
    """Hours of audio that every candidate is tried on, above 0."""
    min_minibatch: int = 256
    """Smallest candidate, and the size before the first search; at least 1."""
    max_minibatch: int = 131_072
    """Largest candidate."""
    max_growth: float = 2.0
    """Largest candidate over the size in use (CNTK), at least 1."""
    margin: float = 0.01
    """A size is good enough if its training-set frame accuracy is within this share of the best."""

    def __post_init__(self) -> None:
        for key in ("every_hours", "hours"):
            value = getattr(self, key)
            require(value > 0, f"search.{key}={value}: expected above 0")
        require(
            1 <= self.min_minibatch <= self.max_minibatch,
            f"search.min_minibatch={self.min_minibatch} search.max_minibatch={self.max_minibatch}: "
            "expected 1 or more, the smaller first",
        )
        require(self.max_growth >= 1, f"search.max_growth={self.max_growth}: expected 1 or more")
        require(0 <= self.margin < 1, f"search.margin={self.margin}: expected 0 to below 1")


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """When the state of an unfinished training is kept, besides the end of every epoch."""

    minutes: float = run_only(10.0)
    """Minutes between checkpoints; 0: none by time."""
    steps: int = run_only(0)
    """Steps between checkpoints; 0: none by steps."""
    keep: int = run_only(3)
    """Checkpoints kept, the newest ones; at least 1."""

    def __post_init__(self) -> None:
        for key, least in (("minutes", 0), ("steps", 0), ("keep", 1)):
            value = getattr(self, key)
            require(value >= least, f"checkpoint.{key}={value}: expected {least} or more")


@dataclass(frozen=True, kw_only=True)
class ParallelConfig:
    """How many processes share the model."""

    model: int = 1
    """P: every weight matrix is split by rows over P processes, which compute the same frames, so
    that there are nproc / P processes for the workers. The same result within rounding."""

    def __post_init__(self) -> None:
        require(self.model >= 1, f"parallel.model={self.model}: expected at least 1")


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """Where the workers run."""

    nproc: int = run_only(1)
    """Processes on this machine, at least 1: parallel.model times a divisor of exchange.workers.
    (`torchrun` sets its own number.)"""
    threads: int = 1
    """Threads of a process's computation; another number gives other rounding."""
    device: str = "cpu"
    """cpu, or cuda: one GPU a process."""
    timeout_s: int = run_only(60)
    """Seconds that a process waits for the others before it gives up."""

    def __post_init__(self) -> None:
        for key in ("nproc", "threads", "timeout_s"):
            value = getattr(self, key)
            require(value >= 1, f"launch.{key}={value}: expected at least 1")
        require_choice("launch.device", self.device, ("cpu", "cuda"))


@dataclass(frozen=True, kw_only=True)
class TrainConfig(StageConfig):
    """Settings of `train`."""

    frames: str
    """Training set: a directory that `frames` made."""
    dev: str
    """Held-out set, likewise: judges every epoch, and is never trained on."""
    init: str = ""
    """Directory of a trained model to start from, with model= as it was; with model.svd_rank its
    matrices are factored first. Empty: a new network."""
    model: DnnConfig = field(default_factory=DnnConfig)
    """The network."""
    pretrain: PretrainConfig = field(default_factory=PretrainConfig)
    """Its first weights."""
    exchange: ExchangeConfig = field(default_factory=ExchangeConfig)
    """How gradients travel."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """What an owner does to the summed gradient."""
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    """The steps."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    """The learning rate."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """Trials."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """What an interrupted training goes on from."""
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    """The split of the model."""
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    """Where the workers run."""

    def __post_init__(self) -> None:
        if self.pretrain.method == "rbm":
            require_rbm_can_pretrain(self.model)
        require(
            not (self.init and self.pretrain.method != "none"),
            f"init={self.init} and pretrain.method={self.pretrain.method} cannot work together: "
            "a trained model needs no pre-training",
        )
        require(
            not (self.exchange.method == "powersgd" and self.parallel.model > 1),
            f"exchange.method=powersgd and parallel.model={self.parallel.model} cannot work "
            "together: the factors of a part of a matrix are not a part of its factors",
        )
        self._check_block_momentum()

    def _check_block_momentum(self) -> None:
        if self.trainer.kind != "block_momentum":
            return
        conflicts = {
            "exchange.double_buffer": self.exchange.double_buffer,
            "exchange.method=powersgd": self.exchange.method == "powersgd",
            "trainer.minibatch=auto": self.trainer.minibatch == "auto",
            "schedule.auto": self.schedule.auto,
            "optimizer.adagrad=partial": self.optimizer.adagrad == "partial",
        }
        for key, given in conflicts.items():
            require(
                not given,
                f"trainer.kind=block_momentum and {key} cannot work together: there is one "
                "exchange a block, and not one a minibatch",
            )
        require(
            self.parallel.model == 1,
            f"trainer.kind=block_momentum and parallel.model={self.parallel.model} cannot work "
            "together: in a block every worker trains a whole model of its own",
        )

    @property
    def first_minibatch(self) -> int:
        """Frames of a step at the start."""
        if self.trainer.minibatch_profile:
            return self.trainer.minibatch_profile[0]
        given = self.trainer.minibatch
        return given if isinstance(given, int) else self.search.min_minibatch
