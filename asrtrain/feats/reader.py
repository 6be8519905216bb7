"""Normalized features of a features directory: a data directory with feats.scp and cmvn.scp."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.statistics import normalize
from asrtrain.io.archive import MatrixReader
from asrtrain.io.errors import UserError

GLOBAL = "global"
"""Key of the statistics of all utterances together."""

CMVN_OPTIONS = "cmvn.json"
"""What the statistics are for: {"by": "speaker" | "global", "variances": bool}."""


class FeatureReader:
    """Features by utterance, with CMVN applied if the directory has statistics."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if not (directory / "feats.scp").is_file():
            raise UserError(
                f"{directory}: no feats.scp; make features with `asrtrain feats data={directory}`"
            )
        self.utt2spk = DataDirectory.read(directory).utt2spk
        self.utterances = sorted(self.utt2spk, key=str.encode)
        self._features = MatrixReader(directory / "feats.scp")
        self._statistics = None
        if (directory / "cmvn.scp").is_file():
            self._statistics = MatrixReader(directory / "cmvn.scp")
            self._options = json.loads((directory / CMVN_OPTIONS).read_text())

    @property
    def dim(self) -> int:
        """D: feature dims, of the first utterance."""
        return self._features.read(self.utterances[0]).shape[1]

    def read(self, utterance: str) -> npt.NDArray[np.float32]:
        """(T, D) features. Raises UserError, naming the utterance, if there are none."""
        features = self._features.read(utterance)
        if not len(features):
            raise UserError(f"{self._directory / 'feats.scp'}: {utterance} has no frames")
        if self._statistics is None:
            return np.array(features, np.float32)
        by_speaker = self._options["by"] == "speaker"
        key = self.utt2spk[utterance] if by_speaker else GLOBAL
        statistics = self._statistics.read(key).astype(np.float64)
        try:
            return normalize(features, statistics, self._options["variances"])
        except UserError as error:
            raise UserError(f"{self._directory / 'cmvn.scp'}: {key}: {error}") from error


def open_features(directory: str | Path) -> FeatureReader:
    """The reader of a directory that `feats` or `cmvn` made. Raises UserError if it is not one."""
    return FeatureReader(Path(directory))
