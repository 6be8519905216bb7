"""Sphinx cepstra: a big-endian int32 count of values, then that many big-endian float32."""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.io.errors import UserError


def read_sphinx_cepstra(path: Path, num_ceps: int) -> npt.NDArray[np.float32]:
    """The file's (T, `num_ceps`) matrix. Raises UserError if its size is not what it says."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    count = struct.unpack(">i", data[:4])[0] if len(data) >= 4 else -1
    if len(data) != 4 + 4 * count:
        raise UserError(
            f"{path}: says {count} values, which take {4 + 4 * count} bytes, but has {len(data)}; "
            "it is truncated or no Sphinx cepstra file, fetch it again"
        )
    if count % num_ceps:
        raise UserError(f"{path}: {count} values are not frames of {num_ceps} cepstra")
    return np.frombuffer(data, ">f4", offset=4).astype(np.float32).reshape(-1, num_ceps)
