"""The verb `train`: labelled frames to a network, by one worker or several."""

from dataclasses import replace
from pathlib import Path

from asrtrain.frames.shards import FrameSet
from asrtrain.io.errors import UserError
from asrtrain.io.settings import require
from asrtrain.io.stage import describe, is_complete, stage
from asrtrain.train.config import TrainConfig
from asrtrain.train.environment import processes, rank, under_torchrun

INPUTS = ("frames", "dev", "init")


def train(config: TrainConfig) -> None:
    """Train a DNN senone classifier by synchronous data-parallel SGD.

    exchange.workers=K cuts every minibatch into K sub-gradients, which travel as exchange= says:
    exchange=float32 sends all 32 bits a value, exchange=onebit one bit with error feedback. Where
    the K workers run does not matter: launch.nproc=2 starts two processes on this machine;
    `torchrun ... -m asrtrain.train key=value` starts them wherever torchrun does. Same seed, same
    K: same bits.

    With schedule.kind=newbob, after an epoch that does not lower the held-out loss the model goes
    back to the epoch before. The last accepted model is kept, as final.pt with its senone priors;
    summary.json holds the figures, metrics.jsonl and tensorboard/ those of every epoch.

    A training that was stopped goes on from its newest checkpoint when the same command is given
    again, on any number of processes that divides K, and ends with the same bits.
    """
    config = _resolved(config)
    if rank() == 0:
        _train_stage(config)
    elif not is_complete(config, describe("train", INPUTS, config)):
        _run_worker(config, None)


def _resolved(config: TrainConfig) -> TrainConfig:
    """With the number of workers and processes that there are."""
    if under_torchrun():
        config = replace(config, launch=replace(config.launch, nproc=processes()))
    nproc, shards = config.launch.nproc, config.parallel.model
    require(
        nproc % shards == 0,
        f"parallel.model={shards} and launch.nproc={nproc} cannot work together: every replica of "
        f"the model takes {shards} processes",
    )
    workers = config.exchange.workers or nproc // shards
    require(
        workers % (nproc // shards) == 0,
        f"exchange.workers={workers} and launch.nproc={nproc} cannot work together: the workers "
        f"are spread evenly over the {'processes' if shards == 1 else 'replicas'}"
        + (f", of which there are {nproc // shards}" if shards > 1 else ""),
    )
    _check_powersgd(config.exchange.method, workers, nproc)
    return replace(config, exchange=replace(config.exchange, workers=workers))


def _check_powersgd(method: str, workers: int, nproc: int) -> None:
    require(
        method != "powersgd" or workers == nproc > 1,
        f"exchange.method={method}, exchange.workers={workers} and launch.nproc={nproc} cannot "
        "work together: torch's hook needs a process for every worker, and two at least",
    )


@stage("train", inputs=INPUTS, resumable=True, may_differ=("exchange.workers",))
def _train_stage(config: TrainConfig, out: Path) -> None:
    _check_sets(config)
    if config.launch.nproc > 1 and not under_torchrun():
        from asrtrain.train.launch import launch
        from asrtrain.train.worker import launched_worker

        launch(config.launch, launched_worker, config, out)
    else:
        _run_worker(config, out)


def _run_worker(config: TrainConfig, out: Path | None) -> None:
    from asrtrain.train.worker import run_worker  # torch: not before there is work

    run_worker(config, out)


def _check_sets(config: TrainConfig) -> None:
    """Raise UserError for what would stop every worker, before any is started."""
    frames, dev = FrameSet(Path(config.frames)), FrameSet(Path(config.dev))
    for what in ("dim", "num_senones"):
        own, other = getattr(frames, what), getattr(dev, what)
        if own != other:
            raise UserError(
                f"{config.frames} has {what} {own} but {config.dev} has {other}; "
                "make both with the same features and alignment model"
            )
