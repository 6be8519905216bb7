"""The verb `align`: forced alignment with a GMM-HMM (Kaldi: steps/align_si.sh)."""

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from asrtrain.feats.reader import open_features
from asrtrain.hmm.aligner import Beams, Realigned, report_failed, start_aligners
from asrtrain.hmm.gmm import ALIGNMENT
from asrtrain.hmm.model_file import FINAL_MODEL, TREE, read_model
from asrtrain.hmm.phones import PHONES, check_phones
from asrtrain.io.archive import write_int_vectors
from asrtrain.io.errors import UserError
from asrtrain.io.progress import progress
from asrtrain.io.settings import StageConfig, require, run_only
from asrtrain.io.stage import stage, write_counts
from asrtrain.lang.directory import read_phone_set

log = logging.getLogger(__name__)

PARTS = 20
"""In which the utterances are aligned, for the progress bar."""


@dataclass(frozen=True, kw_only=True)
class AlignConfig(StageConfig):
    """Settings of `align`."""

    data: str
    """Features directory with transcripts."""
    lang: str
    """Lang directory."""
    model: str
    """Directory with final.mdl and tree."""
    beam: float = 10.0
    """Of the search."""
    retry_beam: float = 40.0
    """Of a second search, where the first fails."""
    boost_silence: float = 1.0
    """Factor on the likelihood of silence, above 0."""
    max_failed: float = 0.05
    """Share of utterances, 0 to 1, that may fail to align; more is an error."""
    nj: int = run_only(1)
    """Processes."""

    def __post_init__(self) -> None:
        for key in ("beam", "retry_beam"):
            require(getattr(self, key) > 0, f"{key}={getattr(self, key)}: expected above 0")
        require(0 <= self.max_failed <= 1, f"max_failed={self.max_failed}: expected 0 to 1")
        require(self.nj >= 1, f"nj={self.nj}: expected at least 1")
        require(self.boost_silence > 0, f"boost_silence={self.boost_silence}: expected above 0")


@stage("align", inputs=("data", "lang", "model"))
def align(config: AlignConfig, out: Path) -> None:
    """Align utterances to their transcripts: ali.1.gz, with the model that made it beside it.

    The result does not depend on nj.
    """
    reader, model = open_features(config.data), read_model(Path(config.model))
    check_phones(Path(config.lang), Path(config.model), model.structure)
    dim = model.mixtures.means.shape[1]
    if reader.dim != dim:
        raise UserError(
            f"{config.data}: features have {reader.dim} dimensions, {config.model} was trained on "
            f"{dim}; make them with the same settings"
        )
    pdfs = model.structure.pdfs_of_phones(read_phone_set(Path(config.lang), "silence"))
    mixtures = model.mixtures.boost(pdfs, config.boost_silence)
    beams = Beams(config.beam, config.retry_beam)
    with start_aligners(
        config.data, config.lang, model.structure, reader.utterances, config.nj
    ) as workers:
        results: list[Realigned] = []
        for part in progress(range(PARTS), "align", PARTS, "parts"):
            settings = (mixtures, model.structure.log_probs, beams, part, PARTS)
            results += workers.call("align", *settings)
        alignments = {
            key: value for each in workers.call("alignments") for key, value in each.items()
        }
    failed = [utterance for each in results for utterance in each.failed]
    report_failed(failed, len(reader.utterances), config.max_failed, config.data)
    write_int_vectors(out / ALIGNMENT, alignments)
    for folder, name in ((config.model, FINAL_MODEL), (config.model, TREE), (config.lang, PHONES)):
        shutil.copyfile(Path(folder) / name, out / name)
    (out / "num_jobs").write_text("1\n")
    retried = sum(each.retried for each in results)
    log.info("%d utterances aligned, %d retried, %d failed", len(alignments), retried, len(failed))
    write_counts(
        out,
        aligned=len(alignments),
        retried=retried,
        failed=len(failed),
        frames=sum(map(len, alignments.values())),
    )
