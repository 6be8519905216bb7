"""The verb `decode`: features to hypotheses over a grid of acoustic scales and word penalties."""

import json
import logging
import time
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from asrtrain.feats.reader import FeatureReader, open_features
from asrtrain.hmm.observations import read_observations
from asrtrain.io.errors import UserError
from asrtrain.io.parallel import map_jobs
from asrtrain.io.settings import StageConfig, require, run_only
from asrtrain.io.stage import stage, write_counts
from asrtrain.io.tables import write_table
from asrtrain.lang.symbols import read_symbols

if TYPE_CHECKING:
    from asrtrain.decode.search import AcousticScorer, LatticeSearch

log = logging.getLogger(__name__)

GRID = "grid.json"
FRAMES_PER_SECOND = 100
"""Of features with the usual shift of 10 ms; for the real-time factor only."""


@dataclass(frozen=True, kw_only=True)
class DecodeConfig(StageConfig):
    """Settings of `decode`."""

    data: str
    """Features directory."""
    graph: str
    """Directory with HCLG.fst."""
    model: str
    """Directory of a network (final.pt) or a GMM (final.mdl)."""
    scales: list[float] = field(
        default_factory=lambda: [0.05, 0.07, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4]
    )
    """Acoustic scales to take the best path at: the inverse of Kaldi's LM weights; above 0."""
    penalties: list[float] = field(
        default_factory=lambda: [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]
    )
    """Word insertion penalties, likewise, in units of the graph's costs; above 0 shortens."""
    search_scale: float = 0.15
    """Acoustic scale of the search that makes the lattice, above 0."""
    beam: float = 16.0
    """Of the search, in units of scaled costs."""
    lattice_beam: float = 8.0
    """How much worse than the best path a path of the lattice may be."""
    nj: int = run_only(1)
    """Processes."""

    def __post_init__(self) -> None:
        require(min(self.scales, default=0) > 0, f"scales={self.scales}: expected some, above 0")
        for key in ("scales", "penalties"):
            shown = [f"{value:g}" for value in getattr(self, key)]
            require(len({*shown}) == len(shown), f"{key}={getattr(self, key)}: has a value twice")
        require(bool(self.penalties), "penalties=[]: expected at least one")
        for key in ("search_scale", "beam", "lattice_beam"):
            require(getattr(self, key) > 0, f"{key}={getattr(self, key)}: expected above 0")
        require(self.nj >= 1, f"nj={self.nj}: expected at least 1")

    @property
    def points(self) -> list[tuple[float, float]]:
        """(scale, penalty) of the grid, in order."""
        return list(product(self.scales, self.penalties))


@stage("decode", inputs=("data", "graph", "model"))
def decode(config: DecodeConfig, out: Path) -> None:
    """Search each utterance once for a lattice; write its best words at each point of the grid.

    hyp/SCALE_PENALTY.txt holds the words in Kaldi's text form; grid.json lists the files. `score`
    chooses a point on a development set and applies it to a test set. Results do not depend on nj.
    """
    _opened_once.cache_clear()  # this process may have decoded with files since made anew
    reader, _, _ = _opened(config)
    begin = time.monotonic()
    results = list(
        map_jobs(
            partial(_decode_utterance, config), reader.utterances, config.nj, "decode", "utterances"
        )
    )
    seconds = time.monotonic() - begin
    _write_hypotheses(config, out, dict(zip(reader.utterances, results, strict=True)))
    frames = sum(result.frames for result in results)
    unfinished = [
        name for name, each in zip(reader.utterances, results, strict=True) if not each.finished
    ]
    for utterance in unfinished:
        log.warning(
            "%s: %s reached no final state, its best partial path is kept", config.data, utterance
        )
    log.info(
        "%d utterances, %d frames, real-time factor %.4f with %d processes",
        len(results),
        frames,
        seconds * FRAMES_PER_SECOND / frames,
        config.nj,
    )
    write_counts(
        out, utterances=len(results), frames=frames, seconds=seconds, unfinished=len(unfinished)
    )


@dataclass(frozen=True)
class _Decoded:
    words: list[tuple[int, ...]]
    """At each point of the grid."""
    frames: int
    finished: bool


def _decode_utterance(config: DecodeConfig, utterance: str) -> _Decoded:
    reader, scorer, search = _opened(config)
    features = read_observations(reader, utterance, scorer.dim, config.data)
    lattice, finished = search.lattice(scorer.score(features))
    words = [
        tuple(lattice.words_of(lattice.best_path(scale, penalty)).tolist())
        for scale, penalty in config.points
    ]
    return _Decoded(words, len(features), finished)


@lru_cache(maxsize=1)
def _opened_once(
    data: str, graph: str, model: str, scale: float, beam: float, lattice_beam: float
) -> "tuple[FeatureReader, AcousticScorer, LatticeSearch]":
    import torch  # slow to import, as is what uses it, so not before there is work

    from asrtrain.decode.search import LatticeSearch, open_scorer

    torch.set_num_threads(1)
    reader, scorer = open_features(data), open_scorer(Path(model))
    search = LatticeSearch(Path(graph), scale, beam, lattice_beam)
    if reader.dim != scorer.dim:
        raise UserError(
            f"{data}: features have {reader.dim} dimensions, {model} was trained on {scorer.dim}; "
            "make them with the same settings"
        )
    if scorer.num_senones != search.num_senones:
        raise UserError(
            f"{model} has {scorer.num_senones} senones but {graph} was made for "
            f"{search.num_senones}; make the graph with the model that aligned the training set"
        )
    return reader, scorer, search


def _opened(config: DecodeConfig) -> "tuple[FeatureReader, AcousticScorer, LatticeSearch]":
    """What a process keeps from utterance to utterance."""
    return _opened_once(
        config.data,
        config.graph,
        config.model,
        config.search_scale,
        config.beam,
        config.lattice_beam,
    )


def _write_hypotheses(config: DecodeConfig, out: Path, results: dict[str, _Decoded]) -> None:
    names = {value: name for name, value in read_symbols(Path(config.graph) / "words.txt").items()}
    (out / "hyp").mkdir()
    grid = []
    for place, (scale, penalty) in enumerate(config.points):
        file = f"hyp/{scale:g}_{penalty:g}.txt"
        text = {
            utterance: " ".join(names[word] for word in result.words[place])
            for utterance, result in results.items()
        }
        write_table(out / file, text)
        grid.append({"scale": scale, "penalty": penalty, "file": file})
    (out / GRID).write_text(json.dumps(grid, indent=1) + "\n")
