"""Kaldi archives through kaldiio, behind checks of our own.

Refused: Python objects (a `PKL` header makes kaldiio run pickle code) and shell pipes. A header
whose sizes do not fit the file is refused before anything is allocated. Shapes: T rows, D columns.

An scp that we write names its archive by file name alone, so that a folder can be moved; the reader
looks beside the scp for a path that does not exist as given.
"""

import gzip
import io
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import kaldiio
import numpy as np
import numpy.typing as npt

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_table, write_table

_VALUE_BYTES = {b"FM ": 4, b"DM ": 8, b"FV ": 4, b"DV ": 8}


class MatrixWriter:
    """Writes matrices to NAME.ark and NAME.scp in `folder`; a context manager.

    Keys must come in byte order, each once.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._places: dict[str, str] = {}

    def __enter__(self) -> "MatrixWriter":
        self._file = open(self._folder / f"{self._name}.ark", "wb")
        return self

    def write(self, key: str, matrix: npt.NDArray[Any]) -> None:
        """Append a float32 or float64 matrix (T, D)."""
        self._file.write(f"{key} ".encode())
        self._places[key] = f"{self._name}.ark:{self._file.tell()}"
        kaldiio.matio.write_array(self._file, matrix)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        if kind is None:
            write_table(self._folder / f"{self._name}.scp", self._places)


class MatrixReader:
    """Matrices of an scp, by key."""

    def __init__(self, scp: Path) -> None:
        self._scp = scp
        self._places = read_table(scp)

    @property
    def keys(self) -> list[str]:
        """All keys, in byte order."""
        return list(self._places)

    def read(self, key: str) -> npt.NDArray[Any]:
        """The matrix (T, D) of `key`; a row range `[first:last]` includes its last row.

        Raises UserError, naming the key, if there is none or it cannot be read as a matrix.
        """
        if key not in self._places:
            raise UserError(f"{self._scp}: no entry for {key}")
        place = self._places[key]
        if place.endswith("|") or place.startswith("|"):
            raise UserError(f"{self._scp}: {key}: '{place}' is a shell command; pipes are not run")
        place, rows = _split_range(place)
        path, offset = _split_offset(place)
        try:
            with open(self._find(path), "rb") as file:
                matrix = _read_matrix(file, offset)
        except OSError as error:
            raise UserError(f"{self._scp}: {key}: {path}: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{self._scp}: {key}: {place}: {error}") from error
        return matrix if rows is None else matrix[rows[0] : rows[1] + 1]

    def _find(self, path: str) -> Path:
        given = Path(path)
        return given if given.is_absolute() or given.exists() else self._scp.parent / given


def write_int_vectors(path: Path, vectors: Mapping[str, npt.ArrayLike]) -> None:
    """Write int32 vectors as a gzipped Kaldi archive; the same vectors give the same bytes."""
    buffer = io.BytesIO()
    for key in sorted(vectors, key=str.encode):
        values = np.asarray(vectors[key], np.int32)
        items = np.empty(len(values), [("size", "i1"), ("value", "<i4")])
        items["size"], items["value"] = 4, values
        buffer.write(key.encode() + b" \0B\4" + struct.pack("<i", len(values)) + items.tobytes())
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))


def read_int_vectors(path: Path) -> dict[str, npt.NDArray[np.int32]]:
    """Read a Kaldi archive of int32 vectors, gzipped or not. Raises UserError if it is not one."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return dict(_int_vectors(data))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise UserError(f"{path}: not an archive of integer vectors: {error}") from error


def _int_vectors(data: bytes) -> Iterable[tuple[str, npt.NDArray[np.int32]]]:
    position = 0
    while position < len(data):
        end = data.find(b" ", position)
        if end < 0 or data[end + 1 : end + 4] != b"\0B\4" or end + 8 > len(data):
            raise ValueError(f"no integer vector at byte {position}")
        key = data[position:end].decode()
        (count,) = struct.unpack_from("<i", data, end + 4)
        position = end + 8 + 5 * count
        if count < 0 or position > len(data):
            raise ValueError(f"{key}: {count} values do not fit the file, it is truncated")
        items = np.frombuffer(data, [("size", "i1"), ("value", "<i4")], count, end + 8)
        yield key, items["value"].astype(np.int32)


def _read_matrix(file: BinaryIO, offset: int) -> npt.NDArray[Any]:
    """Check the header against the file's size, then let kaldiio read."""
    size = file.seek(0, io.SEEK_END)
    file.seek(offset)
    head = file.read(15)
    if head[:3] == b"PKL":
        raise ValueError("holds a Python object, which is never loaded")
    if head[:2] == b"\0B" and head[2:5] in _VALUE_BYTES:
        _check_size(head, size - offset)
    elif head[:4] != b"\0BCM":  # CM, CM2 and CM3 are Kaldi's compressed matrices
        raise ValueError(f"expected a binary matrix, found {head[:5]!r}")
    file.seek(offset)
    matrix = kaldiio.matio.read_kaldi(file)
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2:
        raise ValueError("a vector found where a matrix was expected")
    return matrix


def _check_size(head: bytes, available: int) -> None:
    kind = head[2:5]
    if kind in (b"FV ", b"DV "):
        raise ValueError("a vector found where a matrix was expected")
    rows, columns = struct.unpack("<xixi", head[5:15])
    needed = 15 + rows * columns * _VALUE_BYTES[kind]
    if rows < 0 or columns < 0 or needed > available:
        raise ValueError(
            f"a {rows} x {columns} matrix takes {needed} bytes but the file has {available}; "
            "it is truncated, make it again"
        )


def _split_range(place: str) -> tuple[str, tuple[int, int] | None]:
    if not place.endswith("]"):
        return place, None
    place, _, inside = place[:-1].rpartition("[")
    first, _, last = inside.partition(",")[0].partition(":")
    if not (first.isdigit() and last.isdigit()):
        raise UserError(f"{place}[{inside}]: expected a row range such as [0:99]")
    return place, (int(first), int(last))


def _split_offset(place: str) -> tuple[str, int]:
    path, _, offset = place.rpartition(":")
    return (path, int(offset)) if path and offset.isdigit() else (place, 0)
