"""The verb `lm`: transcripts to an n-gram, as lm.arpa and G.fst."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.errors import UserError
from asrtrain.io.settings import StageConfig, require
from asrtrain.io.stage import stage, write_counts
from asrtrain.lang.arpa import write_arpa
from asrtrain.lang.directory import read_unk
from asrtrain.lang.ngram import estimate_witten_bell, perplexity
from asrtrain.lang.symbols import (
    EPSILON,
    SENTENCE_END,
    SENTENCE_START,
    WORD_DISAMBIG,
    read_symbols,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LmConfig(StageConfig):
    """Settings of `lm`."""

    data: str
    """Data directory whose transcripts are learnt from."""
    lang: str
    """Lang directory: words.txt is the vocabulary."""
    dev: str = ""
    """Data directory to report perplexity on; empty: none."""
    order: int = 2
    """Words of an n-gram, 1 or more."""

    def __post_init__(self) -> None:
        require(self.order >= 1, f"order={self.order}: expected 1 or more")


@stage("lm", inputs=("data", "lang", "dev"))
def build(config: LmConfig, out: Path) -> None:
    """Estimate a Witten-Bell n-gram over the lang directory's words; write lm.arpa and G.fst."""
    symbols = read_symbols(Path(config.lang) / "words.txt")
    reserved = (EPSILON, WORD_DISAMBIG, SENTENCE_START, SENTENCE_END)
    vocabulary = [word for word in symbols if word not in reserved]
    unk = read_unk(Path(config.lang))
    sentences = list(_sentences(config.data, set(vocabulary), unk))
    model = estimate_witten_bell(sentences, vocabulary, config.order)
    write_arpa(out / "lm.arpa", model)
    _write_g_fst(out, Path(config.lang) / "words.txt")
    counts = {"sentences": len(sentences), "ngrams": len(model.probabilities)}
    log.info("%d sentences, %d n-grams", counts["sentences"], counts["ngrams"])
    if config.dev:
        measured = perplexity(model, DataDirectory.read(config.dev).text.values())
        log.info(
            "perplexity on %s: %.2f (%d of %d words unknown)",
            config.dev,
            measured.perplexity,
            measured.unknown,
            measured.words + measured.unknown,
        )
        counts |= {"dev_perplexity": measured.perplexity, "dev_unknown": measured.unknown}
    write_counts(out, **counts)


def _sentences(data: str, vocabulary: set[str], unk: str) -> Iterator[list[str]]:
    for utterance, words in DataDirectory.read(data).text.items():
        for word in words:
            if word not in vocabulary and not unk:
                raise UserError(
                    f"{data}/text: {utterance} has the word {word}, which the lexicon lacks; add "
                    "it there, or make the lang directory with unk=WORD"
                )
        yield [word if word in vocabulary else unk for word in words]


def _write_g_fst(out: Path, words: Path) -> None:
    """Kaldi's arpa2fst. In a process of its own: imported here first, kaldilm hangs."""
    command = [
        *(sys.executable, "-m", "kaldilm", f"--read-symbol-table={words}"),
        *(f"--disambig-symbol={WORD_DISAMBIG}", str(out / "lm.arpa"), str(out / "G.fst")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not (out / "G.fst").is_file():
        raise UserError(f"kaldilm could not make G.fst: {done.stderr.strip()[-500:]}")
