"""AN4's preparation, on trees laid out as AN4 is distributed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.extract import FeatsConfig, extract
from asrtrain.feats.mfcc import MfccConfig
from asrtrain.feats.reader import open_features
from asrtrain.lang.lexicon import read_lexicon
from tests.io.test_sphinx import write_mfc

LOCAL = Path(__file__).parents[2] / "egs" / "an4" / "local"
UTTERANCES = {"fash": ["an251-fash-b", "cen1-fash-b"], "mblb": ["an12-mblb-b"]}


def make_tree(path: Path, ending: str) -> Path:
    """AN4 in small: a training set of two speakers, features or audio by `ending`."""
    (path / "etc").mkdir(parents=True)
    fileids, transcripts = [], []
    for speaker, names in UTTERANCES.items():
        for name in names:
            fileids.append(f"an4_clstk/{speaker}/{name}")
            transcripts.append(f"<s> GO A </s> ({name})")
            folder = path / ("feat" if ending == ".mfc" else "wav") / "an4_clstk" / speaker
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{name}{ending}"
            sound = (3000 * np.sin(np.arange(8000) * 0.1)).astype(np.int16)
            if ending == ".mfc":
                write_mfc(file, np.random.default_rng(0).standard_normal((30, 13)))
            elif ending == ".sph":
                soundfile.write(file, sound, 16000, format="NIST")
            else:
                file.write_bytes(sound.astype(">i2").tobytes())
    (path / "etc" / "an4_train.fileids").write_text("\n".join(fileids) + "\n")
    (path / "etc" / "an4_train.transcription").write_text("\n".join(transcripts) + "\n")
    (path / "etc" / "an4.dic").write_text("A        AH\nA(2)     EY\nGO   G OW\n")
    (path / "etc" / "an4.filler").write_text("<s> SIL\n</s> SIL\n<sil> SIL\n")
    return path


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, LOCAL / script, *arguments], capture_output=True, text=True, check=False
    )


def prepare(tree: Path, out: Path) -> subprocess.CompletedProcess:
    return run("prepare_data.py", "--data", tree, "--set", "train", "--out", out)


@pytest.mark.parametrize(
    ("ending", "table"), [(".mfc", "cepstra.scp"), (".sph", "wav.scp"), (".raw", "wav.scp")]
)
def test_from_the_tree_to_features(tmp_path: Path, ending: str, table: str) -> None:
    done = prepare(make_tree(tmp_path / "an4", ending), tmp_path / "data")
    assert done.returncode == 0, done.stderr
    directory = DataDirectory.read(tmp_path / "data")
    assert directory.utterances == ["fash-an251-fash-b", "fash-cen1-fash-b", "mblb-an12-mblb-b"]
    assert directory.text["mblb-an12-mblb-b"] == ["GO", "A"]
    assert directory.recording_table == table
    extract(FeatsConfig(data=str(tmp_path / "data"), out=str(tmp_path / "feats")))
    features = open_features(tmp_path / "feats").read("fash-cen1-fash-b")
    assert features.shape[1] == 39
    assert np.isfinite(features).all()


def test_run_again_it_skips(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "an4", ".mfc")
    prepare(tree, tmp_path / "data")
    assert "data is complete, skipped" in prepare(tree, tmp_path / "data").stderr


def test_lexicon(tmp_path: Path) -> None:
    make_tree(tmp_path / "an4", ".mfc")
    done = run("prepare_lexicon.py", "--data", tmp_path / "an4", "--out", tmp_path / "dict")
    assert done.returncode == 0, done.stderr
    lexicon = read_lexicon(tmp_path / "dict")
    assert [(each.word, each.phones) for each in lexicon.entries] == [
        ("A", ("AH",)),
        ("A", ("EY",)),
        ("GO", ("G", "OW")),
    ]
    assert (lexicon.silence_phones, lexicon.optional_silence) == (["SIL"], "SIL")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("an4_train.transcription", "(cen1-fash-b)", "(x)", "no transcript of cen1-fash-b, which"),
        ("an4_train.fileids", "an4_clstk/mblb/an12-mblb-b\n", "", "does not list an12-mblb-b"),
        ("an4_train.fileids", "/cen1-fash-b", "/none", "no transcript of none"),
        (
            "an4_train.transcription",
            " (cen1-fash-b)",
            "",
            "line 2: expected `WORDS (utterance-id)`",
        ),
    ],
)
def test_lists_that_disagree_are_named(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    edit(make_tree(tmp_path / "an4", ".mfc") / "etc" / file, old, new)
    done = prepare(tmp_path / "an4", tmp_path / "data")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("asrtrain: error: prepare_data.py: ")
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_missing_recording_is_named(tmp_path: Path) -> None:
    make_tree(tmp_path / "an4", ".mfc")
    (tmp_path / "an4/feat/an4_clstk/fash/cen1-fash-b.mfc").unlink()
    done = prepare(tmp_path / "an4", tmp_path / "data")
    assert done.returncode == 1
    assert "no features or audio of an4_clstk/fash/cen1-fash-b: none of feat/" in done.stderr


def real(name: str) -> Path:
    root = os.environ.get("ASRTRAIN_TEST_DATA")
    if not root or not (Path(root) / name).is_dir():
        pytest.skip(f"real speech: no {name}/ under ASRTRAIN_TEST_DATA")
    return Path(root) / name


def test_the_real_corpus(tmp_path: Path) -> None:
    assert prepare(real("an4"), tmp_path / "data").returncode == 0
    directory = DataDirectory.read(tmp_path / "data")
    assert len(directory.utterances) == 948
    assert len(directory.spk2utt) == 74
    extract(FeatsConfig(data=str(tmp_path / "data"), out=str(tmp_path / "feats")))
    reader = open_features(tmp_path / "feats")
    speaker = [reader.read(each) for each in directory.spk2utt["fash"]]
    together = np.concatenate(speaker)
    np.testing.assert_allclose(together.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(together.std(axis=0), 1, atol=1e-3)


def test_real_audio_in_an4s_layout(tmp_path: Path) -> None:
    """Digits of FSDD written as SPHERE and as big-endian raw files give the same features."""
    source = sorted(real("fsdd").glob("recordings/*_theo_1?.wav"))[: len(UTTERANCES["fash"]) + 1]
    features = {}
    for ending in (".sph", ".raw"):
        tree = make_tree(tmp_path / ending[1:], ending)
        for file, wav in zip(sorted(tree.glob("wav/**/*" + ending)), source, strict=True):
            samples, rate = soundfile.read(wav, dtype="int16")
            if ending == ".sph":
                soundfile.write(file, samples, rate, format="NIST")
            else:
                file.write_bytes(samples.astype(">i2").tobytes())
        data, out = tmp_path / f"data{ending}", tmp_path / f"feats{ending}"
        assert prepare(tree, data).returncode == 0
        extract(FeatsConfig(data=str(data), out=str(out), mfcc=MfccConfig(sample_rate=8000)))
        features[ending] = open_features(out).read("fash-cen1-fash-b")
    np.testing.assert_allclose(features[".sph"], features[".raw"], atol=1e-4)
