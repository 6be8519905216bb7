"""HTK master label files: labels counted by hand, every damage named with its line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.hmm.htk import MAX_LINE, LabelledUtterance, read_mlf, read_state_list
from asrtrain.io.errors import UserError

STATES = {"sil[2]": 0, "eh_s2_1": 1, "eh_s3_1": 2}
SHIFT = 100_000

Runs = list[tuple[str, int]]
"""States, and for how many frames."""

TWO = """#!MLF!#
"An4/71/71/cen5-fjam-b.lab"
0 100000 sil[2] -0.785971 sil 454.794006 </s>
100000 300000 eh_s3_1 465.522034
.
"*/an251-fash-b.lab"
0 200000 eh_s2_1
200000 300000 sil[2]
.
"""


def write_mlf(path: Path, utterances: dict[str, Runs], shift: int = SHIFT) -> Path:
    """An MLF of label paths and their states."""
    lines = ["#!MLF!#"]
    for name, runs in utterances.items():
        lines.append(f'"{name}"')
        frame = 0
        for state, count in runs:
            lines.append(f"{frame * shift} {(frame + count) * shift} {state}")
            frame += count
        lines.append(".")
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path, content: str | bytes, shift: int = SHIFT) -> list[LabelledUtterance]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_mlf(path, STATES, shift))


def test_labels_by_hand(tmp_path: Path) -> None:
    first, second = read(tmp_path / "x.mlf", TWO)
    assert (first.name, first.line, first.labels.tolist()) == ("cen5-fjam-b", 2, [0, 2, 2])
    assert (second.name, second.line, second.labels.tolist()) == ("an251-fash-b", 6, [1, 1, 0])
    assert first.labels.dtype == np.int32


def test_another_frame_shift(tmp_path: Path) -> None:
    first, _ = read(tmp_path / "x.mlf", TWO, shift=50_000)
    assert first.labels.tolist() == [0, 0, 2, 2, 2, 2]


def test_line_ends_of_windows_blank_lines_and_tabs(tmp_path: Path) -> None:
    content = TWO.replace("\n", "\r\n\r\n").replace(" ", "\t")
    assert [len(each.labels) for each in read(tmp_path / "x.mlf", content)] == [3, 3]


def test_times_that_single_precision_has_moved(tmp_path: Path) -> None:
    """AN4's labels have 62800001 for 62800000: float32 steps by 4 there."""
    content = TWO.replace("300000 eh_s3_1", "300001 eh_s3_1")
    assert read(tmp_path / "x.mlf", content)[0].labels.tolist() == [0, 2, 2]
    with pytest.raises(UserError, match="line 4: 301001 is no multiple"):
        read(tmp_path / "x.mlf", TWO.replace("300000 eh_s3_1", "301001 eh_s3_1"))


def test_an_utterance_without_labels(tmp_path: Path) -> None:
    (only,) = read(tmp_path / "x.mlf", '#!MLF!#\n"*/a.lab"\n.\n')
    assert only.labels.shape == (0,)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("*/a.lab", "a"),
        ("a.lab", "a"),
        ("a", "a"),
        ("b/sw2001.A_1.rec", "sw2001.A_1"),
        (r"C:\labels\a.lab", "a"),
    ],
)
def test_names(path: str, name: str) -> None:
    assert LabelledUtterance(path, 1, np.zeros(0, np.int32)).name == name


LABELS = st.lists(st.tuples(st.sampled_from(sorted(STATES)), st.integers(1, 50)), max_size=8)


