"""Each frame with its neighbours, as Kaldi's splice-feats."""

import numpy as np
import numpy.typing as npt


def splice(features: npt.NDArray[np.float32], left: int, right: int) -> npt.NDArray[np.float32]:
    """(T, D) to (T, (left + 1 + right) * D), oldest frame first; edges are repeated."""
    frames = np.arange(len(features))[:, None] + np.arange(-left, right + 1)
    return features[np.clip(frames, 0, len(features) - 1)].reshape(len(features), -1)
