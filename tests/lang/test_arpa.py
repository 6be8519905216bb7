"""ARPA files keep a model; what is no ARPA file is refused by line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.io.errors import UserError
from asrtrain.lang.arpa import read_arpa, write_arpa
from asrtrain.lang.ngram import estimate_witten_bell

texts = st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=8)


@given(text=texts, order=st.integers(1, 3))
def test_a_model_reads_back(
    tmp_path_factory: pytest.TempPathFactory, text: list, order: int
) -> None:
    model = estimate_witten_bell(text, ["a", "b", "c"], order)
    path = tmp_path_factory.mktemp("arpa") / "lm.arpa"
    write_arpa(path, model)
    read = read_arpa(path)
    assert read.order == order
    assert read.probabilities == pytest.approx(model.probabilities, rel=1e-6)
    for history in (["<s>"], ["a", "b"], ["c"]):
        for word in ("a", "b", "c", "</s>"):
            assert read.probability(word, history) == pytest.approx(
                model.probability(word, history), rel=1e-6
            )


def test_counts_and_sections_of_a_unigram(tmp_path: Path) -> None:
    write_arpa(tmp_path / "lm.arpa", estimate_witten_bell([["a"]], ["a"], 1))
    # a and </s> once each: (1 + 2 / 2) / 4; the sentence start is never predicted.
    lines = ["\\data\\", "ngram 1=3", "", "\\1-grams:", "-0.3010300\t</s>", "-99.0000000\t<s>",
             "-0.3010300\ta", "", "\\end\\"]  # fmt: skip
    assert (tmp_path / "lm.arpa").read_text().splitlines() == lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\\1-grams:\n-1 a b c\n", "line 2: expected a 1-gram"),
        ("\\1-grams:\nx a\n", "line 2: expected a number, found x"),
        ("\\one-grams:\n-1 a\n", "line 1: expected a section"),
        ("hello\n", "no n-grams there; expected an ARPA file"),
    ],
)
def test_what_is_no_arpa_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "lm.arpa").write_text(text)
    with pytest.raises(UserError, match=message):
        read_arpa(tmp_path / "lm.arpa")
