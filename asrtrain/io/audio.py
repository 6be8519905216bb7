"""Audio files as float32 samples on the scale of 16-bit integers, which Kaldi's features expect."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from asrtrain.io.errors import UserError

Samples = npt.NDArray[np.float32]


def read_audio(path: Path, raw_rate: int, raw_order: str = "auto") -> tuple[Samples, int]:
    """The samples (N,) of a one-channel file, and its sampling rate in Hz.

    WAV, FLAC and SPHERE (PCM, mu-law, A-law) are read through libsndfile. A file ending in `.raw`
    is headerless 16-bit PCM at `raw_rate`; `raw_order` is little, big or auto (see `byte_order`).

    Raises UserError if the file cannot be read or has several channels.
    """
    if path.suffix == ".raw":
        return _read_raw(path, raw_order), raw_rate
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        raise UserError(f"{path}: cannot be read as audio: {error}") from error
    if samples.shape[1] != 1:
        raise UserError(f"{path}: has {samples.shape[1]} channels, expected 1; extract one")
    return samples[:, 0] * np.float32(2**15), rate


def byte_order(data: bytes) -> str:
    """Guess the byte order of 16-bit samples: `little` or `big`.

    Speech moves little from one sample to the next; read in the wrong order, it is noise.
    """

    def roughness(kind: str) -> float:
        samples = np.frombuffer(data, kind).astype(np.float64)
        return float(np.abs(np.diff(samples)).sum())

    return "little" if roughness("<i2") <= roughness(">i2") else "big"


def _read_raw(path: Path, order: str) -> Samples:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    if len(data) % 2:
        raise UserError(f"{path}: {len(data)} bytes are not 16-bit samples; it is truncated")
    chosen = byte_order(data) if order == "auto" else order
    return np.frombuffer(data, "<i2" if chosen == "little" else ">i2").astype(np.float32)
