"""A lang directory with a missing or damaged file is refused by name, and nothing crashes."""

from pathlib import Path

import kaldifst
import pytest

from asrtrain.io.errors import UserError
from asrtrain.lang.directory import read_fst, read_phone_set, read_topo, read_unk
from asrtrain.lang.symbols import number, read_symbols, write_symbols


def test_an_fst_reads_back(tmp_path: Path) -> None:
    kaldifst.make_linear_acceptor([3, 1]).write(str(tmp_path / "a.fst"))
    _, labels, _, _ = kaldifst.get_linear_symbol_sequence(read_fst(tmp_path / "a.fst", "lang"))
    assert labels == [3, 1]


@pytest.mark.parametrize("kept", [0, 10, 70, -4])
def test_a_damaged_fst_is_an_error_not_a_crash(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.fst"
    kaldifst.make_linear_acceptor([3, 1, 2]).write(str(path))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"a.fst: not an FST or truncated; .*asrtrain lang"):
        read_fst(path, "lang")


def test_missing_files_are_named(tmp_path: Path) -> None:
    for read in (
        lambda: read_fst(tmp_path / "L.fst", "lang"),
        lambda: read_topo(tmp_path),
        lambda: read_unk(tmp_path),
        lambda: read_phone_set(tmp_path, "silence"),
    ):
        with pytest.raises(UserError, match="no such file"):
            read()


def test_what_is_no_topology_or_no_integer_is_named(tmp_path: Path) -> None:
    (tmp_path / "topo").write_text("3 states\n")
    with pytest.raises(UserError, match="topo: expected <Topology>"):
        read_topo(tmp_path)
    (tmp_path / "phones").mkdir()
    (tmp_path / "phones" / "silence.int").write_text("1\nSIL\n")
    with pytest.raises(UserError, match=r"silence.int: expected integers, found SIL"):
        read_phone_set(tmp_path, "silence")


def test_symbols_read_back_in_order(tmp_path: Path) -> None:
    symbols = number(["b", "a", "ä"])
    write_symbols(tmp_path / "words.txt", symbols)
    assert read_symbols(tmp_path / "words.txt") == {"<eps>": 0, "b": 1, "a": 2, "ä": 3}
    (tmp_path / "words.txt").write_text("<eps> 0\nb one\n")
    with pytest.raises(UserError, match=r"words.txt, line 2: expected `symbol integer`"):
        read_symbols(tmp_path / "words.txt")
