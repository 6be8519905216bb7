"""The trained model as one file of plain tensors and plain types: `final.pt`.

It holds the network's settings, its dimensions, its parameters and the senones' log priors.
"""

import pickle
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from asrtrain.io.errors import UserError
from asrtrain.io.settings import require
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.dnn import new_network

FINAL_MODEL = "final.pt"
FORMAT = "asrtrain-dnn-1"


@dataclass(frozen=True)
class AcousticModel:
    """A network with what is needed to use it on features."""

    config: DnnConfig
    dim: int
    """D: features of one frame before splicing."""
    network: nn.Sequential
    log_priors: Tensor
    """(S,) float32: log of each senone's share of the training frames."""

    @property
    def num_senones(self) -> int:
        """S."""
        return len(self.log_priors)


def new_model(config: DnnConfig, dim: int, log_priors: Tensor, seed: int) -> AcousticModel:
    """A network with initial weights drawn from `seed`."""
    generator = torch.Generator().manual_seed(seed)
    network = new_network(config, dim, len(log_priors), generator)
    return AcousticModel(config, dim, network, log_priors)


def log_priors_from_counts(counts: Tensor, floor: float = 1e-5) -> Tensor:
    """Log priors (S,) of senones seen `counts` times; a share is at least `floor`.

    The floor keeps a senone that the alignment never uses from winning every frame when its
    posterior is divided by its prior.
    """
    shares = counts.double() / counts.double().sum()
    return shares.clamp(min=floor).log().float()


def save_model(model: AcousticModel, path: Path) -> None:
    """Write `model` to `path`."""
    torch.save(
        {
            "format": FORMAT,
            "config": asdict(model.config),
            "dim": model.dim,
            "log_priors": model.log_priors,
            "parameters": {name: each.detach() for name, each in model.network.named_parameters()},
        },
        path,
    )


def load_model(path: Path) -> AcousticModel:
    """Read a model; no code in the file is run.

    Settings that the file lacks, because it is older than they are, take their defaults. Raises
    UserError if the file is not a model, or has settings that this version does not know.
    """
    held = _load(path)
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise UserError(f"{path}: not a model of this version (expected format {FORMAT})")
    unknown = held["config"].keys() - {each.name for each in fields(DnnConfig)}
    require(
        not unknown,
        f"{path}: written by a newer version (settings unknown to this one: "
        f"{', '.join(f'model.{key}' for key in sorted(unknown))}); update asrtrain",
    )
    model = new_model(DnnConfig(**held["config"]), held["dim"], held["log_priors"], seed=0)
    model.network.load_state_dict(held["parameters"])
    return model


def _load(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"{path}: no such file; expected a model that `asrtrain train` made")
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read as a model ({type(error).__name__}); train it again"
        ) from error
