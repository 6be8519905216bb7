"""A GMM-HMM of the made-up language, trained once for this folder's tests."""

from pathlib import Path
from typing import NamedTuple

import pytest

from asrtrain.hmm.gmm import GmmConfig, train

from .corpus import make_language, write_features


class System(NamedTuple):
    """Directories."""

    data: Path
    test: Path
    lang: Path
    lm: Path
    model: Path


SHORT = {"totgauss": 30, "num_iters": 8, "max_iter_inc": 5}


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> System:
    folder = tmp_path_factory.mktemp("system")
    data = write_features(folder / "train", 40, seed=1)
    test = write_features(folder / "test", 10, seed=2)
    lang, lm = make_language(folder, data)
    train(GmmConfig(data=str(data), lang=str(lang), out=str(folder / "gmm"), **SHORT))
    return System(data, test, lang, lm, folder / "gmm")
