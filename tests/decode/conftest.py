"""A decoding graph for the GMM-HMM of the made-up language."""

from pathlib import Path
from typing import NamedTuple

import pytest

from asrtrain.decode.graph import GraphConfig, build
from tests.hmm.conftest import System, system  # noqa: F401


class Decoder(NamedTuple):
    """The system and its graph's directory."""

    system: System
    graph: Path


@pytest.fixture(scope="session")
def decoder(system: System, tmp_path_factory: pytest.TempPathFactory) -> Decoder:  # noqa: F811
    graph = tmp_path_factory.mktemp("graph") / "graph"
    build(
        GraphConfig(
            lang=str(system.lang), lm=str(system.lm), model=str(system.model), out=str(graph)
        )
    )
    return Decoder(system, graph)
