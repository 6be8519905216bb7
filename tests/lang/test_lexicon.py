"""The lexicon transducer accepts the pronunciations with optional silences, and nothing else."""

import itertools
import math
from collections import Counter
from pathlib import Path

import kaldifst
import pytest

from asrtrain.io.errors import UserError
from asrtrain.lang.lexicon import disambiguate, lexicon_fst, read_lexicon
from asrtrain.lang.prepare import LangConfig, prepare
from asrtrain.lang.symbols import number, read_symbols
from tests.lang.dictionaries import LEXICON, small_dict, transcripts


def best_words(fst: kaldifst.StdVectorFst, phones: list[int]) -> tuple[list[int], float] | None:
    """The words of the best path that reads `phones`, and its cost."""
    acceptor = kaldifst.make_linear_acceptor(phones)
    composed = kaldifst.compose(acceptor, fst)
    if not composed.num_states:
        return None
    path = kaldifst.shortest_path(composed)
    _, _, words, weight = kaldifst.get_linear_symbol_sequence(path)
    return words, weight.value


@pytest.fixture
def built(tmp_path: Path):
    lexicon = read_lexicon(small_dict(tmp_path / "dict"))
    phones, words = number(lexicon.phones), number(lexicon.words)
    fst = lexicon_fst(lexicon.entries, phones, words, "SIL", 0.25)
    kaldifst.arcsort(fst, "ilabel")
    return fst, phones, words


@pytest.mark.parametrize("silences", list(itertools.product([False, True], repeat=3)))
def test_silence_is_optional_and_costs_what_it_should(built, silences: tuple[bool, ...]) -> None:
    fst, phones, words = built
    parts = [
        ["SIL"] * silences[0],
        ["B", "IY", "D"],
        ["SIL"] * silences[1],
        ["EY"],
        ["SIL"] * silences[2],
    ]
    found = best_words(fst, [phones[each] for part in parts for each in part])
    cost = -sum(math.log(0.25 if silence else 0.75) for silence in silences)
    assert found == ([words["BEAD"], words["A"]], pytest.approx(cost, rel=1e-5))


@pytest.mark.parametrize("phones", [["B"], ["B", "SIL", "IY"], ["SIL", "SIL", "AH"], ["D"]])
def test_what_is_no_sequence_of_words_is_refused(built, phones: list[str]) -> None:
    fst, symbols, _ = built
    assert best_words(fst, [symbols[each] for each in phones]) is None


def test_homophones_and_beginnings_get_symbols(tmp_path: Path) -> None:
    entries = disambiguate(read_lexicon(small_dict(tmp_path)).entries)
    marks = {(entry.word, entry.phones): entry.disambig for entry in entries}
    assert marks == {
        ("A", ("AH",)): 0,
        ("A", ("EY",)): 0,
        ("BE", ("B", "IY")): 1,
        ("BEAD", ("B", "IY", "D")): 0,
        ("BEE", ("B", "IY")): 2,
        ("SEA", ("S", "IY")): 1,
        ("SEE", ("S", "IY")): 2,
    }


def test_with_symbols_no_pronunciation_begins_another(tmp_path: Path) -> None:
    entries = disambiguate(read_lexicon(small_dict(tmp_path)).entries)
    spelled = [(*entry.phones, *(["#"] * entry.disambig)) for entry in entries]
    assert max(Counter((*e.phones, e.disambig) for e in entries).values()) == 1
    marked = [(*entry.phones, entry.disambig) for entry in entries if entry.disambig]
    plain = [entry.phones for entry in entries if not entry.disambig]
    for first, second in itertools.permutations([*marked, *plain], 2):
        assert second[: len(first)] != first
    assert len(spelled) == len(entries)


def test_lang_directory(tmp_path: Path) -> None:
    prepare(LangConfig(dict=str(small_dict(tmp_path / "dict")), out=str(tmp_path / "lang")))
    lang = tmp_path / "lang"
    phones, words = read_symbols(lang / "phones.txt"), read_symbols(lang / "words.txt")
    assert list(phones) == ["<eps>", "SIL", "AH", "B", "D", "EY", "IY", "S", "#0", "#1", "#2", "#3"]
    assert list(words)[-3:] == ["#0", "<s>", "</s>"]
    assert (lang / "phones" / "disambig.int").read_text().split() == ["8", "9", "10", "11"]
    plain = kaldifst.StdVectorFst.read(str(lang / "L.fst"))
    marked = kaldifst.StdVectorFst.read(str(lang / "L_disambig.fst"))
    labels = [
        {arc.ilabel for state in range(fst.num_states) for arc in kaldifst.ArcIterator(fst, state)}
        for fst in (plain, marked)
    ]
    assert max(labels[0]) < phones["#0"]
    assert {phones["#0"], phones["#1"], phones["#2"], phones["#3"]} <= labels[1]


def test_a_word_that_the_lexicon_lacks(tmp_path: Path) -> None:
    settings = {
        "dict": str(small_dict(tmp_path / "dict")),
        "data": str(transcripts(tmp_path / "data", ["A SEA", "BE A ZOO", "ZOO"])),
        "out": str(tmp_path / "lang"),
    }
    with pytest.raises(UserError, match=r"data/text: s1 has the word ZOO, which .*unk=WORD"):
        prepare(LangConfig(**settings))
    assert not (tmp_path / "lang").exists()
    with pytest.raises(UserError, match=r"lexicon.txt: has no word unk=<unk>"):
        prepare(LangConfig(**settings, unk="<unk>"))
    small_dict(tmp_path / "dict", LEXICON + "<unk> SIL\n")
    prepare(LangConfig(**settings, unk="<unk>"))
    assert '"mapped_to_unk": 2' in (tmp_path / "lang" / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    ("lexicon", "message"),
    [
        ("A AH\nB\n", r"lexicon.txt, line 2: B has no phones"),
        ("A XX\n", r"lexicon.txt, line 1: A has the phone XX"),
        ("<s> AH\n", r"lexicon.txt, line 1: <s> is reserved"),
        ("", r"lexicon.txt: is empty"),
    ],
)
def test_what_is_wrong_in_a_lexicon_is_named(tmp_path: Path, lexicon: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_lexicon(small_dict(tmp_path, lexicon))


def test_an_optional_silence_that_is_none(tmp_path: Path) -> None:
    small_dict(tmp_path)
    (tmp_path / "optional_silence.txt").write_text("AH\n")
    with pytest.raises(UserError, match=r"optional_silence.txt: expected one phone of silence"):
        read_lexicon(tmp_path)
