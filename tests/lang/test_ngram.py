"""Witten-Bell n-grams: probabilities by hand, sums of one, and what kaldilm makes of the file."""

import math
from pathlib import Path

import kaldifst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.io.errors import UserError
from asrtrain.lang.arpa import read_arpa, write_arpa
from asrtrain.lang.lm import LmConfig, build
from asrtrain.lang.ngram import estimate_witten_bell, perplexity
from asrtrain.lang.prepare import LangConfig, prepare
from asrtrain.lang.symbols import read_symbols
from tests.lang.dictionaries import small_dict, transcripts

VOCABULARY = ["a", "b", "c"]
texts = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=6), min_size=1, max_size=8)


@given(texts, st.integers(1, 4), st.lists(st.sampled_from(VOCABULARY), max_size=4))
def test_probabilities_after_any_history_sum_to_one(
    text: list[list[str]], order: int, history: list[str]
) -> None:
    model = estimate_witten_bell(text, VOCABULARY, order)
    for context in (history, ["<s>", *history]):
        total = sum(model.probability(word, context) for word in [*VOCABULARY, "</s>"])
        assert total == pytest.approx(1, abs=1e-9)


def test_by_hand() -> None:
    """Text: "a b", "a". Unigrams: a 2, b 1, </s> 2 of 5, 3 kinds; 4 words in the vocabulary."""
    model = estimate_witten_bell([["a", "b"], ["a"]], VOCABULARY, 2)
    a, c = (2 + 3 / 4) / 8, (0 + 3 / 4) / 8
    assert model.probability("a", []) == pytest.approx(a)
    assert model.probability("c", []) == pytest.approx(c)
    # <s> is followed by a, twice: 1 kind.
    assert model.probability("a", ["<s>"]) == pytest.approx((2 + a) / 3)
    assert model.probability("c", ["<s>"]) == pytest.approx(c / 3)
    # a is followed by b and by </s>, once each: 2 kinds.
    b = (1 + 3 / 4) / 8
    assert model.probability("b", ["a"]) == pytest.approx((1 + 2 * b) / 4)
    assert model.probability("z", ["a"]) == 0


def test_perplexity_by_hand() -> None:
    model = estimate_witten_bell([["a", "b"], ["a"]], VOCABULARY, 2)
    measured = perplexity(model, [["a", "z"]])
    terms = [model.probability("a", ["<s>"]), model.probability("</s>", ["z"])]
    assert (measured.words, measured.unknown) == (2, 1)
    assert measured.perplexity == pytest.approx(math.exp(-sum(map(math.log, terms)) / 2))


@given(texts, st.integers(1, 3))
def test_arpa_write_then_read(
    tmp_path_factory: pytest.TempPathFactory, text: list[list[str]], order: int
) -> None:
    model = estimate_witten_bell(text, VOCABULARY, order)
    path = tmp_path_factory.mktemp("lm") / "lm.arpa"
    write_arpa(path, model)
    again = read_arpa(path)
    for history in ([], ["<s>"], ["a"], ["a", "b"], ["<s>", "c"]):
        for word in (*VOCABULARY, "</s>"):
            wanted = model.probability(word, history)
            assert again.probability(word, history) == pytest.approx(wanted, rel=1e-5)


def test_a_file_that_is_no_arpa(tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_text("hello\n")
    with pytest.raises(UserError, match=r"lm.arpa: no n-grams there"):
        read_arpa(tmp_path / "lm.arpa")
    (tmp_path / "lm.arpa").write_text("\\data\\\n\\2-grams:\n-1 a\n\\end\\\n")
    with pytest.raises(UserError, match=r"lm.arpa, line 3: expected a 2-gram, found: -1 a"):
        read_arpa(tmp_path / "lm.arpa")


SENTENCES = ["A BE", "SEA A", "BEAD A BE", "A"]


def built(tmp_path: Path) -> Path:
    data = transcripts(tmp_path / "data", SENTENCES)
    prepare(LangConfig(dict=str(small_dict(tmp_path / "dict")), out=str(tmp_path / "lang")))
    build(
        LmConfig(
            data=str(data), lang=str(tmp_path / "lang"), dev=str(data), out=str(tmp_path / "lm")
        )
    )
    return tmp_path


@pytest.mark.parametrize("sentence", ["A BE", "BE BE", "SEE", "A SEA A BEE"])
def test_g_fst_gives_the_models_probability(tmp_path: Path, sentence: str) -> None:
    folder = built(tmp_path)
    words = read_symbols(folder / "lang" / "words.txt")
    grammar = kaldifst.StdVectorFst.read(str(folder / "lm" / "G.fst"))
    for state in range(grammar.num_states):  # back-off arcs read #0: make it epsilon
        arcs = list(kaldifst.ArcIterator(grammar, state))
        grammar.delete_arcs(state, len(arcs))
        for arc in arcs:
            label = 0 if arc.ilabel == words["#0"] else arc.ilabel
            grammar.add_arc(state, kaldifst.StdArc(label, arc.olabel, arc.weight, arc.nextstate))
    kaldifst.arcsort(grammar, "ilabel")
    acceptor = kaldifst.make_linear_acceptor([words[each] for each in sentence.split()])
    path = kaldifst.shortest_path(kaldifst.compose(acceptor, grammar))
    cost = kaldifst.get_linear_symbol_sequence(path)[3].value
    model = read_arpa(folder / "lm" / "lm.arpa")
    tokens = ["<s>", *sentence.split(), "</s>"]
    wanted = -sum(
        math.log(model.probability(word, tokens[:place]))
        for place, word in enumerate(tokens)
        if place
    )
    assert cost <= wanted + 1e-3  # an FST may also back off where the model would not
    assert cost == pytest.approx(wanted, abs=0.7)


def test_a_word_outside_the_lexicon(tmp_path: Path) -> None:
    prepare(LangConfig(dict=str(small_dict(tmp_path / "dict")), out=str(tmp_path / "lang")))
    data = transcripts(tmp_path / "data", ["A ZOO"])
    with pytest.raises(UserError, match=r"data/text: s0 has the word ZOO, which the lexicon lacks"):
        build(LmConfig(data=str(data), lang=str(tmp_path / "lang"), out=str(tmp_path / "lm")))
    assert not (tmp_path / "lm").exists()
