"""The lexicon transducer accepts what the lexicon says, at the cost that it says."""

import itertools
import math
from pathlib import Path

import kaldifst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.io.errors import UserError
from asrtrain.lang.lexicon import Entry, disambiguate, lexicon_fst, read_lexicon
from asrtrain.lang.symbols import number

ENTRIES = [
    Entry("ab", ("A", "B")),
    Entry("b", ("B",)),
    Entry("b", ("B", "B")),
    Entry("hm", ("SIL",)),
]
PHONES = number(["SIL", "A", "B", "#0", "#1", "#2"])
WORDS = number(["ab", "b", "hm"])
SILENCE = 0.3


def accepted(fst: kaldifst.StdVectorFst, longest: int) -> dict[tuple, float]:
    """Probability of each (input labels, output labels) with at most `longest` inputs."""
    found: dict[tuple, float] = {}
    waiting = [(fst.start, (), (), 0.0)]
    while waiting:
        state, inputs, outputs, cost = waiting.pop()
        final = float(fst.final(state).value)
        if math.isfinite(final):
            found[inputs, outputs] = found.get((inputs, outputs), 0.0) + math.exp(-cost - final)
        for arc in kaldifst.ArcIterator(fst, state):
            longer = inputs + ((arc.ilabel,) if arc.ilabel else ())
            if len(longer) <= longest:
                said = outputs + ((arc.olabel,) if arc.olabel else ())
                waiting.append((arc.nextstate, longer, said, cost + arc.weight.value))
    return found


def expected(longest: int) -> dict[tuple, float]:
    """The same from the definition: words, each choice of silence before, between and after."""
    found: dict[tuple, float] = {}
    for count in range(longest + 1):
        for entries in itertools.product(ENTRIES, repeat=count):
            for silences in itertools.product((False, True), repeat=count + 1):
                phones = ["SIL"] * silences[0]
                for entry, silence in zip(entries, silences[1:], strict=True):
                    phones += [*entry.phones, *(["SIL"] * silence)]
                if len(phones) <= longest:
                    key = (
                        tuple(PHONES[phone] for phone in phones),
                        tuple(WORDS[entry.word] for entry in entries),
                    )
                    chance = math.prod(SILENCE if each else 1 - SILENCE for each in silences)
                    found[key] = found.get(key, 0.0) + chance
    return found


def test_accepts_exactly_the_pronunciations_with_optional_silences() -> None:
    fst = lexicon_fst(ENTRIES, PHONES, WORDS, "SIL", SILENCE)
    found, wanted = accepted(fst, 4), expected(4)
    assert found.keys() == wanted.keys()
    for key, probability in wanted.items():
        assert found[key] == pytest.approx(probability, rel=1e-5)


def test_disambiguation_numbers_what_is_ambiguous() -> None:
    entries = [
        Entry("red", ("R", "E", "D")),
        Entry("read", ("R", "E", "D")),  # a homophone: both get one
        Entry("reads", ("R", "E", "D", "S")),  # "red" begins it
        Entry("a", ("E",)),  # begins no other: it occurs inside
    ]
    assert [each.disambig for each in disambiguate(entries)] == [1, 2, 0, 0]


lexicons = st.lists(
    st.tuples(st.sampled_from("uvwxyz"), st.lists(st.sampled_from("AB"), min_size=1, max_size=4)),
    min_size=1,
    max_size=12,
    unique_by=lambda entry: (entry[0], tuple(entry[1])),
)


@given(lexicons)
def test_disambiguated_pronunciations_are_a_prefix_code(pairs: list[tuple[str, list[str]]]) -> None:
    entries = disambiguate([Entry(word, tuple(phones)) for word, phones in pairs])
    marked = [(*each.phones, f"#{each.disambig}") if each.disambig else each.phones
              for each in entries]  # fmt: skip
    for one, other in itertools.permutations(marked, 2):
        assert other[: len(one)] != one


def test_marked_transducer_ends_words_and_silences_with_symbols() -> None:
    entries = [Entry("b", ("B",), 1)]
    fst = lexicon_fst(entries, PHONES, WORDS, "SIL", SILENCE, "#2")
    said = {inputs for inputs, outputs in accepted(fst, 6) if outputs == (WORDS["b"],)}
    b, silence = (PHONES["B"], PHONES["#1"]), (PHONES["SIL"], PHONES["#2"])
    assert said == {b, silence + b, b + silence, silence + b + silence}


def write_dict(folder: Path, **changed: str | bytes) -> Path:
    files: dict[str, str | bytes] = {
        "lexicon": "ab A B\nb B\n",
        "silence_phones": "SIL\n",
        "nonsilence_phones": "A\nB\n",
        "optional_silence": "SIL\n",
    }
    for name, text in (files | changed).items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.txt").write_bytes(data)
    return folder


def test_reading_sorts_words_in_byte_order_and_drops_repeated_lines(tmp_path: Path) -> None:
    write_dict(tmp_path, lexicon="b B\nab A B\nB A\nb B\nb A B\n")
    lexicon = read_lexicon(tmp_path)
    assert [(each.word, each.phones) for each in lexicon.entries] == [
        ("B", ("A",)),
        ("ab", ("A", "B")),
        ("b", ("A", "B")),
        ("b", ("B",)),
    ]
    assert lexicon.words == ["B", "ab", "b"]
    assert lexicon.phones == ["SIL", "A", "B"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lexicon": "ab A B\nb\n"}, r"lexicon.txt, line 2: b has no phones"),
        ({"lexicon": "ab A C\n"}, r"lexicon.txt, line 1: ab has the phone C, .* neither"),
        ({"lexicon": "ab A B\n\nb B\n"}, r"lexicon.txt, line 2: empty; remove"),
        ({"lexicon": "<s> A\n"}, r"line 1: <s> is reserved"),
        ({"lexicon": "#1 A\n"}, r"line 1: #1 is reserved"),
        ({"lexicon": ""}, r"lexicon.txt: is empty"),
        ({"lexicon": b"\xffb B\n"}, r"lexicon.txt: not UTF-8"),
        ({"nonsilence_phones": "A\nB\nA\n"}, r"the phone A is listed 2 times"),
        ({"nonsilence_phones": "A\nB\nSIL\n"}, r"the phone SIL is listed 2 times"),
        ({"nonsilence_phones": "A\nB\n#1\n"}, r"the phone name #1 is reserved"),
        ({"optional_silence": "A\n"}, r"optional_silence.txt: expected one phone of silence"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changed: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_lexicon(write_dict(tmp_path, **changed))


def test_a_missing_list_is_named(tmp_path: Path) -> None:
    (write_dict(tmp_path) / "silence_phones.txt").unlink()
    with pytest.raises(UserError, match=r"silence_phones.txt: no such file"):
        read_lexicon(tmp_path)
