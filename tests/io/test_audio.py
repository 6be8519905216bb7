"""Audio: formats agree with the samples that were written; what cannot be read is named."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.io.audio import byte_order, read_audio
from asrtrain.io.errors import UserError


def tone(length: int = 800) -> np.ndarray:
    return (8000 * np.sin(np.arange(length) * 0.05)).astype(np.int16)


@pytest.mark.parametrize(
    ("ending", "kind", "subtype", "step"),
    [
        (".wav", "WAV", "PCM_16", 0),
        (".flac", "FLAC", "PCM_16", 0),
        (".sph", "NIST", "PCM_16", 0),
        (".sph", "NIST", "ULAW", 512),
        (".sph", "NIST", "ALAW", 512),
    ],
)
def test_formats(tmp_path: Path, ending: str, kind: str, subtype: str, step: int) -> None:
    path = tmp_path / f"a{ending}"
    soundfile.write(path, tone(), 8000, format=kind, subtype=subtype)
    samples, rate = read_audio(path, raw_rate=16000)
    assert rate == 8000
    np.testing.assert_allclose(samples, tone(), atol=step)


@pytest.mark.parametrize("kind", ["<i2", ">i2"])
def test_raw_files_of_either_byte_order(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.raw"
    path.write_bytes(tone().astype(kind).tobytes())
    samples, rate = read_audio(path, raw_rate=16000)
    assert rate == 16000
    np.testing.assert_array_equal(samples, tone())
    order = "little" if kind == "<i2" else "big"
    np.testing.assert_array_equal(read_audio(path, 16000, order)[0], tone())


@given(st.floats(0.01, 0.8), st.floats(300, 20_000), st.integers(0, 1000))
def test_the_byte_order_of_smooth_sound_is_found(step: float, size: float, shift: int) -> None:
    noise = np.random.default_rng(shift).normal(0, size / 50, 400)
    samples = np.clip(size * np.sin((np.arange(400) + shift) * step) + noise, -32768, 32767)
    for kind, order in (("<i2", "little"), (">i2", "big")):
        assert byte_order(samples.astype(kind).tobytes()) == order


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "two.wav", np.zeros((10, 2)), 8000)
    (tmp_path / "text.wav").write_text("hello")
    (tmp_path / "odd.raw").write_bytes(b"123")
    for name, message in (
        ("two.wav", "has 2 channels, expected 1"),
        ("text.wav", "cannot be read as audio"),
        ("odd.raw", "3 bytes are not 16-bit samples"),
        ("none.wav", "cannot be read as audio"),
        ("none.raw", "No such file"),
    ):
        with pytest.raises(UserError, match=f"{name}: .*{message}|{name}: {message}"):
            read_audio(tmp_path / name, 16000)
