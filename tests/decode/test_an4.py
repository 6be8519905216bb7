"""Real speech: a monophone GMM-HMM of some AN4 speakers recognizes others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kaldialign import edit_distance

from asrtrain.corpus.split import SubsetConfig, subset
from asrtrain.decode.decode import DecodeConfig, decode
from asrtrain.decode.graph import GraphConfig, build
from asrtrain.feats.extract import FeatsConfig, extract
from asrtrain.hmm.gmm import GmmConfig, train
from asrtrain.lang.lm import LmConfig
from asrtrain.lang.lm import build as build_lm
from asrtrain.lang.prepare import LangConfig, prepare

LOCAL = Path(__file__).parents[2] / "egs" / "an4" / "local"
AN4 = Path(os.environ.get("ASRTRAIN_TEST_DATA", "/nonexistent")) / "an4"


def prepare_corpus(folder: Path, name: str, speakers: int) -> str:
    """A features directory of some of AN4's speakers."""
    command = [sys.executable, LOCAL / "prepare_data.py", "--data", AN4, "--set", name]
    subprocess.run([*command, "--out", folder / f"{name}_all"], check=True)
    data, feats = str(folder / name), str(folder / f"feats_{name}")
    subset(SubsetConfig(data=str(folder / f"{name}_all"), speakers=speakers, out=data))
    extract(FeatsConfig(data=data, out=feats))
    return feats


@pytest.mark.slow
@pytest.mark.skipif(not AN4.is_dir(), reason="no an4/ under ASRTRAIN_TEST_DATA")
def test_some_speakers_of_an4_teach_enough_to_recognize_others(tmp_path: Path) -> None:
    data, test = prepare_corpus(tmp_path, "train", 16), prepare_corpus(tmp_path, "test", 3)
    command = [sys.executable, LOCAL / "prepare_lexicon.py", "--data", AN4]
    subprocess.run([*command, "--out", tmp_path / "dict"], check=True)
    lang, lm, model, graph, out = (
        str(tmp_path / name) for name in ("lang", "lm", "gmm", "graph", "decode")
    )
    prepare(LangConfig(dict=str(tmp_path / "dict"), data=data, out=lang))
    build_lm(LmConfig(data=str(tmp_path / "train_all"), lang=lang, out=lm))
    train(GmmConfig(data=data, lang=lang, totgauss=400, num_iters=20, max_iter_inc=15, out=model))
    build(GraphConfig(lang=lang, lm=lm, model=model, out=graph))
    decode(
        DecodeConfig(data=test, graph=graph, model=model, scales=[0.1], penalties=[0.0], out=out)
    )
    spoken, heard = (
        [line.split()[1:] for line in path.read_text().splitlines()]
        for path in (Path(test) / "text", Path(out) / "hyp" / "0.1_0.txt")
    )
    errors = sum(edit_distance(*pair)["total"] for pair in zip(spoken, heard, strict=True))
    rate = errors / sum(map(len, spoken))
    # Measured: 0.24. (All 66 training speakers give about 0.09 on the whole test set.) The margin
    # is for other machines' rounding, which moves hard alignments.
    assert rate < 0.35
