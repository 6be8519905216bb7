"""JSON from outside: read, or refused in one line that ends with the way out."""

from pathlib import Path

import pytest

from asrtrain.io.errors import UserError
from asrtrain.io.json_file import read_json


def test_what_is_right_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"id": "ü", "more": [1]}', encoding="utf-8")
    assert read_json(path, dict, "", ("id",)) == {"id": "ü", "more": [1]}
    path.write_text("[1, 2]")
    assert read_json(path, list, "") == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as JSON"),
        (b'{"id": 1', "cannot be read as JSON"),
        (b'{"id": "\xff"}', "cannot be read as JSON"),
        (b"[1]", "expected an object, found list"),
        (b'{"more": 1}', "lacks id, verb"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"^{path}: {message}.*; make it again$"):
        read_json(path, dict, "make it again", ("id", "verb"))


def test_an_object_where_a_list_was_expected(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(UserError, match=r"expected a list, found dict; make it"):
        read_json(tmp_path / "a.json", list, "make it")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a.json: no such file; make it"):
        read_json(tmp_path / "a.json", dict, "make it")
    with pytest.raises(UserError, match=r": Is a directory; make it"):
        read_json(tmp_path, dict, "make it")
