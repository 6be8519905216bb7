"""Flat start and forced alignment on synthetic speech whose segmentation is known."""

import json
from pathlib import Path

import numpy as np
import pytest

from asrtrain.hmm.align import AlignConfig, align
from asrtrain.hmm.gmm import GmmConfig, train
from asrtrain.hmm.labels import read_pdf_labels
from asrtrain.hmm.model_file import read_structure
from asrtrain.io.archive import read_int_vectors, write_int_vectors
from asrtrain.io.errors import UserError
from asrtrain.lang.symbols import read_symbols
from tests.hmm.speech import synthetic_corpus, write_features

SETTINGS = {"num_iters": 12, "max_iter_inc": 8, "totgauss": 60, "realign_iters": list(range(1, 12))}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    folder = tmp_path_factory.mktemp("gmm")
    truth = synthetic_corpus(folder, 40)
    train(
        GmmConfig(
            data=str(folder / "feats"),
            lang=str(folder / "lang"),
            out=str(folder / "mono"),
            **SETTINGS,
        )
    )
    align(
        AlignConfig(
            data=str(folder / "feats"),
            lang=str(folder / "lang"),
            model=str(folder / "mono"),
            out=str(folder / "ali"),
        )
    )
    return folder, truth


def test_a_flat_start_finds_the_phones(trained) -> None:
    folder, truth = trained
    structure = read_structure(folder / "ali")
    names = {number: name for name, number in read_symbols(folder / "lang" / "phones.txt").items()}
    right = total = 0
    for utterance, labels in read_int_vectors(folder / "ali" / "ali.1.gz").items():
        found = [names[structure.transitions.transition_id_to_phone(int(each))] for each in labels]
        assert len(found) == len(truth[utterance])
        right += sum(a == b for a, b in zip(found, truth[utterance], strict=True))
        total += len(found)
    assert right / total > 0.85  # a boundary may be a frame off, of nine a phone


def test_the_likelihood_rises_and_the_mixtures_grow(trained) -> None:
    folder, _ = trained
    lines = [json.loads(line) for line in (folder / "mono" / "metrics.jsonl").open()]
    likelihoods = [line["log_likelihood_per_frame"] for line in lines]
    assert likelihoods[-1] > likelihoods[0] + 1
    assert lines[-1]["gaussians"] > lines[0]["gaussians"]
    assert all(line["failed"] == 0 for line in lines)


def test_labels_are_the_pdfs_of_the_alignment(trained) -> None:
    folder, truth = trained
    read = read_pdf_labels(folder / "ali")
    assert read.num_pdfs == 5 + 6 * 3
    assert read.labels.keys() == truth.keys()
    structure = read_structure(folder / "ali")
    transitions = read_int_vectors(folder / "ali" / "ali.1.gz")["s003"]
    wanted = [structure.transitions.transition_id_to_pdf(int(each)) for each in transitions]
    np.testing.assert_array_equal(read.labels["s003"], wanted)


def test_the_result_does_not_depend_on_nj(trained) -> None:
    folder, _ = trained
    few = dict(SETTINGS, num_iters=3)
    for nj in (1, 2):
        train(
            GmmConfig(
                data=str(folder / "feats"),
                lang=str(folder / "lang"),
                out=str(folder / f"nj{nj}"),
                nj=nj,
                **few,
            )
        )
    for name in ("final.mdl", "tree", "ali.1.gz"):
        assert (folder / "nj1" / name).read_bytes() == (folder / "nj2" / name).read_bytes()


def test_labels_of_another_model_are_named(trained, tmp_path: Path) -> None:
    folder, _ = trained
    for name in ("final.mdl", "tree"):
        (tmp_path / name).write_bytes((folder / "ali" / name).read_bytes())
    with pytest.raises(UserError, match=r"no ali.\*.gz; make them with"):
        read_pdf_labels(tmp_path)
    write_int_vectors(tmp_path / "ali.1.gz", {"u": [1, 999]})
    with pytest.raises(UserError, match=r"ali.1.gz: u has transition ids from 1 to 999"):
        read_pdf_labels(tmp_path)


def test_features_of_other_dimensions_are_named(trained, tmp_path: Path) -> None:
    folder, _ = trained
    features = {"s0": np.random.default_rng(0).standard_normal((30, 3))}
    write_features(tmp_path / "feats", {"s0": ["A"]}, features)
    with pytest.raises(UserError, match=r"feats: features have 3 dimensions, .*trained on 6"):
        align(
            AlignConfig(
                data=str(tmp_path / "feats"),
                lang=str(folder / "lang"),
                model=str(folder / "mono"),
                out=str(tmp_path / "ali"),
            )
        )


def too_short(folder: Path, path: Path) -> dict[str, str]:
    """Settings for a set of which one utterance has fewer frames than its words have states."""
    generator = np.random.default_rng(0)
    features = {
        key: generator.standard_normal((frames, 6)) for key, frames in (("s0", 60), ("s1", 3))
    }
    write_features(path / "feats", {"s0": ["A"], "s1": ["BEAD", "BEAD"]}, features)
    return {"data": str(path / "feats"), "lang": str(folder / "lang"), "out": str(path / "x")}


TOO_SHORT = r"1 of 2 utterances could not be aligned, such as s1"


def test_an_utterance_too_short_for_its_words(trained, tmp_path: Path) -> None:
    folder, _ = trained
    settings = too_short(folder, tmp_path)
    with pytest.raises(UserError, match=TOO_SHORT):
        train(GmmConfig(**settings))
    with pytest.raises(UserError, match=TOO_SHORT):
        align(AlignConfig(**settings, model=str(folder / "mono")))
    assert not (tmp_path / "x").exists()
    align(AlignConfig(**settings, model=str(folder / "mono"), max_failed=0.5))
    assert read_pdf_labels(tmp_path / "x").labels.keys() == {"s0"}


def test_a_word_that_the_lexicon_lacks(trained, tmp_path: Path) -> None:
    folder, _ = trained
    features = {"s0": np.random.default_rng(0).standard_normal((30, 6))}
    write_features(tmp_path / "feats", {"s0": ["ZOO"]}, features)
    with pytest.raises(UserError, match=r"feats/text: s0 has the word ZOO, which"):
        train(
            GmmConfig(
                data=str(tmp_path / "feats"), lang=str(folder / "lang"), out=str(tmp_path / "x")
            )
        )
