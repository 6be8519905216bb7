"""Training from a flat start: Kaldi's schedule, any number of processes, mistakes named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from asrtrain.hmm.gmm import GmmConfig, train
from asrtrain.hmm.labels import read_pdf_labels
from asrtrain.io.archive import MatrixReader, MatrixWriter
from asrtrain.io.errors import UserError
from asrtrain.io.stage import COUNTS

from .conftest import SHORT, System


def changed(folder: Path, base: Path, change: Callable[[Path], None]) -> Path:
    shutil.copytree(base, folder)
    change(folder)
    return folder


def change_features(folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    reader = MatrixReader(folder / "feats.scp")
    matrices = {key: reader.read(key).copy() for key in reader.keys}
    change(matrices)
    with MatrixWriter(folder, "feats") as writer:
        for key, matrix in matrices.items():
            writer.write(key, matrix)


def counts_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / COUNTS).read_text().splitlines()]


def test_directory_is_kaldis_and_its_metrics_are_those_of_each_iteration(system: System) -> None:
    for name in ("final.mdl", "tree", "ali.1.gz", "num_jobs", "phones.txt"):
        assert (system.model / name).is_file()
    counts = counts_of(system.model)
    assert [each["iteration"] for each in counts] == list(range(SHORT["num_iters"]))
    assert counts[-1]["log_likelihood_per_frame"] > counts[0]["log_likelihood_per_frame"] + 1
    # Kaldi's schedule: none added in iterations 0 and 1, then (totgauss - senones) // max_iter_inc.
    senones = 5 + 3 * 3
    assert [each["gaussians"] for each in counts[:3]] == [senones, senones, senones + 3]
    assert counts[-1]["failed"] == 0


def test_labels_are_a_senone_for_each_frame(system: System) -> None:
    labels = read_pdf_labels(system.model)
    reader = MatrixReader(system.data / "feats.scp")
    assert labels.num_pdfs == 14
    assert sorted(labels.labels) == reader.keys
    for utterance, pdfs in labels.labels.items():
        assert pdfs.dtype == np.int32
        assert len(pdfs) == len(reader.read(utterance))
        assert 0 <= pdfs.min() <= pdfs.max() < 14


@pytest.mark.parametrize("nj", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_processes_do_not_change_a_byte(system: System, tmp_path: Path, nj: int) -> None:
    out = tmp_path / "gmm"
    train(GmmConfig(data=str(system.data), lang=str(system.lang), out=str(out), nj=nj, **SHORT))
    for name in ("final.mdl", "tree", "ali.1.gz", COUNTS):
        assert (out / name).read_bytes() == (system.model / name).read_bytes(), name


@pytest.mark.slow
def test_too_many_failures_are_an_error_that_says_how_many(system: System, tmp_path: Path) -> None:
    def lengthen(folder: Path) -> None:
        text = (folder / "text").read_text()
        (folder / "text").write_text(text.replace("mama", " ".join(["mama"] * 20)))

    data = changed(tmp_path / "data", system.data, lengthen)
    hopeless = sum("mama" in line for line in (system.data / "text").read_text().splitlines())
    assert 0 < hopeless < 40
    config = {"data": str(data), "lang": str(system.lang), **SHORT}
    with pytest.raises(
        UserError, match=rf"{hopeless} of 40 utterances .* or raise max_failed=0.05"
    ):
        train(GmmConfig(out=str(tmp_path / "strict"), **config))
    assert not (tmp_path / "strict").exists()
    train(GmmConfig(out=str(tmp_path / "loose"), max_failed=1.0, **config))
    assert len(read_pdf_labels(tmp_path / "loose").labels) == 40 - hopeless


def wrong_dimension(matrices: dict[str, np.ndarray]) -> None:
    key = sorted(matrices)[3]
    matrices[key] = matrices[key][:, :3]


def not_finite(matrices: dict[str, np.ndarray]) -> None:
    matrices[sorted(matrices)[3]][2, 1] = np.nan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (wrong_dimension, "s0-u009 has features of 3 dimensions, expected 4"),
        (not_finite, "s0-u009, frame 2: features are not finite"),
    ],
)
def test_bad_features_are_named(
    system: System, tmp_path: Path, change: Callable, message: str
) -> None:
    data = changed(tmp_path / "data", system.data, lambda folder: change_features(folder, change))
    with pytest.raises(UserError, match=message):
        train(GmmConfig(data=str(data), lang=str(system.lang), out=str(tmp_path / "gmm"), **SHORT))


def test_a_word_outside_the_lexicon_is_named(system: System, tmp_path: Path) -> None:
    def replace(folder: Path) -> None:
        text = (folder / "text").read_text()
        (folder / "text").write_text(text.replace("mama", "zz", 1))

    data = changed(tmp_path / "data", system.data, replace)
    with pytest.raises(UserError, match=r"has the word zz, which .*words.txt lacks; .*unk=WORD"):
        train(GmmConfig(data=str(data), lang=str(system.lang), out=str(tmp_path / "gmm"), **SHORT))


@pytest.mark.parametrize("name", ["topo", "L.fst", "words.txt", "oov.txt", "phones/silence.int"])
def test_an_incomplete_lang_directory_is_named(system: System, tmp_path: Path, name: str) -> None:
    lang = changed(tmp_path / "lang", system.lang, lambda folder: (folder / name).unlink())
    with pytest.raises(UserError, match=rf"{name}: no such file"):
        train(GmmConfig(data=str(system.data), lang=str(lang), out=str(tmp_path / "gmm"), **SHORT))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"stage": "tri"}, "stage=tri: expected one of mono"),
        ({"num_iters": 0}, "num_iters=0"),
        ({"max_iter_inc": 0}, "max_iter_inc=0"),
        ({"totgauss": 0}, "totgauss=0"),
        ({"beam": 0.0}, "beam=0.0"),
        ({"initial_beam": -1.0}, "initial_beam=-1.0"),
        ({"boost_silence": 0.0}, "boost_silence=0.0"),
        ({"max_failed": 1.5}, "max_failed=1.5"),
        ({"power": -1.0}, "power=-1.0"),
        ({"seed": -1}, "seed=-1"),
        ({"nj": 0}, "nj=0"),
    ],
)
def test_settings_are_checked_before_any_work(setting: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        GmmConfig(data="d", lang="l", out="o", **setting)
