"""Kaldi's text tables: what is written is read; what is wrong is named with its line."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_table, write_table

keys = st.text(string.ascii_letters + string.digits + "-_é漢", min_size=1, max_size=8)
rests = st.lists(st.text(string.printable.strip(), min_size=1, max_size=5), max_size=4)


@given(st.dictionaries(keys, rests.map(" ".join), min_size=1))
def test_write_then_read(tmp_path_factory: pytest.TempPathFactory, table: dict[str, str]) -> None:
    path = tmp_path_factory.mktemp("tables") / "text"
    write_table(path, table)
    assert read_table(path) == table
    assert list(read_table(path)) == sorted(table, key=str.encode)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1\nb 2\na 3\n", r"text, lines 1 and 3: both have the key a; remove one"),
        ("b 1\na 2\n", r"text, line 2: a comes after b, not in byte order; .*LC_ALL=C sort"),
        ("a 1\n\nb 2\n", r"text, line 2: empty"),
        ("", r"text: is empty"),
        ("\n", r"text: is empty"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "text").write_text(content)
    with pytest.raises(UserError, match=message):
        read_table(tmp_path / "text")


def test_upper_case_sorts_before_lower_case(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("B 1\na 2\n")
    assert list(read_table(tmp_path / "text")) == ["B", "a"]


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"text: no such file"):
        read_table(tmp_path / "text")
    (tmp_path / "text").write_bytes(b"a \xff\n")
    with pytest.raises(UserError, match=r"text: not UTF-8 at byte 2"):
        read_table(tmp_path / "text")
    with pytest.raises(UserError, match=r"Is a directory"):
        read_table(tmp_path)
