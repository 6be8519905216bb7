"""Kaldi's binary primitives, against bytes written out by hand."""

from pathlib import Path

import numpy as np
import pytest

from asrtrain.hmm.binary import BinaryReader, BinaryWriter
from asrtrain.io.errors import UserError


def test_bytes_are_kaldis(tmp_path: Path) -> None:
    writer = BinaryWriter()
    writer.token("<A>", "<B>")
    writer.integer(7, -1)
    writer.real(0.5)
    writer.integers([2])
    writer.vector([1.0])
    writer.matrix([[1.0], [2.0]])
    writer.write(tmp_path / "x")
    one, two = b"\x00\x00\x80\x3f", b"\x00\x00\x00\x40"
    assert (tmp_path / "x").read_bytes() == (
        b"\0B<A> <B> "
        + (b"\4\7\0\0\0" + b"\4\xff\xff\xff\xff")
        + b"\4\x00\x00\x00\x3f"
        + b"\4\1\0\0\0\2\0\0\0"
        + (b"FV \4\1\0\0\0" + one)
        + (b"FM \4\2\0\0\0\4\1\0\0\0" + one + two)
    )
    reader = BinaryReader(tmp_path / "x")
    reader.expect("<A>")
    assert reader.token() == "<B>"
    assert (reader.integer(), reader.integer(), reader.real()) == (7, -1, 0.5)
    assert reader.integers() == [2]
    np.testing.assert_array_equal(reader.vector(), [1])
    np.testing.assert_array_equal(reader.matrix(), [[1], [2]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<A> ", "not a binary Kaldi file"),
        (b"\0B<Z> ", "expected <A>, found <Z>"),
        (b"\0B<A> \5", "expected a number of 4 bytes"),
        (b"\0B<A> \4\1", "truncated"),
        (b"\0B<A> \4\xff\xff\xff\x7f", "truncated"),  # a huge count is not allocated
    ],
)
def test_other_bytes_are_refused_with_their_place(
    tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UserError, match=message) as caught:
        read_integers(tmp_path / "x")
    assert str(tmp_path / "x") in str(caught.value)


def read_integers(path: Path) -> list[int]:
    reader = BinaryReader(path)
    reader.expect("<A>")
    return reader.integers()
