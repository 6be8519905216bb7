"""Shards give back what was written, spliced within the utterance, whatever the shard size."""

from pathlib import Path

import numpy as np
import pytest

from asrtrain.frames.shards import FrameSet, read_pdf_counts, write_frame_set
from asrtrain.io.errors import UserError

LENGTHS = [3, 1, 7, 5]


def utterances() -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(0)
    return [
        (
            generator.standard_normal((length, 2)).astype(np.float32),
            generator.integers(0, 4, length).astype(np.int32),
        )
        for length in LENGTHS
    ]


@pytest.mark.parametrize("shard_frames", [1, 4, 1000])
def test_a_batch_is_spliced_frames_and_labels(tmp_path: Path, shard_frames: int) -> None:
    assert write_frame_set(tmp_path, utterances(), 5, shard_frames) == sum(LENGTHS)
    data = FrameSet(tmp_path)
    assert (data.dim, data.num_senones, data.num_frames) == (2, 5, sum(LENGTHS))
    indices = np.array([15, 0, 3, 10, 4, 0])
    features, labels = data.batch(indices, left=2, right=1)
    places = [(number, frame) for number, length in enumerate(LENGTHS) for frame in range(length)]
    for row, label, index in zip(features, labels, indices, strict=True):
        number, frame = places[index]
        source, states = utterances()[number]
        context = [min(max(frame + offset, 0), len(source) - 1) for offset in (-2, -1, 0, 1)]
        np.testing.assert_array_equal(row, np.concatenate([source[each] for each in context]))
        assert label == states[frame]


def test_shards_close_with_the_utterance_that_fills_them(tmp_path: Path) -> None:
    write_frame_set(tmp_path, utterances(), 5, 4)
    assert FrameSet(tmp_path).shard_frames == [4, 7, 5]


def test_pdf_counts_count_all_labels_in_kaldis_form(tmp_path: Path) -> None:
    write_frame_set(tmp_path, utterances(), 5, 4)
    wanted = np.bincount(np.concatenate([labels for _, labels in utterances()]), minlength=5)
    assert (tmp_path / "pdf_counts").read_text() == f"[ {' '.join(map(str, wanted))} ]\n"
    np.testing.assert_array_equal(FrameSet(tmp_path).pdf_counts, wanted)


def test_a_folder_that_is_no_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{tmp_path}: no frames.json; make it with"):
        FrameSet(tmp_path)


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    write_frame_set(tmp_path, utterances(), 5, 1000)
    path = tmp_path / "000.features.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UserError, match=r"000.features.npy: cannot be read"):
        FrameSet(tmp_path)


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    write_frame_set(tmp_path, utterances(), 5, 1000)
    np.save(tmp_path / "000.labels.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match=r"000.labels.npy: cannot be read"):
        FrameSet(tmp_path)


def test_counts_in_another_form_are_named(tmp_path: Path) -> None:
    (tmp_path / "pdf_counts").write_text("1 2 3\n")
    with pytest.raises(UserError, match="expected counts in Kaldi's text form"):
        read_pdf_counts(tmp_path / "pdf_counts")
