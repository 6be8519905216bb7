"""The parts of a trainer, put together as the settings say."""

from collections.abc import Sequence

from torch import Tensor

from asrtrain.nnet.model_file import AcousticModel
from asrtrain.onebit.codec import codec_for
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.powersgd import PowerSgdExchange
from asrtrain.onebit.transport import ProcessGroupTransport, Transport
from asrtrain.train.block import BlockMomentum, BlockTrainer, worker_copies
from asrtrain.train.config import TrainConfig
from asrtrain.train.loop import Trainer
from asrtrain.train.optimizer import StripeOptimizer
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.parallel import local_parameters


def new_trainer(config: TrainConfig, model: AcousticModel, transport: Transport) -> Trainer:
    """A trainer of `model` that has taken no step."""
    exchange = new_exchange(config, local_parameters(model.network), transport)
    if config.trainer.kind == "block_momentum":
        return _block_trainer(config, model, exchange)
    optimizer = new_optimizer(config.optimizer, exchange)
    return Trainer(config.trainer, model, exchange, optimizer, config.exchange.double_buffer)


def new_exchange(
    config: TrainConfig, parameters: Sequence[Tensor], transport: Transport
) -> StripedExchange:
    """The exchange of `parameters` between the workers."""
    settings = config.exchange
    bucket_bytes = int(settings.bucket_mb * 2**20)
    overlap = transport.size > 1 and (settings.overlap or settings.double_buffer)
    if settings.method == "powersgd":
        assert isinstance(transport, ProcessGroupTransport), "TrainConfig has seen to it"
        rank = settings.powersgd_rank
        return PowerSgdExchange(parameters, rank, transport, bucket_bytes, overlap)
    codec, workers = codec_for(settings), settings.workers
    return StripedExchange(parameters, codec, transport, workers, bucket_bytes, overlap)


def new_optimizer(config: OptimizerConfig, exchange: StripedExchange) -> StripeOptimizer:
    """The optimizer of the stripes that this process owns."""
    workers = len(exchange.local_workers)
    return StripeOptimizer(config, _stripes(exchange), exchange.parameters, workers)


def _block_trainer(
    config: TrainConfig, model: AcousticModel, exchange: StripedExchange
) -> BlockTrainer:
    copies = worker_copies(model, len(exchange.local_workers))
    parameters = [list(each.values()) for each in copies]
    optimizer = BlockMomentum(
        config.trainer, config.optimizer, _stripes(exchange), parameters, exchange.workers
    )
    return BlockTrainer(config.trainer, model, exchange, optimizer, copies)


def _stripes(exchange: StripedExchange) -> list[Tensor]:
    """The owned rows of each parameter."""
    return [exchange.matrices[each.matrix][each.begin : each.end] for each in exchange.owned]
