"""Forced alignment: each path spells its transcript, for any number of processes."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from asrtrain.hmm.align import AlignConfig, align
from asrtrain.hmm.aligner import Aligner, AlignerJob
from asrtrain.hmm.labels import read_pdf_labels
from asrtrain.hmm.model_file import read_structure
from asrtrain.hmm.structure import monophone_structure
from asrtrain.io.archive import read_int_vectors, write_int_vectors
from asrtrain.io.errors import UserError
from asrtrain.io.stage import COUNTS
from asrtrain.lang.prepare import LangConfig, prepare
from asrtrain.lang.symbols import read_symbols
from tests.hmm.speech import synthetic_corpus

from .conftest import System
from .corpus import LEXICON, write_dict
from .test_gmm_input import change_features, changed


def config(system: System, out: Path, **settings: object) -> AlignConfig:
    given = {"data": str(system.test), "lang": str(system.lang), "model": str(system.model)}
    return AlignConfig(**(given | {"out": str(out)} | settings))


def spelled(transitions: np.ndarray, system: System) -> str:
    """The phones of a path without silences: one for each end, where the next state starts anew."""
    structure = read_structure(system.model)
    names = {value: name for name, value in read_symbols(system.lang / "phones.txt").items()}
    model, phones = structure.transitions, []
    for transition, following in zip(transitions, [*transitions[1:], None], strict=True):
        # With reordered self-loops a phone ends where its last state's self-loops end.
        leaves = following is None or model.id2state[following] != model.id2state[transition]
        state = model.tuples[model.id2state[transition] - 1].__getstate__()[1]
        name = names[model.transition_id_to_phone(int(transition))]
        if leaves and name != "SIL" and state == 2:
            phones.append(name)
    return " ".join(phones)


def test_paths_spell_their_transcripts(system: System, tmp_path: Path) -> None:
    align(config(system, tmp_path / "ali"))
    text = dict(line.split(" ", 1) for line in (system.test / "text").read_text().splitlines())
    alignments = read_int_vectors(tmp_path / "ali" / "ali.1.gz")
    assert sorted(alignments) == sorted(text)
    for utterance, transitions in alignments.items():
        allowed = [""]
        for word in text[utterance].split():
            allowed = [f"{one} {phones}".strip() for one in allowed for phones in LEXICON[word]]
        assert spelled(transitions, system) in allowed


def test_directory_goes_with_its_model(system: System, tmp_path: Path) -> None:
    align(config(system, tmp_path / "ali"))
    for name in ("final.mdl", "tree", "phones.txt"):
        assert (tmp_path / "ali" / name).read_bytes() == (system.model / name).read_bytes()
    assert (tmp_path / "ali" / "num_jobs").read_text() == "1\n"
    counts = json.loads((tmp_path / "ali" / COUNTS).read_text())
    labels = read_pdf_labels(tmp_path / "ali").labels
    assert counts["aligned"] == len(labels) == 10
    assert counts["frames"] == sum(map(len, labels.values()))


@pytest.mark.slow
def test_processes_do_not_change_a_byte(system: System, tmp_path: Path) -> None:
    for nj in (1, 3):
        align(config(system, tmp_path / str(nj), nj=nj))
    one, three = ((tmp_path / nj / "ali.1.gz").read_bytes() for nj in ("1", "3"))
    assert one == three


@pytest.mark.slow
def test_too_short_an_utterance_is_left_out_and_counted(system: System, tmp_path: Path) -> None:
    def shorten(matrices: dict[str, np.ndarray]) -> None:
        matrices["s0-u000"] = matrices["s0-u000"][:5]

    data = changed(tmp_path / "data", system.test, lambda folder: change_features(folder, shorten))
    align(config(system, tmp_path / "ali", data=str(data), max_failed=0.1))
    labels = read_pdf_labels(tmp_path / "ali").labels
    assert len(labels) == 9
    assert "s0-u000" not in labels
    with pytest.raises(UserError, match="1 of 10 utterances could not be aligned, such as s0-u000"):
        align(config(system, tmp_path / "strict", data=str(data)))


def test_features_of_other_dimensions_are_refused(system: System, tmp_path: Path) -> None:
    def narrow(matrices: dict[str, np.ndarray]) -> None:
        for key in matrices:
            matrices[key] = matrices[key][:, :3]

    data = changed(tmp_path / "data", system.test, lambda folder: change_features(folder, narrow))
    with pytest.raises(UserError, match=r"3 dimensions, .* was trained on 4"):
        align(config(system, tmp_path / "ali", data=str(data)))


@pytest.mark.parametrize("listed", [["A", "L", "M", "Z"], ["M", "L", "A"]])
def test_a_lang_directory_of_other_phones_is_refused(
    system: System, tmp_path: Path, listed: list[str]
) -> None:
    """The second has the same phones under other numbers, which would align without a word."""
    dictionary = write_dict(tmp_path / "dict")
    (dictionary / "nonsilence_phones.txt").write_text("\n".join(listed) + "\n")
    prepare(LangConfig(dict=str(dictionary), out=str(tmp_path / "lang")))
    with pytest.raises(UserError, match="different phones; use the lang directory"):
        align(config(system, tmp_path / "ali", lang=str(tmp_path / "lang")))


def test_labels_of_another_model_are_refused(system: System, tmp_path: Path) -> None:
    align(config(system, tmp_path / "ali"))
    archive = tmp_path / "ali" / "ali.1.gz"
    write_int_vectors(archive, {"u": [1, 2, 9999]})
    with pytest.raises(
        UserError, match=r"ali.1.gz: u has transition ids from 1 to 9999, the model"
    ):
        read_pdf_labels(tmp_path / "ali")
    archive.write_bytes(gzip.compress(b"u \0B\4\x09\0\0\0"))
    with pytest.raises(UserError, match=r"ali.1.gz: .* truncated"):
        read_pdf_labels(tmp_path / "ali")
    archive.unlink()
    with pytest.raises(UserError, match=r"no ali.\*.gz; make them with `asrtrain align"):
        read_pdf_labels(tmp_path / "ali")


@pytest.mark.parametrize(
    "setting", [{"beam": 0.0}, {"retry_beam": -1.0}, {"max_failed": -0.1}, {"nj": 0}]
)
def test_settings_are_checked(system: System, tmp_path: Path, setting: dict) -> None:
    (name,) = setting
    with pytest.raises(UserError, match=f"{name}="):
        config(system, tmp_path / "ali", **setting)


def test_the_first_alignment_has_silence_at_both_ends(tmp_path: Path) -> None:
    """Recordings begin and end in silence; a start that denies it learns speech from silence."""
    truth = synthetic_corpus(tmp_path, 12)
    structure = monophone_structure((tmp_path / "lang" / "topo").read_text())
    batches = [sorted(truth)]
    aligner = Aligner(
        AlignerJob(str(tmp_path / "feats"), str(tmp_path / "lang"), structure, batches)
    )
    assert aligner.align_equally() == []
    silence = structure.transitions_of_phones([1])
    alignments = aligner.alignments()
    assert all(len(alignments[key]) == len(truth[key]) for key in truth)
    ends = [label in silence for key in truth for label in alignments[key][[0, -1]]]
    assert sum(ends) >= 0.9 * len(ends)
