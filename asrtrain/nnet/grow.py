"""Discriminative pre-training: a network trained layer by layer, from one hidden layer up.

Seide, Li, Chen & Yu 2011 (ASRU), "Feature engineering in context-dependent deep neural networks for
conversational speech transcription", section on layer-wise back-propagation: train a network of one
hidden layer for a short while, throw its output layer away, put a new hidden layer and a new output
layer on top, train all of it, and so on up to the full depth.
"""

from dataclasses import replace

import torch

from asrtrain.io.settings import require
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.dnn import new_network
from asrtrain.nnet.model_file import AcousticModel


def shallow(config: DnnConfig, layers: int) -> DnnConfig:
    """The settings with the lowest `layers` hidden layers only; UserError if there are not so many.

    `layers` is at least 1.
    """
    require(
        1 <= layers <= len(config.hidden),
        f"model.hidden={config.hidden}: a network of {layers} hidden layer(s) was asked for, "
        f"expected 1 to {len(config.hidden)}; add hidden layers, or ask for another depth",
    )
    return replace(config, hidden=list(config.hidden[:layers]))


def grown(model: AcousticModel, config: DnnConfig, generator: torch.Generator) -> AcousticModel:
    """`model` with one more hidden layer of those in `config`.

    Its hidden layers are copied; the one above them, and the output layer, begin as in
    `new_network`. `generator` draws initial weights for every layer, those copied over included, so
    that with the same seed at each depth a layer starts as it would in the full network. Raises
    UserError if `model` has not the lowest layers of `config`, or has all.
    """
    depth = len(model.config.hidden)
    require(
        depth < len(config.hidden),
        f"model.hidden={config.hidden}: expected more than the {depth} hidden layer(s) that the "
        "model has already, so that one can be added",
    )
    require(
        model.config == shallow(config, depth),
        f"the model was made with {model.config}: expected {shallow(config, depth)}; start "
        "pre-training again with the settings of the full network",
    )
    deeper = shallow(config, depth + 1)
    network = new_network(deeper, model.dim, model.num_senones, generator)
    for trained, new in zip(model.network[:-1], network[: 2 * depth], strict=True):
        new.load_state_dict(trained.state_dict())
    return AcousticModel(deeper, model.dim, network, model.log_priors)
