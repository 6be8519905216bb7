"""Kaldi archives: kaldiio reads what we write; damaged or dangerous files are refused by name."""

import gzip
import pickle
from pathlib import Path

import kaldiio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.io.archive import MatrixReader, MatrixWriter, read_int_vectors, write_int_vectors
from asrtrain.io.errors import UserError


def matrices() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        "a": generator.standard_normal((5, 3)).astype(np.float32),
        "b": generator.standard_normal((2, 4)),
        "c": np.empty((0, 0), np.float32),
    }


def write(folder: Path) -> Path:
    with MatrixWriter(folder, "feats") as writer:
        for key, matrix in matrices().items():
            writer.write(key, matrix)
    return folder / "feats.scp"


def test_write_then_read(tmp_path: Path) -> None:
    reader = MatrixReader(write(tmp_path))
    assert reader.keys == list(matrices())
    for key, matrix in matrices().items():
        got = reader.read(key)
        assert got.dtype == matrix.dtype
        np.testing.assert_array_equal(got, matrix)


def test_kaldiio_reads_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    for key, matrix in kaldiio.load_ark(str(tmp_path / "feats.ark")):
        np.testing.assert_array_equal(matrix, matrices()[key])
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(kaldiio.load_scp("feats.scp")["b"], matrices()["b"])


def test_a_folder_can_be_moved(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    write(tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    reader = MatrixReader(tmp_path / "after" / "feats.scp")
    np.testing.assert_array_equal(reader.read("a"), matrices()["a"])


@given(st.integers(0, 4), st.integers(0, 4))
def test_row_ranges_include_their_last_row(
    tmp_path_factory: pytest.TempPathFactory, first: int, last: int
) -> None:
    scp = write(tmp_path_factory.mktemp("ranges"))
    place = scp.read_text().split()[1]
    scp.write_text(f"a {place}[{first}:{last}]\n")
    wanted = [row for number, row in enumerate(matrices()["a"]) if first <= number <= last]
    got = MatrixReader(scp).read("a")
    np.testing.assert_array_equal(got, np.array(wanted).reshape(-1, 3))


@pytest.mark.parametrize("method", [1, 2, 3, 5])
def test_compressed_matrices_are_read(tmp_path: Path, method: int) -> None:
    matrix = np.random.default_rng(0).uniform(0, 1, (20, 4)).astype(np.float32)
    kaldiio.save_ark(
        str(tmp_path / "f.ark"),
        {"a": matrix},
        scp=str(tmp_path / "f.scp"),
        compression_method=method,
    )
    got = MatrixReader(tmp_path / "f.scp").read("a")
    np.testing.assert_allclose(got, matrix, atol=0.02)


class Trap:
    def __reduce__(self) -> tuple:
        return Path.touch, (Path("trap-was-run"),)


def test_a_python_object_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.ark").write_bytes(b"a PKL" + pickle.dumps(Trap()))
    (tmp_path / "f.scp").write_text("a f.ark:2\n")
    with pytest.raises(UserError, match=r"f.scp: a: .*holds a Python object"):
        MatrixReader(tmp_path / "f.scp").read("a")
    assert not Path("trap-was-run").exists()


@pytest.mark.parametrize("place", ["touch trap-was-run |", "|touch trap-was-run"])
def test_a_pipe_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.scp").write_text(f"a {place}\n")
    with pytest.raises(UserError, match=r"f.scp: a: .* pipes are not run"):
        MatrixReader(tmp_path / "f.scp").read("a")
    assert not Path("trap-was-run").exists()


def test_a_truncated_archive_is_refused_before_it_is_read(tmp_path: Path) -> None:
    scp = write(tmp_path)
    ark = tmp_path / "feats.ark"
    ark.write_bytes(ark.read_bytes()[:40])
    with pytest.raises(UserError, match=r"feats.scp: a: .*5 x 3 matrix takes 75 bytes.*truncated"):
        MatrixReader(scp).read("a")


def test_a_header_that_asks_for_terabytes_is_refused(tmp_path: Path) -> None:
    huge = (2**31 - 1).to_bytes(4, "little")
    (tmp_path / "f.ark").write_bytes(b"a \0BFM \4" + huge + b"\4" + huge)
    (tmp_path / "f.scp").write_text("a f.ark:2\n")
    with pytest.raises(UserError, match=r"but the file has 15; it is truncated"):
        MatrixReader(tmp_path / "f.scp").read("a")


def test_a_vector_where_a_matrix_is_expected(tmp_path: Path) -> None:
    kaldiio.save_ark(
        str(tmp_path / "f.ark"), {"a": np.ones(3, np.float32)}, scp=str(tmp_path / "f.scp")
    )
    with pytest.raises(UserError, match=r"f.scp: a: .*a vector found where a matrix was expected"):
        MatrixReader(tmp_path / "f.scp").read("a")


def test_keys_and_files_that_are_missing(tmp_path: Path) -> None:
    reader = MatrixReader(write(tmp_path))
    with pytest.raises(UserError, match=r"feats.scp: no entry for z"):
        reader.read("z")
    (tmp_path / "feats.ark").unlink()
    with pytest.raises(UserError, match=r"feats.scp: a: feats.ark: No such file"):
        reader.read("a")


def test_an_interrupted_writer_leaves_no_scp(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), MatrixWriter(tmp_path, "feats"):
        raise KeyboardInterrupt
    assert not (tmp_path / "feats.scp").exists()


vectors = st.dictionaries(
    st.text("abc-_1", min_size=1, max_size=6),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9),
)


@given(vectors)
def test_int_vectors_write_then_read(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[int]]
) -> None:
    path = tmp_path_factory.mktemp("ali") / "ali.1.gz"
    write_int_vectors(path, table)
    assert {key: each.tolist() for key, each in read_int_vectors(path).items()} == table
    first = path.read_bytes()
    write_int_vectors(path, dict(reversed(table.items())))
    assert path.read_bytes() == first


def test_kaldiio_reads_int_vectors(tmp_path: Path) -> None:
    write_int_vectors(tmp_path / "ali.1.gz", {"a": [3, -1], "b": [7]})
    (tmp_path / "ali.ark").write_bytes(gzip.decompress((tmp_path / "ali.1.gz").read_bytes()))
    read = {key: each.tolist() for key, each in kaldiio.load_ark(str(tmp_path / "ali.ark"))}
    assert read == {"a": [3, -1], "b": [7]}


@pytest.mark.parametrize("cut", [1, 6, 12])
def test_truncated_int_vectors_are_named(tmp_path: Path, cut: int) -> None:
    write_int_vectors(tmp_path / "whole.gz", {"a": [1, 2, 3]})
    data = gzip.decompress((tmp_path / "whole.gz").read_bytes())
    (tmp_path / "ali.1.gz").write_bytes(gzip.compress(data[:-cut]))
    with pytest.raises(UserError, match=r"ali.1.gz: not an archive of integer vectors"):
        read_int_vectors(tmp_path / "ali.1.gz")
    (tmp_path / "ali.1.gz").write_bytes((tmp_path / "whole.gz").read_bytes()[:-cut])
    with pytest.raises(UserError, match=r"ali.1.gz: "):
        read_int_vectors(tmp_path / "ali.1.gz")
