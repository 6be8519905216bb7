"""final.mdl and tree: what is written is read, by Kaldi's layout; damage is named."""

from pathlib import Path

import kaldi_hmm_gmm as khg
import numpy as np
import pytest

from asrtrain.hmm.binary import BinaryReader, BinaryWriter
from asrtrain.hmm.gaussians import flat_mixtures
from asrtrain.hmm.model_file import HmmModel, read_model, read_structure, write_model
from asrtrain.hmm.structure import HmmStructure, monophone_structure
from asrtrain.io.errors import UserError
from asrtrain.lang.prepare import LangConfig, prepare
from tests.lang.dictionaries import small_dict


@pytest.fixture
def structure(tmp_path: Path) -> HmmStructure:
    prepare(LangConfig(dict=str(small_dict(tmp_path / "dict")), out=str(tmp_path / "lang")))
    return monophone_structure((tmp_path / "lang" / "topo").read_text())


def trained(structure: HmmStructure) -> HmmModel:
    """A model whose probabilities are no longer the topology's."""
    model = structure.transitions
    counts = np.random.default_rng(0).uniform(5, 50, model.num_transition_ids + 1)
    model.mle_update(counts, khg.MleTransitionUpdateConfig())
    features = np.random.default_rng(1).standard_normal((30, 4)).astype(np.float32)
    flat = flat_mixtures([features], structure.num_pdfs)
    generator = np.random.default_rng(0)
    mixtures = flat.split(np.ones(structure.num_pdfs), 40, 0.2, generator)
    return HmmModel(structure.with_transitions(model), mixtures)


def test_write_then_read(structure: HmmStructure, tmp_path: Path) -> None:
    model = trained(structure)
    write_model(tmp_path, model)
    again = read_model(tmp_path)
    assert again.structure.log_probs == model.structure.log_probs
    assert again.structure.pdf_of == model.structure.pdf_of
    np.testing.assert_array_equal(again.mixtures.sizes, model.mixtures.sizes)
    np.testing.assert_allclose(again.mixtures.means, model.mixtures.means, rtol=1e-5)
    (tmp_path / "again").mkdir()
    write_model(tmp_path / "again", again)
    assert (tmp_path / "again" / "tree").read_bytes() == (tmp_path / "tree").read_bytes()


def test_a_structure_made_again_has_the_librarys_probabilities(structure: HmmStructure) -> None:
    model = trained(structure)
    wanted = structure.transitions.__getstate__()
    got = model.structure.transitions.__getstate__()
    assert got[2:6] == wanted[2:6]
    np.testing.assert_allclose(got[6], wanted[6])
    np.testing.assert_allclose(got[7], wanted[7], atol=1e-5)


def test_three_states_a_phone_and_five_for_silence(structure: HmmStructure) -> None:
    assert structure.num_pdfs == 5 + 6 * 3
    assert structure.pdfs_of_phones([1]) == [0, 1, 2, 3, 4]
    assert structure.pdfs_of_phones([2]) == [5, 6, 7]


def test_the_tree_is_read_by_the_library(structure: HmmStructure) -> None:
    succeeded, pdf = structure.context.compute([2], 1)
    assert succeeded
    assert pdf == 6


def test_kaldis_layout(structure: HmmStructure, tmp_path: Path) -> None:
    write_model(tmp_path, trained(structure))
    data = (tmp_path / "final.mdl").read_bytes()
    assert data.startswith(b"\0B<TransitionModel> <Topology> \4")
    for token in (
        b"</Topology> <Triples> \4",
        b"<LogProbs> FV \4",
        b"</TransitionModel> <DIMENSION> \4",
    ):
        assert token in data
    assert data.endswith(b"</DiagGMM> ")
    assert (
        (tmp_path / "tree")
        .read_bytes()
        .startswith(b"\0BContextDependency \4\1\0\0\0\4\0\0\0\0ToPdf ")
    )


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.9, 0.999])
def test_a_truncated_model_is_named(structure: HmmStructure, tmp_path: Path, share: float) -> None:
    write_model(tmp_path, trained(structure))
    path = tmp_path / "final.mdl"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(UserError, match=r"final.mdl"):
        read_model(tmp_path)


def test_a_missing_or_foreign_tree_is_named(structure: HmmStructure, tmp_path: Path) -> None:
    write_model(tmp_path, trained(structure))
    (tmp_path / "tree").unlink()
    with pytest.raises(UserError, match=r"tree: no such file; the model needs its tree"):
        read_structure(tmp_path)
    with pytest.raises(UserError, match=r"lang: no final.mdl; expected a directory"):
        read_structure(tmp_path / "lang")


def test_numbers_in_binary(tmp_path: Path) -> None:
    writer = BinaryWriter()
    writer.token("<A>")
    writer.integer(-7)
    writer.real(0.5)
    writer.integers([1, 2])
    writer.matrix([[1.0, 2.0]])
    writer.write(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == (
        b"\0B<A> \4\xf9\xff\xff\xff\4\0\0\0\x3f\4\2\0\0\0\1\0\0\0\2\0\0\0"
        b"FM \4\1\0\0\0\4\2\0\0\0\0\0\x80\x3f\0\0\0\x40"
    )
    reader = BinaryReader(tmp_path / "x")
    reader.expect("<A>")
    assert (reader.integer(), reader.real(), reader.integers()) == (-7, 0.5, [1, 2])
    assert reader.matrix().tolist() == [[1.0, 2.0]]
    with pytest.raises(UserError, match=r"x, byte 50: expected 1 more bytes; it is truncated"):
        reader.integer()
