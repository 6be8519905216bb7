"""The parts of a trainer, put together as the settings say."""

from collections.abc import Sequence

from torch import Tensor

from asrtrain.nnet.model_file import AcousticModel
from asrtrain.onebit.codec import codec_for
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.transport import Transport
from asrtrain.train.config import TrainConfig
from asrtrain.train.loop import Trainer
from asrtrain.train.optimizer import StripeOptimizer
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.parallel import local_parameters


def new_trainer(config: TrainConfig, model: AcousticModel, transport: Transport) -> Trainer:
    """A trainer of `model` that has taken no step."""
    exchange = new_exchange(config, local_parameters(model.network), transport)
    optimizer = new_optimizer(config.optimizer, exchange)
    return Trainer(config.trainer, model, exchange, optimizer, config.exchange.double_buffer)


def new_exchange(
    config: TrainConfig, parameters: Sequence[Tensor], transport: Transport
) -> StripedExchange:
    """The exchange of `parameters` between the workers."""
    settings = config.exchange
    return StripedExchange(
        parameters,
        codec_for(settings),
        transport,
        settings.workers,
        int(settings.bucket_mb * 2**20),
        overlap=transport.size > 1 and (settings.overlap or settings.double_buffer),
    )


def new_optimizer(config: OptimizerConfig, exchange: StripedExchange) -> StripeOptimizer:
    """The optimizer of the stripes that this process owns."""
    stripes = [exchange.matrices[each.matrix][each.begin : each.end] for each in exchange.owned]
    return StripeOptimizer(config, stripes, exchange.parameters, len(exchange.local_workers))
