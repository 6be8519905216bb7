"""HCLG against what it was composed from."""

import math
import shutil
from pathlib import Path

import kaldi_hmm_gmm as khg
import kaldifst
import pytest

from asrtrain.decode.graph import HCLG, GraphConfig, build
from asrtrain.hmm.aligner import graph_compiler
from asrtrain.hmm.model_file import read_structure
from asrtrain.io.archive import read_int_vectors
from asrtrain.io.errors import UserError
from asrtrain.lang.arpa import read_arpa
from asrtrain.lang.directory import read_fst
from asrtrain.lang.symbols import read_symbols

from .conftest import Decoder


def cost_of(labels: list[int], fst: kaldifst.StdVectorFst) -> tuple[list[int], float]:
    """Words and cost of the best path that reads `labels`."""
    kaldifst.arcsort(fst, "ilabel")
    path = kaldifst.shortest_path(kaldifst.compose(kaldifst.make_linear_acceptor(labels), fst))
    found, _, words, weight = kaldifst.get_linear_symbol_sequence(path)
    assert found
    return words, weight.value


def test_a_path_costs_what_lexicon_transitions_and_language_model_say(decoder: Decoder) -> None:
    """An alignment's transition ids, read by HCLG, give its transcript; the cost is that of the
    utterance's own training graph plus the n-gram's.
    """
    system, structure = decoder.system, read_structure(decoder.graph)
    words = read_symbols(decoder.graph / "words.txt")
    model = read_arpa(system.lm / "lm.arpa")
    text = dict(line.split(" ", 1) for line in (system.data / "text").read_text().splitlines())
    alignments = read_int_vectors(system.model / "ali.1.gz")
    compiler = graph_compiler(system.lang, structure)
    for utterance in sorted(alignments)[:5]:
        sentence = text[utterance].split()
        labels = alignments[utterance].tolist()
        said, cost = cost_of(labels, read_fst(decoder.graph / HCLG, "graph"))
        assert said == [words[word] for word in sentence]
        own = compiler.compile_graph_from_text([words[word] for word in sentence])
        khg.add_transition_probs(structure.transitions, [], 1.0, 0.1, own)
        history, wanted = ["<s>"], cost_of(labels, own)[1]
        for word in (*sentence, "</s>"):
            wanted -= math.log(model.probability(word, history))
            history.append(word)
        assert cost == pytest.approx(wanted, rel=1e-3)


def test_files_stand_beside_the_graph(decoder: Decoder) -> None:
    for name, origin in (("final.mdl", decoder.system.model), ("tree", decoder.system.model),
                         ("words.txt", decoder.system.lang)):  # fmt: skip
        assert (decoder.graph / name).read_bytes() == (origin / name).read_bytes()


def rebuilt(decoder: Decoder, out: Path, **settings: object) -> GraphConfig:
    system = decoder.system
    given = {"lang": str(system.lang), "lm": str(system.lm), "model": str(system.model)}
    return GraphConfig(**(given | {"out": str(out)} | settings))


def test_building_again_gives_the_same_bytes(decoder: Decoder, tmp_path: Path) -> None:
    build(rebuilt(decoder, tmp_path / "graph"))
    assert (tmp_path / "graph" / HCLG).read_bytes() == (decoder.graph / HCLG).read_bytes()


@pytest.mark.parametrize(
    ("field", "name"),
    [("lang", "L_disambig.fst"), ("lang", "words.txt"), ("lang", "phones/disambig.int"),
     ("lm", "G.fst"), ("model", "tree")],
)  # fmt: skip
def test_a_missing_file_is_named(decoder: Decoder, tmp_path: Path, field: str, name: str) -> None:
    shutil.copytree(getattr(decoder.system, field), tmp_path / "copy")
    (tmp_path / "copy" / name).unlink()
    with pytest.raises(UserError, match=rf"{name}: no such file"):
        build(rebuilt(decoder, tmp_path / "graph", **{field: str(tmp_path / "copy")}))
    assert not (tmp_path / "graph").exists()


def test_a_damaged_g_is_an_error_not_a_crash(decoder: Decoder, tmp_path: Path) -> None:
    shutil.copytree(decoder.system.lm, tmp_path / "lm")
    (tmp_path / "lm" / "G.fst").write_bytes(b"garbage" * 9)
    with pytest.raises(UserError, match=r"G.fst: not an FST or truncated"):
        build(rebuilt(decoder, tmp_path / "graph", lm=str(tmp_path / "lm")))


def test_scales_are_not_negative() -> None:
    with pytest.raises(UserError, match="self_loop_scale=-1"):
        GraphConfig(lang="l", lm="g", model="m", out="o", self_loop_scale=-1.0)
