"""The verb `frames`: lengths that differ a little are cut, by more skipped, too many an error."""

from pathlib import Path

import numpy as np
import pytest

from asrtrain.frames.label import FramesConfig, label
from asrtrain.frames.shards import FrameSet
from asrtrain.hmm.gaussians import flat_mixtures
from asrtrain.hmm.model_file import HmmModel, write_model
from asrtrain.hmm.structure import monophone_structure
from asrtrain.io.archive import write_int_vectors
from asrtrain.io.errors import UserError
from asrtrain.lang.prepare import LangConfig, prepare
from tests.hmm.speech import write_features
from tests.lang.dictionaries import small_dict


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    features = {f"s{number}": generator.standard_normal((20, 3)) for number in range(4)}
    write_features(tmp_path / "feats", {key: ["A"] for key in features}, features)
    prepare(LangConfig(dict=str(small_dict(tmp_path / "dict")), out=str(tmp_path / "lang")))
    structure = monophone_structure((tmp_path / "lang" / "topo").read_text())
    (tmp_path / "ali").mkdir()
    flat = flat_mixtures([features["s0"].astype(np.float32)], structure.num_pdfs)
    write_model(tmp_path / "ali", HmmModel(structure, flat))
    return tmp_path


def config(folder: Path, **changes) -> FramesConfig:
    return FramesConfig(
        data=str(folder / "feats"), ali=str(folder / "ali"), out=str(folder / "frames"), **changes
    )


def align(folder: Path, lengths: dict[str, int]) -> None:
    labels = {key: np.full(length, 20) for key, length in lengths.items()}
    write_int_vectors(folder / "ali" / "ali.1.gz", labels)


def test_all_frames_with_their_pdf(folder: Path) -> None:
    align(folder, {"s0": 20, "s1": 18, "s2": 20, "s3": 24})
    label(config(folder))
    data = FrameSet(folder / "frames")
    assert (data.num_frames, data.num_senones, data.dim) == (20 + 18 + 20 + 20, 23, 3)
    _, labels = data.batch(np.arange(data.num_frames), 0, 0)
    structure_pdf = (
        5  # transition id 20 is the second of phone 2's first state, behind 18 of silence
    )
    assert set(labels) == {structure_pdf}


def test_utterances_that_cannot_be_used(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    align(folder, {"s0": 20, "s1": 15, "s2": 20})
    with pytest.raises(
        UserError, match=r"2 of 4 utterances have no usable labels .*\(1 mismatched, 1 unaligned\)"
    ):
        label(config(folder))
    assert not (folder / "frames").exists()
    label(config(folder, max_lost=0.5))
    assert FrameSet(folder / "frames").num_frames == 40
    assert "s3 has no alignment" in caplog.text
    assert "s1 has 20 frames of features but 15 of labels, skipped" in caplog.text
