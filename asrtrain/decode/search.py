"""From an utterance's log-likelihoods to a lattice, with Kaldi's lattice decoder."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import kaldi_decoder
import numpy as np
import numpy.typing as npt

from asrtrain.decode.lattice import Lattice, lattice_from_openfst
from asrtrain.hmm.model_file import read_model, read_structure
from asrtrain.io.errors import UserError
from asrtrain.lang.directory import read_fst
from asrtrain.nnet.model_file import FINAL_MODEL as NETWORK
from asrtrain.nnet.scorer import load_scorer

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class AcousticScorer:
    """What gives the log-likelihoods of all senones: a network or a GMM."""

    dim: int
    """D: features of a frame."""
    num_senones: int
    """S."""
    score: Callable[[Scores], Scores]
    """(T, D) features to (T, S) log-likelihoods."""


def open_scorer(model: Path) -> AcousticScorer:
    """The network in a folder that `train` made, else the GMM in one that `gmm` made."""
    if (model / NETWORK).is_file():
        scorer = load_scorer(model)
        return AcousticScorer(scorer.dim, scorer.num_senones, scorer)
    mixtures = read_model(model).mixtures
    return AcousticScorer(mixtures.means.shape[1], len(mixtures.sizes), mixtures.log_likelihoods)


class LatticeSearch:
    """A decoding graph and how it is searched."""

    def __init__(self, graph: Path, scale: float, beam: float, lattice_beam: float) -> None:
        if not (graph / "HCLG.fst").is_file():
            raise UserError(f"{graph}: no HCLG.fst; make it with `asrtrain graph out={graph}`")
        self._fst = read_fst(graph / "HCLG.fst", "graph")
        structure = read_structure(graph)
        self.num_senones = structure.num_pdfs
        self._pdf_of = structure.pdf_of[1:]
        self._scale = scale
        self._options = kaldi_decoder.LatticeSimpleDecoderConfig(
            beam=beam, lattice_beam=lattice_beam
        )

    def lattice(self, scores: Scores) -> tuple[Lattice, bool]:
        """The lattice of (T, S) log-likelihoods, and whether the search ended in a final state.

        If it did not, the lattice's paths end wherever they were after the last frame.
        """
        decoder = kaldi_decoder.LatticeSimpleDecoder(self._fst, self._options)
        decoder.decode(kaldi_decoder.DecodableCtc(scores[:, self._pdf_of] * self._scale))
        finished = bool(np.isfinite(decoder.final_relative_cost()))
        _, raw = decoder.get_raw_lattice()
        with tempfile.NamedTemporaryFile(suffix=".lat") as file:
            raw.write(file.name)
            data = Path(file.name).read_bytes()
        return lattice_from_openfst(data, self._scale), finished
