"""What each process does from start to end: set up the run's parts, then run it."""

from contextlib import nullcontext
from pathlib import Path

import torch

from asrtrain.frames.shards import FrameSet
from asrtrain.io.log import log_file
from asrtrain.io.stage import LOG
from asrtrain.nnet.model_file import log_priors_from_counts, new_model
from asrtrain.onebit.codec import codec_for
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.transport import Transport
from asrtrain.train.config import TrainConfig
from asrtrain.train.environment import local_rank, rank
from asrtrain.train.launch import process_group
from asrtrain.train.loop import Trainer
from asrtrain.train.optimizer import StripeOptimizer
from asrtrain.train.run import Run


def run_worker(config: TrainConfig, out: Path | None) -> None:
    """Train as one of the processes; the one that is given `out` writes the results there."""
    with process_group(config.launch) as transport:
        data, dev = FrameSet(Path(config.frames)), FrameSet(Path(config.dev))
        Run(config, new_trainer(config, data, transport), data, dev, out).run()


def launched_worker(config: TrainConfig, out: Path) -> None:
    """A process that our own launcher started; process 0 writes and logs."""
    leader = rank() == 0
    with log_file(out / LOG) if leader else nullcontext():
        run_worker(config, out if leader else None)


def new_trainer(config: TrainConfig, data: FrameSet, transport: Transport) -> Trainer:
    """A trainer of a new network, which has taken no step."""
    log_priors = log_priors_from_counts(torch.from_numpy(data.pdf_counts))
    model = new_model(config.model, data.dim, log_priors, config.trainer.seed)
    model.network.to(_device(config))
    parameters = list(model.network.parameters())
    settings = config.exchange
    exchange = StripedExchange(
        parameters,
        codec_for(settings),
        transport,
        settings.workers,
        int(settings.bucket_mb * 2**20),
        overlap=transport.size > 1 and (settings.overlap or settings.double_buffer),
    )
    stripes = [exchange.matrices[each.matrix][each.begin : each.end] for each in exchange.owned]
    local = len(exchange.local_workers)
    optimizer = StripeOptimizer(config.optimizer, stripes, parameters, local)
    return Trainer(config.trainer, model, exchange, optimizer, settings.double_buffer)


def _device(config: TrainConfig) -> torch.device:
    if config.launch.device == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", local_rank())
    torch.cuda.set_device(device)
    return device
