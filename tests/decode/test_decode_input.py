"""Decoding: the words that were said, the search's best path in the lattice, mistakes named."""

import json
import shutil
from pathlib import Path

import kaldi_decoder
import kaldifst
import numpy as np
import pytest
from kaldialign import edit_distance

from asrtrain.decode.decode import DecodeConfig, decode
from asrtrain.decode.search import LatticeSearch, open_scorer
from asrtrain.feats.reader import open_features
from asrtrain.io.archive import MatrixReader
from asrtrain.io.errors import UserError
from asrtrain.io.stage import COUNTS
from asrtrain.lang.symbols import read_symbols
from tests.hmm.test_gmm_input import change_features

from .conftest import Decoder

GRID = {"scales": [0.05, 0.1], "penalties": [-1.0, 0.0]}


def config(decoder: Decoder, out: Path, **settings: object) -> DecodeConfig:
    given = {
        "data": str(decoder.system.test),
        "graph": str(decoder.graph),
        "model": str(decoder.system.model),
        "out": str(out),
    }
    return DecodeConfig(**(given | GRID | settings))


def test_clear_speech_is_recognized(decoder: Decoder, tmp_path: Path) -> None:
    decode(config(decoder, tmp_path / "out"))
    grid = json.loads((tmp_path / "out" / "grid.json").read_text())
    assert [(each["scale"], each["penalty"]) for each in grid] == [
        (0.05, -1.0), (0.05, 0.0), (0.1, -1.0), (0.1, 0.0)]  # fmt: skip
    spoken, heard = (
        [line.split() for line in path.read_text().splitlines()]
        for path in (decoder.system.test / "text", tmp_path / "out" / grid[-1]["file"])
    )
    errors = sum(edit_distance(*pair)["total"] for pair in zip(spoken, heard, strict=True))
    words = sum(len(line) - 1 for line in spoken)
    assert errors < 0.2 * words  # a guess among four words would be wrong in three of four
    counts = json.loads((tmp_path / "out" / COUNTS).read_text())
    reader = MatrixReader(decoder.system.test / "feats.scp")
    assert counts["frames"] == sum(len(reader.read(key)) for key in reader.keys)
    assert counts["unfinished"] == 0


def test_lattice_holds_the_best_path_of_the_search(decoder: Decoder) -> None:
    """At the scale of the search, words are those of the library's own best path."""
    scorer = open_scorer(decoder.system.model)
    search = LatticeSearch(decoder.graph, scale=0.1, beam=16.0, lattice_beam=8.0)
    hclg = kaldifst.StdVectorFst.read(str(decoder.graph / "HCLG.fst"))
    reader = open_features(decoder.system.test)
    for utterance in reader.utterances[:4]:
        scores = scorer.score(reader.read(utterance))
        lattice, finished = search.lattice(scores)
        assert finished
        peer = kaldi_decoder.FasterDecoder(hclg, kaldi_decoder.FasterDecoderOptions())
        peer.decode(kaldi_decoder.DecodableCtc(scores[:, search._pdf_of] * np.float32(0.1)))
        _, best = peer.get_best_path()
        _, _, words, weight = kaldifst.get_linear_symbol_sequence(best)
        path = lattice.best_path(0.1, 0.0)
        assert lattice.words_of(path).tolist() == words
        assert np.count_nonzero(lattice.transition_id[path]) == len(scores)
        total = weight.value1 + weight.value2
        ours = lattice.graph[path].sum() + 0.1 * lattice.acoustic[path].sum()
        final = lattice.final_graph[lattice.end[path[-1]]]
        assert ours + final == pytest.approx(total, rel=1e-4)
        used = lattice.transition_id[path] > 0
        pdfs = np.array(search._pdf_of)[lattice.transition_id[path][used] - 1]
        np.testing.assert_allclose(
            -lattice.acoustic[path][used], scores[np.arange(len(pdfs)), pdfs], rtol=1e-4, atol=1e-3
        )


def test_processes_do_not_change_a_byte(decoder: Decoder, tmp_path: Path) -> None:
    for nj in (1, 3):
        decode(config(decoder, tmp_path / str(nj), nj=nj))
    files = sorted(each.relative_to(tmp_path / "1") for each in (tmp_path / "1").glob("hyp/*"))
    assert len(files) == 4
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "3" / file).read_bytes()


