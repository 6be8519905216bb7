"""The primitives of Kaldi's binary files: tokens, numbers with their size, vectors, matrices."""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.io.errors import UserError

HEADER = b"\0B"


class BinaryWriter:
    """Collects what Kaldi would write in binary mode."""

    def __init__(self) -> None:
        self._parts = [HEADER]

    def token(self, *names: str) -> None:
        """Names such as <Topology>, each followed by a space."""
        self._parts += [f"{name} ".encode() for name in names]

    def integer(self, *values: int) -> None:
        """int32 values, each behind its size."""
        self._parts += [b"\4" + struct.pack("<i", value) for value in values]

    def real(self, value: float) -> None:
        """A float32 behind its size."""
        self._parts.append(b"\4" + struct.pack("<f", value))

    def integers(self, values: list[int]) -> None:
        """A vector of int32."""
        self._parts.append(b"\4" + struct.pack(f"<i{len(values)}i", len(values), *values))

    def vector(self, values: npt.ArrayLike) -> None:
        """A vector of float32."""
        array = np.asarray(values, "<f4")
        self.token("FV")
        self.integer(len(array))
        self._parts.append(array.tobytes())

    def matrix(self, values: npt.ArrayLike) -> None:
        """A matrix of float32."""
        array = np.asarray(values, "<f4")
        self.token("FM")
        self.integer(*array.shape)
        self._parts.append(array.tobytes())

    def write(self, path: Path) -> None:
        """Write all of it."""
        path.write_bytes(b"".join(self._parts))


class BinaryReader:
    """Reads a binary Kaldi file from its start. Every method raises UserError, naming the place."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0
        try:
            self._data = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from error
        if self._take(2) != HEADER:
            raise UserError(f"{path}: not a binary Kaldi file; convert it with --binary=true")

    def token(self) -> str:
        """The next token."""
        end = self._data.find(b" ", self._place, self._place + 100)
        if end < 0:
            raise self._wrong("a token")
        return self._take(end + 1 - self._place)[:-1].decode(errors="replace")

    def expect(self, *names: str) -> None:
        """Pass the tokens `names`."""
        for name in names:
            if (found := self.token()) != name:
                raise self._wrong(f"{name}, found {found}")

    def integer(self) -> int:
        """An int32."""
        return self._sized("<i")

    def real(self) -> float:
        """A float32."""
        return self._sized("<f")

    def integers(self) -> list[int]:
        """A vector of int32."""
        return self._array("<i4", self.integer()).tolist()

    def vector(self) -> npt.NDArray[np.float32]:
        """A vector of float32."""
        self.expect("FV")
        return self._array("<f4", self.integer())

    def matrix(self) -> npt.NDArray[np.float32]:
        """A matrix of float32."""
        self.expect("FM")
        rows, columns = self.integer(), self.integer()
        if rows < 0 or columns < 0:
            raise self._wrong("a matrix")
        return self._array("<f4", rows * columns).reshape(rows, columns)

    def _sized(self, kind: str) -> int | float:
        if self._take(1) != b"\4":
            raise self._wrong("a number of 4 bytes")
        return struct.unpack(kind, self._take(4))[0]

    def _array(self, kind: str, count: int) -> npt.NDArray:
        if count < 0:
            raise self._wrong("a count of values")
        return np.frombuffer(self._take(4 * count), kind).copy()

    def _take(self, size: int) -> bytes:
        taken = self._data[self._place : self._place + size]
        if len(taken) < size:
            raise self._wrong(f"{size} more bytes; it is truncated")
        self._place += size
        return taken

    def _wrong(self, expected: str) -> UserError:
        return UserError(f"{self._path}, byte {self._place}: expected {expected}")
