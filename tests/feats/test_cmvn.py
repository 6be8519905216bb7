"""Normalization with the statistics of an utterance, or of another set."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from asrtrain.feats.cmvn import CmvnConfig, NormalizeConfig, cmvn
from asrtrain.feats.deltas import add_deltas
from asrtrain.feats.extract import FeatsConfig, extract
from asrtrain.feats.reader import CMVN_OPTIONS, open_features
from asrtrain.io.errors import UserError
from tests.feats.test_extract import FRAMES, cepstra, data_directory, normalized, sphinx_data
from tests.io.test_sphinx import write_mfc

BY_GLOBAL = NormalizeConfig(by="global")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """train: features of three utterances, normalized globally. other: one whose cepstra are 2."""
    extract(FeatsConfig(data=sphinx_data(tmp_path), cmvn=BY_GLOBAL, out=str(tmp_path / "train")))
    file = write_mfc(tmp_path / "s2-0.mfc", np.full((4, 13), 2.0))
    data_directory(tmp_path / "other", "cepstra.scp", {"s2-0": file})
    return tmp_path


def feats(folder: Path, **changes) -> FeatsConfig:
    settings = {"cmvn": BY_GLOBAL, "stats": str(folder / "train"), "out": str(folder / "dev")}
    return FeatsConfig(data=str(folder / "other"), **(settings | changes))


def as_train() -> np.ndarray:
    """Constant cepstra, so without derivatives, normalized as the training set."""
    raw = np.concatenate([add_deltas(cepstra(each).astype(np.float32)) for each in FRAMES])
    mean, deviation = raw.mean(axis=0, dtype=float), raw.std(axis=0, dtype=float)
    return (np.tile([2.0] * 13 + [0.0] * 26, (4, 1)) - mean) / deviation


def test_by_utterance(tmp_path: Path) -> None:
    data, out = sphinx_data(tmp_path), str(tmp_path / "feats")
    extract(FeatsConfig(data=data, cmvn=NormalizeConfig(by="utterance"), out=out))
    got = open_features(out).read("s0-1")
    np.testing.assert_allclose(got, normalized(["s0-1"])["s0-1"], atol=2e-5)


def test_feats_with_the_statistics_of_another_set(folder: Path) -> None:
    extract(feats(folder))
    got = open_features(folder / "dev").read("s2-0")
    np.testing.assert_allclose(got, as_train(), atol=2e-5)


def test_cmvn_with_the_statistics_of_another_set(folder: Path) -> None:
    extract(feats(folder, cmvn=NormalizeConfig(by="none"), stats="", out=str(folder / "raw")))
    settings = {"data": str(folder / "raw"), "by": "global", "out": str(folder / "dev")}
    cmvn(CmvnConfig(stats=str(folder / "train"), **settings))
    got = open_features(folder / "dev").read("s2-0")
    np.testing.assert_allclose(got, as_train(), atol=2e-5)


def test_statistics_of_other_dimensions(folder: Path) -> None:
    message = "train: has statistics of 39 dimensions, the features here have 33"
    with pytest.raises(UserError, match=message):
        extract(feats(folder, num_ceps=11))


def test_statistics_that_are_not_global(folder: Path) -> None:
    settings = {"data": str(folder / "train"), "out": str(folder / "by_speaker")}
    cmvn(CmvnConfig(**settings))
    with pytest.raises(UserError, match="by_speaker: has statistics by speaker, not global"):
        extract(feats(folder, stats=str(folder / "by_speaker")))
    with pytest.raises(UserError, match=r"other/cmvn.json: no such file; expected one that"):
        extract(feats(folder, stats=str(folder / "other")))
    with pytest.raises(UserError, match=r"stats=.*nowhere: no such file or folder"):
        extract(feats(folder, stats=str(folder / "nowhere")))


def test_options_that_nothing_wrote(folder: Path) -> None:
    options = {"by": "moon", "variances": True}
    (folder / "train" / CMVN_OPTIONS).write_text(json.dumps(options))
    with pytest.raises(UserError, match=re.escape("cmvn.json: by=moon: expected one of speaker,")):
        open_features(folder / "train")


def test_other_statistics_only_for_global_normalization() -> None:
    with pytest.raises(UserError, match=r"stats=x: is for cmvn.by=global, not cmvn.by=speaker"):
        FeatsConfig(data="data", stats="x")
    with pytest.raises(UserError, match=r"stats=x: is for by=global, not by=utterance"):
        CmvnConfig(data="data", by="utterance", stats="x")
