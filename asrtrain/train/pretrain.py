"""Pre-training: the layers' first weights, one layer after the other, from the lowest.

Every layer is trained on `pretrain.frames` frames, in minibatches that the K workers share and
whose gradients travel as in the training proper.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from asrtrain.frames.order import FrameOrder, share
from asrtrain.frames.shards import FrameSet, Indices
from asrtrain.io.progress import progress_bar
from asrtrain.nnet.grow import grown, shallow
from asrtrain.nnet.model_file import AcousticModel, new_model
from asrtrain.nnet.rbm import Rbm, copy_into, layer_inputs, rbm_stack_layer
from asrtrain.onebit.transport import Transport, sum_over_workers
from asrtrain.train.assembly import new_exchange, new_optimizer, new_trainer
from asrtrain.train.batch import spliced_batch
from asrtrain.train.config import TrainConfig
from asrtrain.train.totals import over_workers

log = logging.getLogger(__name__)


def pretrained_discriminatively(
    config: TrainConfig, data: FrameSet, log_priors: Tensor, transport: Transport
) -> AcousticModel:
    """A network grown by a hidden layer at a time, each trained by back-propagation for a while."""
    depth, seed = len(config.model.hidden), config.trainer.seed
    model = new_model(shallow(config.model, 1), data.dim, log_priors, seed)
    for layers in range(1, depth):
        trainer = new_trainer(config, model, transport)
        size = config.first_minibatch
        trainer.begin_epoch(_rate(config), 0, size)
        for minibatch in _minibatches(config, data, size, f"pre-training {layers} layer(s)"):
            trainer.step(data, minibatch)
        trainer.drain()
        figures = over_workers(trainer.totals, transport).per_frame("train")
        log.info(
            "pre-training of %d hidden layer(s): loss %.4f, frame accuracy %.2f %%",
            layers,
            figures["train_loss"],
            100 * figures["train_frame_accuracy"],
        )
        generator = torch.Generator().manual_seed(seed)
        model = grown(model, config.model, generator)
    return model


def pretrained_by_rbm(
    config: TrainConfig, model: AcousticModel, data: FrameSet, transport: Transport
) -> None:
    """Give the hidden layers of `model` the weights of a stack of RBMs, trained by CD-1."""
    for layer in range(len(config.model.hidden)):
        generator = torch.Generator().manual_seed(config.trainer.seed + layer)
        first = next(_minibatches(config, data, config.pretrain.rbm_minibatch, "first"))
        mean = layer_inputs(model.network, layer, spliced_batch(data, first, model)[0]).mean(dim=0)
        rbm = rbm_stack_layer(model, layer, generator, mean)
        error = _train_rbm(config, model, layer, rbm, data, transport)
        copy_into(model.network, layer, rbm)
        log.info("RBM of hidden layer %d: squared error %.4f a frame", layer + 1, error)


def _train_rbm(
    config: TrainConfig,
    model: AcousticModel,
    layer: int,
    rbm: Rbm,
    data: FrameSet,
    transport: Transport,
) -> float:
    """Train the machine of one layer; return its mean reconstruction error over the frames."""
    settings, workers = config.pretrain, config.exchange.workers
    exchange = new_exchange(config, rbm.parameters, transport)
    plain = replace(config.optimizer, adagrad="none", clip_value=0.0, weight_decay=settings.rbm_l2)
    optimizer = new_optimizer(plain, exchange)
    rate = settings.rbm_gaussian_rate if rbm.gaussian else settings.rbm_rate
    optimizer.begin_epoch(rate, 0, settings.rbm_minibatch)
    errors = [[0.0, 0.0] for _ in exchange.local_workers]
    name = f"RBM {layer + 1}"
    for step, minibatch in enumerate(_minibatches(config, data, settings.rbm_minibatch, name)):
        gradients, counts = [], []
        for worker, total in zip(exchange.local_workers, errors, strict=True):
            own = share(minibatch, worker, workers)
            inputs, _ = spliced_batch(data, own, model)
            visible = layer_inputs(model.network, layer, inputs)
            generator = _generator((config.trainer.seed, layer, step, worker))
            gradients.append(rbm.cd1_gradients(visible, generator))
            counts.append(len(own))
            total[0] += rbm.reconstruction_error(visible)
            total[1] += len(own)
        exchange.step(gradients, counts, optimizer.update)
    error, frames = sum_over_workers(errors, transport)
    return error / frames


def _minibatches(
    config: TrainConfig, data: FrameSet, size: int, description: str
) -> Iterator[Indices]:
    """The first minibatches of the stream, with a progress bar."""
    frames = config.pretrain.frames or data.num_frames
    order = FrameOrder(data.shard_frames, config.trainer.seed)
    with progress_bar(description, frames, "frames") as bar:
        for minibatch in order.minibatches(0, frames, size):
            yield minibatch
            bar.update(len(minibatch))


def _rate(config: TrainConfig) -> float:
    schedule = config.schedule
    given = schedule.profile[0] if schedule.profile else schedule.learning_rate
    return config.pretrain.learning_rate or given


def _generator(seeds: Sequence[int]) -> torch.Generator:
    """Of bits that depend on the numbers `seeds` alone."""
    mixed = 0
    for seed in seeds:  # a linear congruential step each: different tuples, different streams
        mixed = (mixed * 6364136223846793005 + seed + 1442695040888963407) % 2**63
    return torch.Generator().manual_seed(mixed)