def test_an_utterance_that_reaches_no_final_state_is_counted(
    decoder: Decoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    shutil.copytree(decoder.system.test, data)
    change_features(data, lambda matrices: matrices.update({"s0-u000": matrices["s0-u000"][:2]}))
    decode(config(decoder, tmp_path / "out", data=str(data)))
    assert json.loads((tmp_path / "out" / COUNTS).read_text())["unfinished"] == 1
    assert "s0-u000 reached no final state" in caplog.text
    assert (tmp_path / "out" / "hyp" / "0.1_0.txt").read_text().startswith("s0-u000")


def test_a_second_run_in_one_process_sees_files_made_anew(decoder: Decoder, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(decoder.system.test, data)
    decode(config(decoder, tmp_path / "first", data=str(data)))
    change_features(data, lambda matrices: matrices.update({"s0-u000": matrices["s0-u003"]}))
    decode(config(decoder, tmp_path / "second", data=str(data)))
    second = (tmp_path / "second" / "hyp" / "0.1_0.txt").read_text().splitlines()
    assert second[0].split()[1:] == second[1].split()[1:]


def narrow(matrices: dict[str, np.ndarray]) -> None:
    for key in matrices:
        matrices[key] = matrices[key][:, :3]


def one_narrow(matrices: dict[str, np.ndarray]) -> None:
    matrices["s0-u003"] = matrices["s0-u003"][:, :3]


def not_finite(matrices: dict[str, np.ndarray]) -> None:
    matrices["s0-u003"][4, 0] = np.nan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (narrow, r"features have 3 dimensions, .* was trained on 4"),
        (one_narrow, "s0-u003 has features of 3 dimensions, expected 4"),
        (not_finite, "s0-u003, frame 4: features are not finite"),
        (lambda matrices: matrices.pop("s0-u003"), "no entry for s0-u003"),
    ],
)
def test_bad_features_are_named(
    decoder: Decoder, tmp_path: Path, change: object, message: str
) -> None:
    shutil.copytree(decoder.system.test, tmp_path / "data")
    change_features(tmp_path / "data", change)
    with pytest.raises(UserError, match=message):
        decode(config(decoder, tmp_path / "out", data=str(tmp_path / "data")))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kept", [0, 10, 100, 2000])
def test_a_damaged_graph_is_an_error_not_a_crash(
    decoder: Decoder, tmp_path: Path, kept: int
) -> None:
    shutil.copytree(decoder.graph, tmp_path / "graph")
    data = (decoder.graph / "HCLG.fst").read_bytes()
    (tmp_path / "graph" / "HCLG.fst").write_bytes(data[:kept])
    with pytest.raises(UserError, match=r"HCLG.fst: not an FST or truncated"):
        decode(config(decoder, tmp_path / "out", graph=str(tmp_path / "graph")))


def test_a_folder_without_a_graph_or_a_model_is_named(decoder: Decoder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no HCLG.fst; make it with `asrtrain graph"):
        decode(config(decoder, tmp_path / "out", graph=str(tmp_path / "empty")))
    with pytest.raises(UserError, match=r"no final\.mdl"):
        decode(config(decoder, tmp_path / "out", model=str(tmp_path / "empty")))


@pytest.mark.parametrize(
    "setting",
    [{"scales": []}, {"scales": [0.0]}, {"scales": [0.1, 0.1]}, {"penalties": []}, {"beam": 0.0},
     {"lattice_beam": -1.0}, {"search_scale": 0.0}, {"nj": 0}],
)  # fmt: skip
def test_settings_are_checked(decoder: Decoder, tmp_path: Path, setting: dict) -> None:
    (name,) = setting
    with pytest.raises(UserError, match=f"{name}="):
        config(decoder, tmp_path / "out", **setting)


def test_words_come_from_the_graphs_own_table(decoder: Decoder) -> None:
    assert set(read_symbols(decoder.graph / "words.txt")) >= {"la", "al", "mama", "am"}
