"""Sphinx cepstra: frames as they are in the file, sizes checked."""

from pathlib import Path

import numpy as np
import pytest

from asrtrain.io.errors import UserError
from asrtrain.io.sphinx import read_sphinx_cepstra


def write_mfc(path: Path, frames: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.array(frames.size, ">i4").tobytes() + frames.astype(">f4").tobytes())
    return path


def test_frames(tmp_path: Path) -> None:
    frames = np.arange(26, dtype=np.float32).reshape(2, 13)
    got = read_sphinx_cepstra(write_mfc(tmp_path / "a.mfc", frames), 13)
    np.testing.assert_array_equal(got, frames)
    assert read_sphinx_cepstra(write_mfc(tmp_path / "b.mfc", frames[:0]), 13).shape == (0, 13)


def test_a_truncated_file_is_named_with_both_sizes(tmp_path: Path) -> None:
    path = write_mfc(tmp_path / "a.mfc", np.zeros((2, 13)))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(
        UserError, match=r"a.mfc: says 26 values, which take 108 bytes, but has 105"
    ):
        read_sphinx_cepstra(path, 13)
    path.write_bytes(b"\0\0")
    with pytest.raises(UserError, match=r"a.mfc: .* has 2"):
        read_sphinx_cepstra(path, 13)


def test_other_dimensions_and_a_missing_file(tmp_path: Path) -> None:
    path = write_mfc(tmp_path / "a.mfc", np.zeros((2, 13)))
    with pytest.raises(UserError, match=r"26 values are not frames of 12 cepstra"):
        read_sphinx_cepstra(path, 12)
    with pytest.raises(UserError, match=r"b.mfc: No such file"):
        read_sphinx_cepstra(tmp_path / "b.mfc", 13)
