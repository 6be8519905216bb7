"""The verb `import-ali`, from an HTK label file to labelled frames."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from asrtrain.cli.main import main
from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.cmvn import NormalizeConfig
from asrtrain.feats.extract import FeatsConfig, extract
from asrtrain.frames.label import FramesConfig, label
from asrtrain.frames.shards import FrameSet
from asrtrain.hmm.import_ali import ImportConfig, import_ali, partners
from asrtrain.hmm.labels import read_pdf_labels
from asrtrain.io.errors import UserError
from tests.hmm.speech import write_features
from tests.hmm.test_htk import Runs, write_mlf

UTT2SPK = {"ann-1": "ann", "ann-2": "ann", "bob_3": "bob"}
RUNS: dict[str, Runs] = {
    "*/1.lab": [("sil", 2), ("x", 1)],
    "*/2.lab": [("y", 3)],
    "x/bob_3.lab": [("y", 1), ("sil", 2)],
}
AN4 = Path(os.environ.get("ASRTRAIN_TEST_DATA", "/nonexistent")) / "an4"
PREPARE = Path(__file__).parents[2] / "egs" / "an4" / "local" / "prepare_data.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    text = {each: ["WORD"] for each in UTT2SPK}
    DataDirectory(tmp_path / "data", text, UTT2SPK).write(tmp_path / "data")
    (tmp_path / "state.list").write_text("sil\nx\ny\nz\n")
    return tmp_path


def config(folder: Path, runs: dict[str, Runs] = RUNS, **changes) -> ImportConfig:
    settings = {
        "data": str(folder / "data"),
        "htk": str(write_mlf(folder / "x.mlf", runs)),
        "states": str(folder / "state.list"),
        "out": str(folder / "ali"),
    }
    return ImportConfig(**(settings | changes))


def counts(folder: Path) -> dict[str, int]:
    return json.loads((folder / "ali" / "metrics.jsonl").read_text())


def test_labels_by_hand(folder: Path) -> None:
    import_ali(config(folder, RUNS | {"*/other.lab": [("z", 4)]}))
    got = read_pdf_labels(folder / "ali")
    assert got.num_pdfs == 4
    assert {key: each.tolist() for key, each in got.labels.items()} == {
        "ann-1": [0, 0, 1],
        "ann-2": [2, 2, 2],
        "bob_3": [2, 0, 0],
    }
    assert counts(folder) == {
        "imported": 3,
        "missing": 0,
        "doubtful": 0,
        "unused": 1,
        "frames": 9,
        "senones": 4,
    }


def test_whose_label_file_a_name_is() -> None:
    """The whole id before the part after the speaker; ids that do not begin with the speaker."""
    utt2spk = {"s-1": "s", "1": "1", "t-2": "t", "u-2": "u", "odd": "v"}
    assert partners(utt2spk) == {
        "": ["1"],
        "s-1": ["s-1"],
        "1": ["1"],
        "t-2": ["t-2"],
        "u-2": ["u-2"],
        "2": ["t-2", "u-2"],
        "odd": ["odd"],
    }


def test_missing_labels_are_counted_up_to_a_share(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = {"*/1.lab": RUNS["*/1.lab"], "*/2.lab": []}
    with pytest.raises(UserError, match=r"2 of 3 utterances of .*data have no labels .* ann-2"):
        import_ali(config(folder, runs))
    assert not (folder / "ali").exists()
    import_ali(config(folder, runs, max_missing=0.7))
    assert "ann-2 is left out: line 6 begins it, but it has no frames" in caplog.text
    assert "bob_3 is left out: no labels of it" in caplog.text
    assert (counts(folder)["imported"], counts(folder)["missing"]) == (1, 1)


def test_two_label_files_for_one_utterance(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    import_ali(config(folder, RUNS | {"y/ann-1.lab": [("x", 3)]}, max_missing=0.5))
    assert read_pdf_labels(folder / "ali").labels.keys() == {"ann-2", "bob_3"}
    assert "ann-1 is left out: lines 2 and 13 may both be it" in caplog.text
    assert counts(folder)["doubtful"] == 1


def test_two_utterances_for_one_label_file(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    utt2spk = UTT2SPK | {"cid-1": "cid"}
    text = {each: ["WORD"] for each in utt2spk}
    DataDirectory(folder / "data", text, utt2spk).write(folder / "data")
    import_ali(config(folder, max_missing=0.5))
    assert read_pdf_labels(folder / "ali").labels.keys() == {"ann-2", "bob_3"}
    for each in ("ann-1", "cid-1"):
        assert f"{each} is left out: line 2 may be ann-1 or cid-1" in caplog.text


@pytest.mark.parametrize("setting", [{"frame_shift_100ns": 0}, {"max_missing": 1.5}])
def test_settings_are_checked(folder: Path, setting: dict) -> None:
    (name,) = setting
    with pytest.raises(UserError, match=f"{name}="):
        config(folder, **setting)


def test_from_the_command_line_to_labelled_frames(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    features = {each: np.random.default_rng(0).standard_normal((4, 2)) for each in UTT2SPK}
    text = {each: ["WORD"] for each in UTT2SPK}
    write_features(folder / "feats", text, features)
    DataDirectory(folder / "feats", text, UTT2SPK).write(folder / "feats")
    made = config(folder)
    arguments = [f"{key}={getattr(made, key)}" for key in ("htk", "states", "out")]
    assert main(["import-ali", f"data={folder / 'feats'}", *arguments]) == 0
    label(
        FramesConfig(
            data=str(folder / "feats"), ali=str(folder / "ali"), out=str(folder / "frames")
        )
    )
    frames = FrameSet(folder / "frames")
    assert (frames.num_frames, frames.num_senones) == (9, 4)
    _, labels = frames.batch(np.arange(9), 0, 0)
    assert labels.tolist() == [0, 0, 1, 2, 2, 2, 2, 0, 0]
    arguments[1] = f"states={folder / 'nowhere'}"
    assert main(["import-ali", f"data={folder / 'feats'}", *arguments]) == 1
    assert "states=" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.skipif(not (AN4 / "cntk").is_dir(), reason="no an4/cntk/ under ASRTRAIN_TEST_DATA")
def test_cntks_labels_of_an4(tmp_path: Path) -> None:
    """132 states; an utterance's labels are one frame shorter than its features."""
    data, feats, ali, out = (str(tmp_path / each) for each in ("data", "feats", "ali", "frames"))
    command = [sys.executable, PREPARE, "--data", AN4, "--set", "train", "--out", data]
    subprocess.run(command, check=True)
    extract(FeatsConfig(data=data, num_ceps=11, cmvn=NormalizeConfig(by="global"), out=feats))
    mlf, states = (str(AN4 / "cntk" / each) for each in ("glob_0000.mlf", "state.list"))
    import_ali(ImportConfig(data=feats, htk=mlf, states=states, max_missing=0.0, out=ali))
    assert len(read_pdf_labels(ali).labels) == 948
    label(FramesConfig(data=feats, ali=ali, max_lost=0.0, out=out))
    frames = FrameSet(Path(out))
    computed = json.loads((Path(feats) / "metrics.jsonl").read_text())["frames"]
    assert (frames.dim, frames.num_senones) == (33, 132)
    assert frames.num_frames == computed - 948
