"""The verb `import-ali`: the state labels of an HTK system, such as CNTK's examples come with."""

import logging
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.hmm.htk import read_mlf, read_state_list
from asrtrain.hmm.labels import PdfLabels, write_pdf_labels
from asrtrain.io.errors import UserError
from asrtrain.io.progress import progress
from asrtrain.io.settings import StageConfig, require
from asrtrain.io.stage import stage, write_counts

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ImportConfig(StageConfig):
    """Settings of `import-ali`."""

    data: str
    """Features or data directory; labels of its utterances are taken."""
    htk: str
    """HTK master label file with a state for each stretch of time."""
    states: str
    """File with one state a line; the first is pdf 0."""
    frame_shift_100ns: int = 100_000
    """Time from frame to frame in 100 ns, HTK's unit; 100000 is 10 ms."""
    max_missing: float = 0.05
    """Share of utterances, 0 to 1, that may be without labels; more is an error."""

    def __post_init__(self) -> None:
        shift = self.frame_shift_100ns
        require(shift >= 1, f"frame_shift_100ns={shift}: expected at least 1")
        require(
            0 <= self.max_missing <= 1, f"max_missing={self.max_missing}: expected a share, 0 to 1"
        )


@stage("import-ali", inputs=("data", "htk", "states"))
def import_ali(config: ImportConfig, out: Path) -> None:
    """Write the labels as pdf ids: pdf.1.gz and num_pdfs, which `frames` takes as an alignment.

    The base name of a label path, without its suffix, must be an utterance id, or what follows the
    speaker's id (and a hyphen or underscore) in one. Where a path may mean two utterances, or an
    utterance is meant by two paths, no labels are taken.
    """
    directory = DataDirectory.read(config.data)
    states = read_state_list(Path(config.states))
    labels, doubts, unused = _match(config, states, directory.utt2spk)
    missing = [each for each in directory.utterances if each not in labels]
    for utterance in missing:
        reason = doubts.get(utterance, "no labels of it")
        log.warning("%s: %s is left out: %s", config.htk, utterance, reason)
    total = len(directory.utterances)
    if len(missing) > config.max_missing * total:
        raise UserError(
            f"{config.htk}: {len(missing)} of {total} utterances of {config.data} have no labels "
            f"there, such as {missing[0]}; the base names of its paths must be utterance ids, with "
            f"or without the speaker in front; or raise max_missing={config.max_missing}"
        )
    write_pdf_labels(out, PdfLabels(len(states), labels))
    frames = sum(map(len, labels.values()))
    log.info("%d utterances, %d frames, %d states", len(labels), frames, len(states))
    write_counts(
        out,
        imported=len(labels),
        missing=len(missing) - len(doubts),
        doubtful=len(doubts),
        unused=unused,
        frames=frames,
        senones=len(states),
    )


def partners(utt2spk: Mapping[str, str]) -> dict[str, list[str]]:
    """The utterances that a label file's name can mean, by name.

    The name is an utterance id; or, where no id is that name, what follows the speaker's id (and
    one hyphen or underscore) in an utterance id.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for utterance, speaker in utt2spk.items():
        if utterance.startswith(speaker):
            found[re.sub("^[-_]", "", utterance.removeprefix(speaker))].append(utterance)
    return found | {utterance: [utterance] for utterance in utt2spk}


def _match(
    config: ImportConfig, states: Mapping[str, int], utt2spk: Mapping[str, str]
) -> tuple[dict[str, npt.NDArray[np.int32]], dict[str, str], int]:
    """Labels by utterance; why an utterance has none in spite of a partner; unused label paths."""
    named, unused = partners(utt2spk), 0
    labels: dict[str, npt.NDArray[np.int32]] = {}
    doubts: dict[str, str] = {}
    lines: dict[str, int] = {}
    mlf = read_mlf(Path(config.htk), states, config.frame_shift_100ns)
    for entry in progress(mlf, "import-ali", None, "utterances"):
        utterances = named.get(entry.name, [])
        unused += not utterances
        for utterance in utterances:
            if utterance in lines:
                doubts[utterance] = f"lines {lines[utterance]} and {entry.line} may both be it"
            elif len(utterances) > 1:
                doubts[utterance] = f"line {entry.line} may be {' or '.join(utterances)}"
            elif not len(entry.labels):
                doubts[utterance] = f"line {entry.line} begins it, but it has no frames"
            labels[utterance], lines[utterance] = entry.labels, entry.line
    return {key: each for key, each in labels.items() if key not in doubts}, doubts, unused
