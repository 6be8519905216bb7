"""The network that training starts from: new, trained before, or pre-trained layer by layer."""

from dataclasses import replace
from pathlib import Path

import torch

from asrtrain.frames.shards import FrameSet
from asrtrain.io.errors import UserError
from asrtrain.io.settings import require
from asrtrain.nnet.model_file import (
    FINAL_MODEL,
    AcousticModel,
    load_model,
    log_priors_from_counts,
    new_model,
)
from asrtrain.nnet.svd import factored
from asrtrain.onebit.transport import Transport
from asrtrain.train.config import TrainConfig
from asrtrain.train.pretrain import pretrained_by_rbm, pretrained_discriminatively


def initial_model(
    config: TrainConfig, data: FrameSet, transport: Transport, resuming: bool
) -> AcousticModel:
    """The model that has taken no step of the training proper; the same in every process.

    When training goes on from a checkpoint, its parameters do not matter: it is not pre-trained.
    """
    log_priors = log_priors_from_counts(torch.from_numpy(data.pdf_counts))
    if resuming:
        return new_model(config.model, data.dim, log_priors, config.trainer.seed)
    if config.init:
        return replace(_trained_before(config, data), log_priors=log_priors)
    if config.pretrain.method == "discriminative":
        return pretrained_discriminatively(config, data, log_priors, transport)
    model = new_model(config.model, data.dim, log_priors, config.trainer.seed)
    if config.pretrain.method == "rbm":
        pretrained_by_rbm(config, model, data, transport)
    return model


def _trained_before(config: TrainConfig, data: FrameSet) -> AcousticModel:
    """The model of `config.init`, its matrices factored if the new one's are to be."""
    path = Path(config.init) / FINAL_MODEL
    model, wanted = load_model(path), config.model
    for what in ("dim", "num_senones"):
        own, other = getattr(model, what), getattr(data, what)
        if own != other:
            raise UserError(
                f"init={config.init}: the model has {what} {own} but {config.frames} has {other}; "
                "start from a model of the same features and senones"
            )
    if wanted.svd_rank and not model.config.svd_rank:
        model = factored(model, wanted.svd_rank)
    require(
        model.config == wanted,
        f"init={config.init} and model= do not fit: that model is {model.config}, this one is to "
        f"be {wanted}; give the same model= (model.svd_rank may be added)",
    )
    return model
