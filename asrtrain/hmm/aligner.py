"""Viterbi alignment of utterances to their transcripts, in processes that keep graphs and features.

Utterances are dealt out in batches whose number does not depend on the number of processes; sums
over batches are added in their order, so that results are the same for any `nj`.
"""

import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kaldi_hmm_gmm as khg
import kaldifst
import numpy as np
import numpy.typing as npt

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.reader import open_features
from asrtrain.hmm.gaussians import Features, Mixtures, Statistics
from asrtrain.hmm.observations import read_observations
from asrtrain.hmm.structure import HmmStructure
from asrtrain.io.errors import UserError
from asrtrain.io.parallel import Workers, split_evenly
from asrtrain.lang.directory import read_fst, read_phone_set, read_unk
from asrtrain.lang.symbols import read_symbols

BATCHES = 16
"""More than there are ever jobs here, few enough that their sums are cheap to send."""

EQUAL_TRIES = 16
"""Random paths from which an utterance's first alignment is taken."""

SELF_LOOP_SCALE, TRANSITION_SCALE, ACOUSTIC_SCALE = 0.1, 1.0, 0.1
"""Kaldi's, for alignment (`scale_opts` of its steps)."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Beams:
    """Of the search; a second, wider one is tried when the first fails."""

    beam: float
    retry_beam: float


@dataclass(frozen=True)
class Realigned:
    """How an alignment went."""

    retried: int
    """Utterances that needed the wider beam."""
    failed: list[str]
    """Utterances without an alignment."""


@dataclass(frozen=True)
class Accumulated:
    """What the current alignments say."""

    statistics: list[Statistics]
    """Of the Gaussians, one for each batch."""
    transitions: npt.NDArray[np.int64]
    """How often each transition id was taken."""


@dataclass(frozen=True)
class AlignerJob:
    """What one process needs to start."""

    data: str
    lang: str
    structure: HmmStructure
    batches: list[Sequence[str]]


class Aligner:
    """Some batches of utterances with their features, graphs and current alignments."""

    def __init__(self, job: AlignerJob) -> None:
        import torch  # slow to import, so not before there is work

        torch.set_num_threads(1)
        reader, directory = open_features(job.data), DataDirectory.read(job.data)
        words, unk = read_words(Path(job.lang))
        compiler = graph_compiler(Path(job.lang), job.structure)
        dim = reader.dim
        silences = read_phone_set(Path(job.lang), "silence")
        self._silence = job.structure.transitions_of_phones(silences)
        self._batches = job.batches
        self._structure = job.structure
        self._features: dict[str, Features] = {}
        self._graphs: dict[str, kaldifst.StdVectorFst] = {}
        self._alignments: dict[str, npt.NDArray[np.int32]] = {}
        for utterance in (each for batch in job.batches for each in batch):
            self._features[utterance] = read_observations(reader, utterance, dim, job.data)
            labels = word_labels(job, utterance, directory.text[utterance], words, unk)
            self._graphs[utterance] = compiler.compile_graph_from_text(labels)

    def align_equally(self) -> list[str]:
        """Spread each utterance's states evenly over its frames; return those too short for it.

        Pronunciations and silences are chosen at random, but of `EQUAL_TRIES` choices one with
        silence at both ends, where recordings have it, is preferred, then one with few between.
        """
        for utterance, graph in self._graphs.items():
            # Of the utterance, so that the choices are the same for any number of processes.
            seed = zlib.crc32(utterance.encode()) & 0x3FFFFFFF
            paths = [self._equal_path(utterance, graph, seed + each) for each in range(EQUAL_TRIES)]
            found = [path for path in paths if path is not None]
            if found:
                self._alignments[utterance] = max(found, key=self._edge_silence)
        return [each for each in self._graphs if each not in self._alignments]

    def _equal_path(
        self, utterance: str, graph: kaldifst.StdVectorFst, seed: int
    ) -> npt.NDArray[np.int32] | None:
        succeeded, path = kaldifst.equal_align(graph, len(self._features[utterance]), seed)
        if not succeeded:
            return None
        _, labels, _, _ = kaldifst.get_linear_symbol_sequence(path)
        return np.array(labels, np.int32)

    def _edge_silence(self, labels: npt.NDArray[np.int32]) -> tuple[int, int]:
        """How many ends are silent, and less of it all for silence anywhere: more is preferred."""
        silent = np.isin(labels, self._silence)
        return int(silent[0]) + int(silent[-1]), -int(silent.sum())

    def align(
        self,
        mixtures: Mixtures,
        log_probs: tuple[float, ...],
        beams: Beams,
        part: int = 0,
        parts: int = 1,
    ) -> Realigned:
        """Align `part` of `parts` of the utterances anew."""
        structure = HmmStructure(self._structure.topology, self._structure.tree, log_probs)
        config = khg.AlignConfig(beam=beams.beam, retry_beam=beams.retry_beam)
        retried, failed = 0, []
        for utterance, graph in list(self._graphs.items())[part::parts]:
            weighted = kaldifst.StdVectorFst(graph)
            khg.add_transition_probs(
                structure.transitions, [], TRANSITION_SCALE, SELF_LOOP_SCALE, weighted
            )
            scores = mixtures.log_likelihoods(self._features[utterance]) * ACOUSTIC_SCALE
            decodable = khg.DecodableCtc(scores[:, structure.pdf_of[1:]])
            _, _, again, _, _, labels, _ = khg.align_utterance_wrapper(
                config, utterance, ACOUSTIC_SCALE, weighted, decodable, 0, 0, 0, 0.0, 0
            )
            retried += again
            if labels:
                self._alignments[utterance] = np.array(labels, np.int32)
            else:
                self._alignments.pop(utterance, None)
                failed.append(utterance)
        return Realigned(retried, failed)

    def accumulate(self, mixtures: Mixtures) -> Accumulated:
        """Statistics of the current alignments, for each batch."""
        pdf_of = np.array(self._structure.pdf_of)
        statistics = []
        for batch in self._batches:
            aligned = [each for each in batch if each in self._alignments]
            if aligned:
                features = np.concatenate([self._features[each] for each in aligned])
                labels = np.concatenate([self._alignments[each] for each in aligned])
                statistics.append(mixtures.accumulate(features, pdf_of[labels]))
        return Accumulated(statistics, self._count_transitions())

    def alignments(self) -> dict[str, npt.NDArray[np.int32]]:
        """Transition ids of each aligned utterance."""
        return self._alignments

    def _count_transitions(self) -> npt.NDArray[np.int64]:
        size = len(self._structure.pdf_of)
        counts = np.zeros(size, np.int64)
        for labels in self._alignments.values():
            counts += np.bincount(labels, minlength=size)
        return counts


def start_aligners(
    data: str, lang: str, structure: HmmStructure, utterances: list[str], nj: int
) -> Workers:
    """Processes that share `utterances`."""
    batches = split_evenly(utterances, BATCHES)
    jobs = [AlignerJob(data, lang, structure, list(each)) for each in split_evenly(batches, nj)]
    return Workers(Aligner, jobs)


def report_failed(failed: list[str], total: int, max_failed: float, data: str) -> None:
    """Warn of each utterance that has no alignment. Raises UserError if there are too many."""
    for utterance in failed:
        log.warning("%s: %s could not be aligned, left out", data, utterance)
    if len(failed) > max_failed * total:
        raise UserError(
            f"{data}: {len(failed)} of {total} utterances could not be aligned, such as "
            f"{failed[0]}; check transcripts and features, or raise max_failed={max_failed}"
        )


def graph_compiler(lang: Path, structure: HmmStructure) -> khg.TrainingGraphCompiler:
    """Makes an utterance's graph without transition probabilities, which change as one trains."""
    lexicon, disambig = read_fst(lang / "L.fst", "lang"), read_phone_set(lang, "disambig")
    options = khg.TrainingGraphCompilerOptions(0.0, 0.0, True)
    return khg.TrainingGraphCompiler(
        structure.transitions, structure.context, lexicon, disambig, options
    )


def read_words(lang: Path) -> tuple[dict[str, int], str]:
    """The word symbols of a lang directory, and the word for unknown ones or an empty string."""
    return read_symbols(lang / "words.txt"), read_unk(lang)


def word_labels(
    job: AlignerJob, utterance: str, words: list[str], symbols: dict[str, int], unk: str
) -> list[int]:
    """Integers of an utterance's words. Raises UserError for one that the lexicon lacks."""
    labels = []
    for word in words:
        if word not in symbols and not unk:
            raise UserError(
                f"{job.data}/text: {utterance} has the word {word}, which {job.lang}/words.txt "
                "lacks; add it to the lexicon, or make the lang directory with unk=WORD"
            )
        labels.append(symbols[word if word in symbols else unk])
    return labels
