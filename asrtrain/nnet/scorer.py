"""From features to what the decoder wants: scaled log-likelihoods of every senone."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from asrtrain.feats.splice import splice
from asrtrain.io.errors import UserError
from asrtrain.nnet.dnn import frame_scores
from asrtrain.nnet.model_file import FINAL_MODEL, AcousticModel, load_model


class Scorer:
    """Log posterior minus log prior, that is, log p(x | s) up to a constant of the frame."""

    def __init__(self, model: AcousticModel) -> None:
        self._model = model

    @property
    def dim(self) -> int:
        """D: the features that the network was trained on."""
        return self._model.dim

    @property
    def num_senones(self) -> int:
        """S: columns of the result."""
        return self._model.num_senones

    def __call__(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(T, D) features to (T, S) log-likelihoods. Raises UserError if D is another."""
        if features.shape[1] != self.dim:
            raise UserError(
                f"features have {features.shape[1]} dimensions, the network was trained on "
                f"{self.dim}; give features made with the settings of its training set"
            )
        config = self._model.config
        spliced = splice(features, config.left_context, config.right_context)
        scores = frame_scores(self._model.network, torch.from_numpy(spliced))
        return (scores - self._model.log_priors).numpy()


def load_scorer(directory: str | Path) -> Scorer:
    """The scorer of the model in a directory that `train` made; UserError if there is none."""
    return Scorer(load_model(Path(directory) / FINAL_MODEL))
