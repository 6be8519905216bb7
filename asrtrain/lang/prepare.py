"""The verb `lang`: a dict directory to Kaldi's lang directory."""

import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import kaldifst

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.errors import UserError
from asrtrain.io.settings import StageConfig, require
from asrtrain.io.stage import stage, write_counts
from asrtrain.io.tables import write_lines
from asrtrain.lang.lexicon import Lexicon, disambiguate, lexicon_fst, read_lexicon
from asrtrain.lang.symbols import (
    SENTENCE_END,
    SENTENCE_START,
    WORD_DISAMBIG,
    number,
    write_symbols,
)
from asrtrain.lang.topology import topology

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LangConfig(StageConfig):
    """Settings of `lang`."""

    dict: str
    """Kaldi's dict directory: lexicon.txt and its three lists of phones."""
    data: str = ""
    """Data directory whose words must be in the lexicon; empty: not checked."""
    unk: str = ""
    """Word of the lexicon that stands for those it lacks; empty: a word it lacks is an error."""
    sil_prob: float = 0.5
    """Probability of silence at a word's end and at the start, between 0 and 1."""

    def __post_init__(self) -> None:
        require(0 < self.sil_prob < 1, f"sil_prob={self.sil_prob}: expected between 0 and 1")


@stage("lang", inputs=("dict", "data"))
def prepare(config: LangConfig, out: Path) -> None:
    """Make a lang directory: symbols, L.fst, L_disambig.fst, topology (Kaldi: prepare_lang.sh).

    Phones do not depend on their position in the word.
    """
    lexicon = read_lexicon(Path(config.dict))
    if config.unk and config.unk not in lexicon.words:
        raise UserError(f"{config.dict}/lexicon.txt: has no word unk={config.unk}; add it")
    missing = _missing_words(config, lexicon) if config.data else Counter()
    entries = disambiguate(lexicon.entries)
    count = 1 + max(entry.disambig for entry in entries)
    disambig = [f"#{each}" for each in range(count + 1)]  # the last one follows silences
    phones = number([*lexicon.phones, *disambig])
    words = number([*lexicon.words, WORD_DISAMBIG, SENTENCE_START, SENTENCE_END])
    write_symbols(out / "phones.txt", phones)
    write_symbols(out / "words.txt", words)
    silence = (lexicon.optional_silence, config.sil_prob)
    plain = lexicon_fst(lexicon.entries, phones, words, *silence)
    marked = lexicon_fst(entries, phones, words, *silence, disambig[-1])
    kaldifst.add_self_loops(marked, [phones["#0"]], [words[WORD_DISAMBIG]])
    kaldifst.arcsort(marked, "olabel")
    plain.write(str(out / "L.fst"))
    marked.write(str(out / "L_disambig.fst"))
    (out / "topo").write_text(topology(lexicon, phones))
    _write_phone_sets(out / "phones", lexicon, phones, disambig)
    write_lines(out / "oov.txt", [config.unk])
    write_lines(out / "oov.int", [str(words[config.unk]) if config.unk else ""])
    write_lines(
        out / "lexicon.txt",
        (f"{entry.word} {' '.join(entry.phones)}" for entry in lexicon.entries),
    )
    figures = {"words": len(lexicon.words), "pronunciations": len(entries)}
    log.info("%(words)d words, %(pronunciations)d pronunciations", figures)
    write_counts(out, **figures, phones=len(lexicon.phones), mapped_to_unk=sum(missing.values()))


def _missing_words(config: LangConfig, lexicon: Lexicon) -> Counter[str]:
    """Count the transcripts' words that the lexicon lacks; an error unless there is an `unk`."""
    known, missing = set(lexicon.words), Counter()
    for utterance, words in DataDirectory.read(config.data).text.items():
        for word in words:
            if word not in known and not config.unk:
                raise UserError(
                    f"{config.data}/text: {utterance} has the word {word}, which "
                    f"{config.dict}/lexicon.txt lacks; add its pronunciation, or say unk=WORD for "
                    "a word of the lexicon that is to stand for it"
                )
            missing[word] += word not in known
    for word, times in missing.most_common(10):
        if times:
            log.warning("%s: %s is not in the lexicon, %d times", config.data, word, times)
    return missing


def _write_phone_sets(
    folder: Path, lexicon: Lexicon, phones: dict[str, int], disambig: list[str]
) -> None:
    folder.mkdir()
    sets = {
        "silence": lexicon.silence_phones,
        "nonsilence": lexicon.nonsilence_phones,
        "optional_silence": [lexicon.optional_silence],
        "disambig": disambig,
    }
    for name, members in sets.items():
        write_lines(folder / f"{name}.txt", members)
        write_lines(folder / f"{name}.int", (str(phones[each]) for each in members))
