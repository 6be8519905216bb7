"""The verb `gmm`: a monophone GMM-HMM from a flat start (Kaldi: steps/train_mono.sh)."""

import logging
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import kaldi_hmm_gmm as khg
import numpy as np

from asrtrain.feats.reader import open_features
from asrtrain.hmm.aligner import Accumulated, Beams, Realigned, report_failed, start_aligners
from asrtrain.hmm.gaussians import Estimation, Mixtures, Statistics, flat_mixtures
from asrtrain.hmm.model_file import HmmModel, write_model
from asrtrain.hmm.observations import read_observations
from asrtrain.hmm.phones import PHONES
from asrtrain.hmm.structure import HmmStructure, monophone_structure
from asrtrain.io.archive import write_int_vectors
from asrtrain.io.parallel import Workers
from asrtrain.io.progress import progress
from asrtrain.io.settings import StageConfig, require, require_choice, run_only
from asrtrain.io.stage import stage, write_counts
from asrtrain.lang.directory import read_phone_set, read_topo

log = logging.getLogger(__name__)

ALIGNMENT = "ali.1.gz"

FIRST = Estimation(min_occupancy=3.0)
"""On the equal alignment: a rare phone that is not estimated there never aligns properly."""


@dataclass(frozen=True, kw_only=True)
class GmmConfig(StageConfig):
    """Settings of `gmm`; defaults are those of Kaldi's train_mono.sh."""

    data: str
    """Features directory with transcripts."""
    lang: str
    """Lang directory."""
    stage: str = "mono"
    """mono: one senone for each state of a phone, from a flat start."""
    num_iters: int = 40
    """Iterations, at least 1."""
    max_iter_inc: int = 30
    """Last iteration that adds Gaussians."""
    totgauss: int = 1000
    """Gaussians to reach by then, over all senones."""
    power: float = 0.25
    """Senones share them by their occupancy to this power."""
    realign_iters: list[int] = field(
        default_factory=lambda: [*range(1, 11), *range(12, 21, 2), 23, 26, 29, 32, 35, 38]
    )
    """Iterations that align anew."""
    boost_silence: float = 1.0
    """Factor on the likelihood of silence while aligning, above 0."""
    initial_beam: float = 6.0
    """Beam of the first alignment."""
    beam: float = 10.0
    """Beam of the others; one that fails is tried again with 4 times as much."""
    max_failed: float = 0.05
    """Share of utterances, 0 to 1, that may fail to align; more is an error."""
    seed: int = 1
    """Of the directions in which Gaussians split."""
    nj: int = run_only(1)
    """Processes."""

    def __post_init__(self) -> None:
        require_choice("stage", self.stage, ("mono",))
        for key in ("num_iters", "max_iter_inc", "totgauss", "nj"):
            require(getattr(self, key) >= 1, f"{key}={getattr(self, key)}: expected at least 1")
        for key in ("boost_silence", "initial_beam", "beam"):
            require(getattr(self, key) > 0, f"{key}={getattr(self, key)}: expected above 0")
        for key in ("power", "seed"):
            require(getattr(self, key) >= 0, f"{key}={getattr(self, key)}: expected 0 or more")
        require(0 <= self.max_failed <= 1, f"max_failed={self.max_failed}: expected 0 to 1")


@stage("gmm", inputs=("data", "lang"))
def train(config: GmmConfig, out: Path) -> None:
    """Train a GMM-HMM: equal alignment, then estimation, splitting and realignment in turn.

    Writes final.mdl, tree and the last alignment (ali.1.gz) as Kaldi does. The result does not
    depend on nj.
    """
    lang, reader = Path(config.lang), open_features(config.data)
    structure = monophone_structure(read_topo(lang))
    silence = read_phone_set(lang, "silence")
    dim = reader.dim
    features = (
        read_observations(reader, utterance, dim, config.data) for utterance in reader.utterances
    )
    training = _Training(
        config,
        structure,
        flat_mixtures(features, structure.num_pdfs),
        structure.pdfs_of_phones(silence),
        len(reader.utterances),
    )
    with start_aligners(
        config.data, config.lang, structure, reader.utterances, config.nj
    ) as workers:
        training.run(workers, out)
        alignments = {
            key: value for each in workers.call("alignments") for key, value in each.items()
        }
    write_model(out, HmmModel(training.structure, training.mixtures))
    write_int_vectors(out / ALIGNMENT, alignments)
    shutil.copyfile(lang / PHONES, out / PHONES)
    (out / "num_jobs").write_text("1\n")


@dataclass
class _Training:
    """The state of training between iterations."""

    config: GmmConfig
    structure: HmmStructure
    mixtures: Mixtures
    silence_pdfs: list[int]
    utterances: int

    def run(self, workers: Workers, out: Path) -> None:
        """All iterations, the first on an equal alignment."""
        config = self.config
        generator = np.random.Generator(np.random.PCG64(config.seed))
        target = self.structure.num_pdfs
        step = max((config.totgauss - target) // config.max_iter_inc, 0)
        too_short = [each for part in workers.call("align_equally") for each in part]
        report_failed(too_short, self.utterances, config.max_failed, config.data)
        for iteration in progress(range(config.num_iters), "gmm", config.num_iters, "iterations"):
            retried, failed = 0, []
            if iteration in config.realign_iters:
                retried, failed = self._align(workers, iteration)
            statistics = self._estimate(workers, FIRST if iteration == 0 else Estimation())
            occupancy = np.add.reduceat(statistics.occupancy, self.mixtures_before.starts)
            self.mixtures = self.mixtures.split(occupancy, target, config.power, generator)
            if 1 <= iteration <= config.max_iter_inc:
                target += step
            write_counts(
                out,
                iteration=iteration,
                log_likelihood_per_frame=statistics.log_likelihood / statistics.frames,
                frames=statistics.frames,
                gaussians=len(self.mixtures.weights),
                retried=retried,
                failed=len(failed),
            )
        log.info(
            "%d senones, %d Gaussians, log-likelihood %.2f a frame over %d frames",
            self.structure.num_pdfs,
            len(self.mixtures.weights),
            statistics.log_likelihood / statistics.frames,
            statistics.frames,
        )

    def _align(self, workers: Workers, iteration: int) -> tuple[int, list[str]]:
        config = self.config
        beam = config.initial_beam if iteration == 1 else config.beam
        results: list[Realigned] = workers.call(
            "align",
            self.mixtures.boost(self.silence_pdfs, config.boost_silence),
            tuple(self.structure.transitions.log_probs),
            Beams(beam, 4 * beam),
        )
        failed = [utterance for each in results for utterance in each.failed]
        report_failed(failed, self.utterances, config.max_failed, config.data)
        return sum(each.retried for each in results), failed

    def _estimate(self, workers: Workers, limits: Estimation) -> Statistics:
        """Update Gaussians and transitions from the current alignment."""
        results: list[Accumulated] = workers.call("accumulate", self.mixtures)
        first, *others = [batch for each in results for batch in each.statistics]
        statistics = sum(others, start=first)
        self.mixtures_before = self.mixtures
        self.mixtures = self.mixtures.estimate(statistics, limits)
        counts = sum(each.transitions for each in results).astype(np.float64)
        model = self.structure.transitions
        model.mle_update(counts, khg.MleTransitionUpdateConfig())
        self.structure = self.structure.with_transitions(model)
        return statistics
