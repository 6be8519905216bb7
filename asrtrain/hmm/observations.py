"""Features as a model needs them: of its dimensions, and finite."""

import numpy as np
import numpy.typing as npt

from asrtrain.feats.reader import FeatureReader
from asrtrain.io.errors import UserError


def read_observations(
    reader: FeatureReader, utterance: str, dim: int, data: str
) -> npt.NDArray[np.float32]:
    """(T, dim) features. Raises UserError, naming utterance and frame, if they are something else.

    One NaN would spoil the statistics of every utterance, and the search aborts on it.
    """
    features = reader.read(utterance)
    if features.shape[1] != dim:
        raise UserError(
            f"{data}: {utterance} has features of {features.shape[1]} dimensions, expected {dim}; "
            "make all features with the same settings"
        )
    wrong = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(wrong):
        raise UserError(
            f"{data}: {utterance}, frame {wrong[0]}: features are not finite; make them again or "
            "remove the utterance"
        )
    return features