@given(
    st.dictionaries(st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True), LABELS, max_size=5),
    st.integers(1, 200_000),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, utterances: dict[str, Runs], shift: int
) -> None:
    path = tmp_path_factory.mktemp("mlf") / "x.mlf"
    write_mlf(path, {f"*/{name}.lab": runs for name, runs in utterances.items()}, shift)
    got = {each.name: each.labels.tolist() for each in read_mlf(path, STATES, shift)}
    assert got == {
        name: [STATES[state] for state, count in runs for _ in range(count)]
        for name, runs in utterances.items()
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#!MLF!#\n", "", "line 1: expected #!MLF!#"),
        ("eh_s3_1", "eh_s9_1", "line 4: unknown state 'eh_s9_1'"),
        ("100000 300000", "300000 100000", "line 4: the times 300000 to 100000 go backwards"),
        ("100000 300000", "100000 100000", "line 4: the times 100000 to 100000 .* stand still"),
        ("100000 300000", "0 300000", "line 4: begins at 0, expected 100000: it overlaps"),
        ("100000 300000", "200000 300000", "line 4: begins at 200000, .* 100000: it leaves a gap"),
        ("0 200000", "100000 200000", "line 7: begins at 100000, expected 0: it leaves a gap"),
        ("100000 300000", "100000 350000", "line 4: 350000 is no multiple of frame_shift_100ns="),
        ("100000 300000", "100000 9" + 17 * "0", r"line 4: ends at 9.* damaged time"),
        ("100000 300000", "100000 9" + 18 * "0", "line 4: expected `start end state`, found '1000"),
        ("100000 300000", "-5 300000", "line 4: expected `start end state`"),
        ("100000 300000", "", "line 4: expected `start end state`, found 'eh_s3_1 465"),
        ("200000 300000 sil[2]", "///", "line 8: expected `start end state`, found '///'"),
        ('.\n"*', '"*', "line 5: the utterance of line 2 has no end, a line with a dot"),
        ("sil[2]\n.\n", "sil[2]\n", "line 8: the file ends in the utterance of line 6"),
        (
            '"*/an251-fash-b.lab"',
            '"*" -> "dir"',
            'line 6: expected an utterance .*found \'"\\*" ->',
        ),
        ('"*/an251-fash-b.lab"', "0 100000 sil[2]", "line 6: expected an utterance"),
        ("*/an251-fash-b.lab", "An4/71/71/cen5-fjam-b.lab", "line 6: .* is on line 2 already"),
        ("eh_s3_1", "eh\0", "line 4: holds control characters"),
        ("eh_s3_1", "x" * MAX_LINE, f"line 4: longer than {MAX_LINE} bytes"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert TWO.count(old) == 1
    with pytest.raises(UserError, match=rf"x.mlf, {message}"):
        read(tmp_path / "x.mlf", TWO.replace(old, new))


@pytest.mark.parametrize("junk", [b"\x1f\x8b\x08\xff", b"\0\0\1\2" * 40_000, b"\xff" * 9, b""])
def test_a_file_that_is_something_else(tmp_path: Path, junk: bytes) -> None:
    with pytest.raises(UserError, match=r"x.mlf, line 1: "):
        read(tmp_path / "x.mlf", junk)


@given(st.binary(max_size=200), st.integers(0, len(TWO)))
def test_no_bytes_lead_to_another_error(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, position: int
) -> None:
    path = tmp_path_factory.mktemp("mlf") / "x.mlf"
    content = TWO.encode()
    try:
        read(path, content[:position] + junk + content[position:])
        return
    except UserError as error:
        message = str(error)
    assert message.startswith(f"{path}, line ")
    assert message.isprintable()


def test_a_long_file_is_not_read_at_once(tmp_path: Path) -> None:
    """The first utterance comes before the damage in the second is seen."""
    path = tmp_path / "x.mlf"
    path.write_text(TWO.replace("eh_s2_1", "unknown"))
    assert next(read_mlf(path, STATES, SHIFT)).name == "cen5-fjam-b"


def test_the_list_of_states(tmp_path: Path) -> None:
    path = tmp_path / "state.list"
    path.write_text("".join(f"{state}\n" for state in STATES))
    assert read_state_list(path) == STATES
    for content, message in (
        ("a\nb\na\n", "state.list, lines 1 and 3: both are a; remove one"),
        ("a\nb 1\n", "state.list, line 2: expected one state, found 'b 1'"),
        ("a\n\nb\n", "state.list, line 2: expected one state, found ''"),
        ("", "state.list: is empty"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=message):
            read_state_list(path)
    with pytest.raises(UserError, match="nowhere: no such file"):
        read_state_list(tmp_path / "nowhere")
