"""What each process does from start to end: set up the run's parts, then run it."""

from contextlib import nullcontext
from pathlib import Path

import torch

from asrtrain.frames.shards import FrameSet
from asrtrain.io.log import log_file
from asrtrain.io.stage import CHECKPOINTS, LOG, partial_directory
from asrtrain.train.assembly import new_trainer
from asrtrain.train.config import TrainConfig
from asrtrain.train.environment import local_rank, rank
from asrtrain.train.initial import initial_model
from asrtrain.train.launch import process_group
from asrtrain.train.parallel import grid_of, split_
from asrtrain.train.run import Run


def run_worker(config: TrainConfig, out: Path | None) -> None:
    """Train as one of the processes; the one that is given `out` writes the results there."""
    with process_group(config.launch) as world:
        grid = grid_of(world, config.parallel.model, config.launch)
        data, dev = FrameSet(Path(config.frames)), FrameSet(Path(config.dev))
        checkpoints = partial_directory(Path(config.out)) / CHECKPOINTS
        resuming = any(checkpoints.glob("[!.]*"))
        # Pre-training is done whole by every column of the grid.
        model = initial_model(config, data, grid.workers, resuming)
        model.network.to(_device(config))
        if grid.mesh:
            split_(model.network, grid.mesh)
        Run(config, new_trainer(config, model, grid.workers), grid, data, dev, out).run()


def launched_worker(config: TrainConfig, out: Path) -> None:
    """A process that our own launcher started; process 0 writes and logs."""
    leader = rank() == 0
    with log_file(out / LOG) if leader else nullcontext():
        run_worker(config, out if leader else None)


def _device(config: TrainConfig) -> torch.device:
    if config.launch.device == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", local_rank())
    torch.cuda.set_device(device)
    return device
