"""Normalized features of a features directory: a data directory with feats.scp and cmvn.scp."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.statistics import Statistics, normalize
from asrtrain.io.archive import MatrixReader
from asrtrain.io.errors import UserError
from asrtrain.io.json_file import read_json
from asrtrain.io.settings import require_choice

GLOBAL = "global"
"""Key of the statistics of all utterances together."""

CMVN_OPTIONS = "cmvn.json"
"""What the statistics are for: {"by": "speaker" | "utterance" | "global", "variances": bool}."""

STATISTICS_BY = ("speaker", "utterance", "global")
"""Over what statistics may be."""


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
            self._options = _read_options(directory, "make the features again")

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
        key = statistics_key(utterance, self.utt2spk[utterance], self._options["by"])
        statistics = self._statistics.read(key).astype(np.float64)
        try:
            return normalize(features, statistics, self._options["variances"])
        except UserError as error:
            raise UserError(f"{self._directory / 'cmvn.scp'}: {key}: {error}") from error


def statistics_key(utterance: str, speaker: str, by: str) -> str:
    """Under which key the statistics for an utterance are, `by` speaker, utterance or global."""
    return {"speaker": speaker, "utterance": utterance, "global": GLOBAL}[by]


def read_global_statistics(directory: str | Path, dim: int) -> Statistics:
    """The statistics (2, `dim` + 1) of all utterances of a features directory.

    Raises UserError if it has none, or if they are of features of other dimensions.
    """
    directory = Path(directory)
    remedy = "expected one that `asrtrain feats cmvn.by=global` or `asrtrain cmvn by=global` made"
    by = _read_options(directory, remedy)["by"]
    if by != "global":
        raise UserError(f"{directory}: has statistics by {by}, not global; {remedy}")
    statistics = MatrixReader(directory / "cmvn.scp").read(GLOBAL).astype(np.float64)
    if statistics.shape != (2, dim + 1):
        raise UserError(
            f"{directory}: has statistics of {statistics.shape[1] - 1} dimensions, the features "
            f"here have {dim}; make both with the same settings"
        )
    return statistics


def _read_options(directory: Path, remedy: str) -> dict[str, Any]:
    options = read_json(directory / CMVN_OPTIONS, dict, remedy, ("by", "variances"))
    require_choice(f"{directory / CMVN_OPTIONS}: by", options["by"], STATISTICS_BY)
    return options


def open_features(directory: str | Path) -> FeatureReader:
    """The reader of a directory that `feats` or `cmvn` made. Raises UserError if it is not one."""
    return FeatureReader(Path(directory))
