"""From synthetic speech to words: graph, search, grid; results do not depend on nj."""

import json
from pathlib import Path

import kaldifst
import numpy as np
import pytest
import torch

from asrtrain.decode.decode import DecodeConfig, decode
from asrtrain.decode.graph import GraphConfig, build
from asrtrain.hmm.gmm import GmmConfig, train
from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_table
from asrtrain.lang.lm import LmConfig
from asrtrain.lang.lm import build as build_lm
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import new_model, save_model
from tests.hmm.speech import synthetic_corpus, write_features


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decode")
    synthetic_corpus(folder, 40)
    feats, lang = str(folder / "feats"), str(folder / "lang")
    settings = {"num_iters": 12, "totgauss": 60, "realign_iters": list(range(1, 12))}
    train(GmmConfig(data=feats, lang=lang, out=str(folder / "mono"), **settings))
    build_lm(LmConfig(data=feats, lang=lang, out=str(folder / "lm")))
    build(
        GraphConfig(
            lang=lang, lm=str(folder / "lm"), model=str(folder / "mono"), out=str(folder / "graph")
        )
    )
    return folder


def config(folder: Path, out: str, **settings) -> DecodeConfig:
    return DecodeConfig(
        **{
            "data": str(folder / "feats"),
            "graph": str(folder / "graph"),
            "model": str(folder / "mono"),
            "out": str(folder / out),
            "scales": [0.1, 0.5],
            "penalties": [0.0, 1.0],
        }
        | settings
    )


def test_words_are_found(folder: Path) -> None:
    decode(config(folder, "decoded"))
    grid = json.loads((folder / "decoded" / "grid.json").read_text())
    assert [(each["scale"], each["penalty"]) for each in grid] == [
        (0.1, 0.0),
        (0.1, 1.0),
        (0.5, 0.0),
        (0.5, 1.0),
    ]
    reference = read_table(folder / "feats" / "text")
    for each in grid:
        words = read_table(folder / "decoded" / each["file"])
        assert words.keys() == reference.keys()
        right = sum(words[key] == reference[key] for key in reference)
        assert right >= 0.8 * len(reference)


def test_the_result_does_not_depend_on_nj(folder: Path) -> None:
    for nj in (1, 2):
        decode(config(folder, f"nj{nj}", nj=nj))
    for file in (folder / "nj1" / "hyp").iterdir():
        assert file.read_bytes() == (folder / "nj2" / "hyp" / file.name).read_bytes()


def test_a_penalty_shortens(folder: Path) -> None:
    decode(
        config(folder, "penalties", scales=[0.05], penalties=[-20.0, 0.0, 20.0], lattice_beam=60.0)
    )
    grid = json.loads((folder / "penalties" / "grid.json").read_text())
    counts = [
        sum(len(rest.split()) for rest in read_table(folder / "penalties" / each["file"]).values())
        for each in grid
    ]
    assert counts[0] >= counts[1] >= counts[2]
    assert counts[0] > counts[2]


def test_a_network_is_used_where_there_is_one(folder: Path, tmp_path: Path) -> None:
    """Equal posteriors over equal priors say nothing: the graph alone decides."""
    network = new_model(DnnConfig(hidden=[4]), 6, torch.zeros(23), seed=1)
    save_model(network, tmp_path / "final.pt")
    decode(config(folder, "network", model=str(tmp_path)))
    assert (folder / "network" / "grid.json").exists()


def test_hclg_reads_transition_ids_and_writes_words(folder: Path) -> None:
    hclg = kaldifst.StdVectorFst.read(str(folder / "graph" / "HCLG.fst"))
    arcs = [arc for state in range(hclg.num_states) for arc in kaldifst.ArcIterator(hclg, state)]
    words = {int(line.split()[1]) for line in (folder / "graph" / "words.txt").open()}
    assert {arc.olabel for arc in arcs} <= words
    assert max(arc.ilabel for arc in arcs) <= 2 * (6 * 3) + 18


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scales": []}, r"scales=\[\]: expected some"),
        ({"scales": [0.0]}, r"scales=\[0.0\]: expected some, above 0"),
        ({"nj": 0}, r"nj=0: expected at least 1"),
    ],
)
def test_settings_out_of_range_are_named(folder: Path, settings: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        config(folder, "x", **settings)


def test_what_does_not_belong_together_is_named(folder: Path, tmp_path: Path) -> None:
    save_model(new_model(DnnConfig(hidden=[4]), 6, torch.zeros(9), seed=1), tmp_path / "final.pt")
    with pytest.raises(UserError, match=r"has 9 senones but .*graph was made for 23"):
        decode(config(folder, "x", model=str(tmp_path)))
    features = {"s0": np.random.default_rng(0).standard_normal((30, 3))}
    write_features(tmp_path / "feats", {"s0": ["A"]}, features)
    with pytest.raises(UserError, match=r"features have 3 dimensions, .*trained on 6"):
        decode(config(folder, "x", data=str(tmp_path / "feats")))
    with pytest.raises(UserError, match=r"lang: no HCLG.fst; make it with `asrtrain graph"):
        decode(config(folder, "x", graph=str(folder / "lang")))
    assert not (folder / "x").exists()
