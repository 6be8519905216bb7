"""G.fst says what the n-gram says."""

import json
import math
from pathlib import Path

import kaldifst
import pytest

from asrtrain.io.errors import UserError
from asrtrain.io.stage import COUNTS
from asrtrain.lang.arpa import read_arpa
from asrtrain.lang.lm import LmConfig, build
from asrtrain.lang.prepare import LangConfig, prepare
from asrtrain.lang.symbols import read_symbols

from .test_lexicon_input import write_dict
from .test_prepare import write_data

TEXT = {"s-1": "ab b b", "s-2": "b ab", "s-3": "ab ab b", "s-4": ""}


def make_lang(folder: Path, unk: str = "") -> Path:
    (folder / "dict").mkdir()
    write_dict(folder / "dict", lexicon="ab A B\nb B\nc A\n")
    prepare(LangConfig(dict=str(folder / "dict"), unk=unk, out=str(folder / "lang")))
    return folder / "lang"


@pytest.mark.parametrize("order", [1, 2, 3])
def test_cost_of_a_sentence_in_g_is_its_log_probability(tmp_path: Path, order: int) -> None:
    lang, data = make_lang(tmp_path), write_data(tmp_path / "data", TEXT)
    build(LmConfig(data=str(data), lang=str(lang), order=order, out=str(tmp_path / "lm")))
    model, words = read_arpa(tmp_path / "lm/lm.arpa"), read_symbols(lang / "words.txt")
    g = kaldifst.StdVectorFst.read(str(tmp_path / "lm/G.fst"))
    kaldifst.arcsort(g, "ilabel")
    for sentence in (["ab", "b"], ["c", "c"], ["b", "c", "ab", "ab", "b"], []):
        acceptor = kaldifst.make_linear_acceptor([words[word] for word in sentence])
        # Back-off arcs read #0, which a sentence lacks: allow it anywhere.
        kaldifst.add_self_loops(acceptor, [words["#0"]], [words["#0"]])
        kaldifst.arcsort(acceptor, "olabel")
        best = kaldifst.shortest_path(kaldifst.compose(acceptor, g))
        found, _, said, cost = kaldifst.get_linear_symbol_sequence(best)
        wanted = 0.0
        history = ["<s>"]
        for word in (*sentence, "</s>"):
            wanted -= math.log(model.probability(word, history))
            history.append(word)
        assert found
        assert said == [words[word] for word in sentence]
        assert cost.value == pytest.approx(wanted, rel=1e-4)


def test_dev_perplexity_and_unknown_words_are_counted(tmp_path: Path) -> None:
    lang, data = make_lang(tmp_path), write_data(tmp_path / "data", TEXT)
    dev = write_data(tmp_path / "dev", {"s-1": "ab zz"})
    build(LmConfig(data=str(data), lang=str(lang), dev=str(dev), out=str(tmp_path / "lm")))
    counts = json.loads((tmp_path / "lm" / COUNTS).read_text())
    assert counts["dev_unknown"] == 1
    assert counts["sentences"] == 4
    assert 1 < counts["dev_perplexity"] < 10


def test_a_word_outside_the_lexicon(tmp_path: Path) -> None:
    data = str(write_data(tmp_path / "data", {"s-1": "ab zz"}))
    lang = make_lang(tmp_path)
    with pytest.raises(UserError, match=r"text: s-1 has the word zz, .* unk=WORD"):
        build(LmConfig(data=data, lang=str(lang), out=str(tmp_path / "lm")))
    (lang / "oov.txt").write_text("c\n")
    build(LmConfig(data=data, lang=str(lang), out=str(tmp_path / "lm")))
    model = read_arpa(tmp_path / "lm/lm.arpa")
    assert ("ab", "c") in model.probabilities


def test_order_is_at_least_1() -> None:
    with pytest.raises(UserError, match="order=0"):
        LmConfig(data="d", lang="l", order=0, out="o")
