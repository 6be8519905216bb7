"""The verb `train`: labelled frames to a network, on one worker or several."""

from dataclasses import replace
from pathlib import Path

from asrtrain.frames.shards import FrameSet
from asrtrain.io.errors import UserError
from asrtrain.io.stage import describe, is_complete, stage
from asrtrain.train.config import TrainConfig
from asrtrain.train.environment import rank, under_torchrun, workers


def train(config: TrainConfig) -> None:
    """Train a DNN senone classifier by synchronous data-parallel SGD.

    launch.nproc=2 starts two workers on this machine; `torchrun ... -m asrtrain.train key=value`
    starts them wherever torchrun does. exchange=onebit sends one bit a value with error feedback,
    where exchange=float32 sends all 32; nothing else differs. Same seed, same number of workers:
    same bits.

    After an epoch that does not lower the held-out loss the model goes back to the epoch before;
    the last accepted model is kept, as final.pt with its senone priors. summary.json holds the
    figures, metrics.jsonl those of every epoch.
    """
    if under_torchrun():
        config = replace(config, launch=replace(config.launch, nproc=workers()))
    if rank() == 0:
        _train_stage(config)
    elif not is_complete(config, describe("train", ("frames", "dev"), config)):
        _run_worker(config, None)


@stage("train", inputs=("frames", "dev"))
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
