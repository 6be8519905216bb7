"""The lang directory: what Kaldi's tools expect to find, and what is refused."""

import json
from pathlib import Path

import kaldifst
import pytest

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.errors import UserError
from asrtrain.io.stage import COUNTS
from asrtrain.lang.prepare import LangConfig, prepare
from asrtrain.lang.symbols import read_symbols

from .test_lexicon_input import write_dict


def write_data(folder: Path, text: dict[str, str]) -> Path:
    folder.mkdir()
    words = {utterance: line.split() for utterance, line in text.items()}
    DataDirectory(folder, words, {utterance: "s" for utterance in text}).write(folder)
    return folder


def test_directory_has_kaldis_files(tmp_path: Path) -> None:
    (tmp_path / "dict").mkdir()
    write_dict(tmp_path / "dict", lexicon="ab A B\nb B\nbee B\n")
    out = tmp_path / "lang"
    prepare(LangConfig(dict=str(tmp_path / "dict"), unk="bee", out=str(out)))
    phones, words = read_symbols(out / "phones.txt"), read_symbols(out / "words.txt")
    # b and bee are homophones: #1 and #2; #3 follows silence
    assert list(phones) == ["<eps>", "SIL", "A", "B", "#0", "#1", "#2", "#3"]
    assert list(phones.values()) == list(range(8))
    assert list(words) == ["<eps>", "ab", "b", "bee", "#0", "<s>", "</s>"]
    assert (out / "phones/disambig.int").read_text().split() == ["4", "5", "6", "7"]
    assert (out / "phones/silence.txt").read_text() == "SIL\n"
    assert (out / "phones/nonsilence.int").read_text() == "2\n3\n"
    assert (out / "phones/optional_silence.int").read_text() == "1\n"
    assert (out / "oov.txt").read_text() == "bee\n"
    assert (out / "oov.int").read_text() == "3\n"
    assert kaldifst.StdVectorFst.read(str(out / "L.fst")).num_states
    marked = kaldifst.StdVectorFst.read(str(out / "L_disambig.fst"))
    loops = [
        (arc.ilabel, arc.olabel)
        for state in range(marked.num_states)
        for arc in kaldifst.ArcIterator(marked, state)
        if arc.nextstate == state and arc.ilabel == phones["#0"]
    ]
    assert set(loops) == {(phones["#0"], words["#0"])}


def test_words_that_the_lexicon_lacks_are_mapped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "dict").mkdir()
    dictionary = str(write_dict(tmp_path / "dict"))
    data = str(write_data(tmp_path / "data", {"s-1": "ab zz b", "s-2": "yy zz"}))
    prepare(LangConfig(dict=dictionary, data=data, unk="b", out=str(tmp_path / "lang")))
    counts = json.loads((tmp_path / "lang" / COUNTS).read_text())
    assert counts["mapped_to_unk"] == 3
    with pytest.raises(UserError, match=r"s-1 has the word zz, .*lexicon.txt lacks; .*unk=WORD"):
        prepare(LangConfig(dict=dictionary, data=data, out=str(tmp_path / "strict")))
    assert not (tmp_path / "strict").exists()


def test_unk_must_have_a_pronunciation(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"lexicon.txt: has no word unk=oov"):
        prepare(LangConfig(dict=str(write_dict(tmp_path)), unk="oov", out=str(tmp_path / "lang")))


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.5])
def test_silence_probability_lies_between_0_and_1(probability: float) -> None:
    with pytest.raises(UserError, match="sil_prob"):
        LangConfig(dict="d", out="o", sil_prob=probability)
