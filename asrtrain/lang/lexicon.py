"""The pronunciation lexicon, from Kaldi's dict directory, and its transducer.

lexicon.txt            word, phones; a line for each pronunciation
silence_phones.txt     phones of silence and noise
nonsilence_phones.txt  all others
optional_silence.txt   the phone that may stand between words
"""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import kaldifst

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_lines
from asrtrain.lang.symbols import EPSILON, SENTENCE_END, SENTENCE_START

RESERVED = (EPSILON, SENTENCE_START, SENTENCE_END)
"""Names that no word or phone may have; nor may it begin with #, as disambiguation symbols do."""


@dataclass(frozen=True)
class Entry:
    """One pronunciation of a word."""

    word: str
    phones: tuple[str, ...]
    disambig: int = 0
    """Number of the symbol (#1, #2, ...) that ends it, or 0 if it needs none."""


@dataclass(frozen=True)
class Lexicon:
    """Pronunciations and the phones that they use."""

    entries: list[Entry]
    """Sorted; no entry twice."""
    silence_phones: list[str]
    nonsilence_phones: list[str]
    optional_silence: str

    @property
    def words(self) -> list[str]:
        """All words in byte order."""
        return sorted({entry.word for entry in self.entries}, key=str.encode)

    @property
    def phones(self) -> list[str]:
        """Silence phones, then all others."""
        return self.silence_phones + self.nonsilence_phones


def read_lexicon(dict_directory: Path) -> Lexicon:
    """Read and check a dict directory.

    Raises UserError, naming file and word, for a word without phones, a phone that neither list
    has, a reserved word, or an optional silence that is no silence phone.
    """
    silences = _words(dict_directory / "silence_phones.txt")
    others = _words(dict_directory / "nonsilence_phones.txt")
    (optional, *more) = _words(dict_directory / "optional_silence.txt")
    if more or optional not in silences:
        raise UserError(
            f"{dict_directory / 'optional_silence.txt'}: expected one phone of silence_phones.txt"
        )
    _check_phones(dict_directory, [*silences, *others])
    path, known, entries = dict_directory / "lexicon.txt", {*silences, *others}, set()
    for place, line in enumerate(read_lines(path), start=1):
        word, *phones = line.split() or [""]
        if not word:
            raise UserError(f"{path}, line {place}: empty; remove the line")
        if not phones:
            raise UserError(f"{path}, line {place}: {word} has no phones; add them")
        if word in RESERVED or word.startswith("#"):
            raise UserError(f"{path}, line {place}: {word} is reserved; remove the line")
        for phone in phones:
            if phone not in known:
                raise UserError(
                    f"{path}, line {place}: {word} has the phone {phone}, which is neither in "
                    "silence_phones.txt nor in nonsilence_phones.txt"
                )
        entries.add((word, tuple(phones)))
    ordered = sorted(entries, key=lambda entry: (entry[0].encode(), entry[1]))
    return Lexicon([Entry(*each) for each in ordered], silences, others, optional)


def disambiguate(entries: list[Entry]) -> list[Entry]:
    """Number the pronunciations that would make L.fst ambiguous (Kaldi: add_lex_disambig.pl).

    A pronunciation gets a symbol if another entry has the same one, or if it begins another.
    """
    same = Counter(entry.phones for entry in entries)
    beginnings = {
        entry.phones[:length] for entry in entries for length in range(1, len(entry.phones))
    }
    last: Counter[tuple[str, ...]] = Counter()
    numbered = []
    for entry in entries:
        if same[entry.phones] > 1 or entry.phones in beginnings:
            last[entry.phones] += 1
        numbered.append(Entry(entry.word, entry.phones, last[entry.phones]))
    return numbered


def lexicon_fst(
    entries: list[Entry],
    phones: dict[str, int],
    words: dict[str, int],
    optional_silence: str,
    silence_probability: float,
    silence_disambig: str = "",
) -> kaldifst.StdVectorFst:
    """L.fst: phones to words, with optional silence at the start and after each word.

    With `silence_disambig`, a phone symbol that follows each silence, and with the entries' own
    symbols it is L_disambig.fst (Kaldi: make_lexicon_fst.py).
    """
    fst = kaldifst.StdVectorFst()
    start, loop, silence = (fst.add_state() for _ in range(3))
    fst.start = start
    fst.set_final(loop, 0.0)
    with_silence, without = -math.log(silence_probability), -math.log(1 - silence_probability)

    def arc(begin: int, phone: int, word: int, cost: float, end: int) -> None:
        fst.add_arc(begin, kaldifst.StdArc(phone, word, cost, end))

    silence_end = loop
    if silence_disambig:
        silence_end = fst.add_state()
        arc(silence_end, phones[silence_disambig], 0, 0.0, loop)
    arc(start, 0, 0, without, loop)
    arc(start, phones[optional_silence], 0, with_silence, silence_end)
    arc(silence, phones[optional_silence], 0, 0.0, silence_end)
    for entry in entries:
        labels = [phones[phone] for phone in entry.phones]
        labels += [phones[f"#{entry.disambig}"]] if entry.disambig else []
        state, word = loop, words[entry.word]
        for label in labels[:-1]:
            following = fst.add_state()
            arc(state, label, word, 0.0, following)
            state, word = following, 0
        arc(state, labels[-1], word, without, loop)
        arc(state, labels[-1], word, with_silence, silence)
    kaldifst.arcsort(fst, "olabel")
    return fst


def _check_phones(dict_directory: Path, phones: list[str]) -> None:
    for phone, times in Counter(phones).items():
        if times > 1:
            raise UserError(
                f"{dict_directory}: the phone {phone} is listed {times} times in "
                "silence_phones.txt and nonsilence_phones.txt; keep one"
            )
        if phone in RESERVED or phone.startswith("#"):
            raise UserError(f"{dict_directory}: the phone name {phone} is reserved; rename it")


def _words(path: Path) -> list[str]:
    return [word for line in read_lines(path) for word in line.split()]
