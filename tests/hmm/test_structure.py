"""The HMM structure survives our files, and its tree is what the library writes."""

from pathlib import Path

import kaldi_hmm_gmm as khg
import numpy as np
import pytest

from asrtrain.hmm.binary import BinaryReader, BinaryWriter
from asrtrain.hmm.gaussians import Mixtures
from asrtrain.hmm.model_file import HmmModel, read_model, read_structure, write_model
from asrtrain.hmm.structure import (
    HmmStructure,
    monophone_structure,
    read_topology,
    read_transitions,
    write_transitions,
)
from asrtrain.io.errors import UserError
from asrtrain.lang.lexicon import Entry, Lexicon
from asrtrain.lang.symbols import number
from asrtrain.lang.topology import topology

from .test_gaussians_peer import DIM

LEXICON = Lexicon([Entry("ab", ("A", "B"))], ["SIL"], ["A", "B"], "SIL")
SENONES = 5 + 3 + 3


def make_structure() -> HmmStructure:
    return monophone_structure(topology(LEXICON, number(LEXICON.phones)))


def trained(structure: HmmStructure) -> HmmStructure:
    """With probabilities that differ from the topology's."""
    model = structure.transitions
    counts = np.random.default_rng(0).uniform(10, 99, model.num_transition_ids + 1)
    model.mle_update(counts, khg.MleTransitionUpdateConfig())
    return structure.with_transitions(model)


def make_model() -> HmmModel:
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 4, SENONES)
    weights = np.concatenate([np.full(size, 1 / size) for size in sizes])
    means = generator.standard_normal((sizes.sum(), DIM))
    variances = generator.uniform(0.5, 2, means.shape)
    return HmmModel(trained(make_structure()), Mixtures(sizes, weights, means, variances))


def test_topology_has_three_states_and_five_for_silence() -> None:
    topo = read_topology(topology(LEXICON, number(LEXICON.phones)))
    assert topo.phones == [1, 2, 3]
    assert make_structure().num_pdfs == SENONES
    entries = {phone: topo.topology_for_phone(phone) for phone in (1, 2)}
    assert [len(entries[phone]) for phone in (1, 2)] == [6, 4]  # and the final state
    for entry in entries.values():
        for state in entry[:-1]:
            assert sum(share for _, share in state.transitions) == pytest.approx(1)
    # The last state of silence has no way back, the inner ones reach one another.
    assert [to for to, _ in entries[1][4].transitions] == [4, 5]
    assert [to for to, _ in entries[1][2].transitions] == [1, 2, 3, 4]


def test_each_state_of_each_phone_has_its_senone() -> None:
    structure = make_structure()
    silence, a, b = (structure.pdfs_of_phones([phone]) for phone in (1, 2, 3))
    assert sorted(silence + a + b) == list(range(SENONES))
    assert structure.pdfs_of_phones([2, 3]) == sorted(a + b)


def test_tree_is_what_the_library_writes(tmp_path: Path) -> None:
    structure = make_structure()
    structure.context.write(True, str(tmp_path / "tree"))
    assert (tmp_path / "tree").read_bytes() == structure.tree


def test_transitions_read_back(tmp_path: Path) -> None:
    structure = trained(make_structure())
    writer = BinaryWriter()
    write_transitions(writer, structure)
    writer.write(tmp_path / "m")
    (tmp_path / "tree").write_bytes(structure.tree)
    read = read_transitions(BinaryReader(tmp_path / "m"), tmp_path / "tree")
    ours, theirs = structure.transitions, read.transitions
    assert read.pdf_of == structure.pdf_of
    np.testing.assert_allclose(theirs.log_probs, ours.log_probs)
    np.testing.assert_allclose(
        theirs.non_self_loop_log_probs, ours.non_self_loop_log_probs, atol=1e-5
    )
    assert read_topology(read.topology).__getstate__()[:2] == ours.topo.__getstate__()[:2]


def test_a_model_reads_back_and_its_second_writing_has_the_same_bytes(tmp_path: Path) -> None:
    model = make_model()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_model(tmp_path / "a", model)
    read = read_model(tmp_path / "a")
    np.testing.assert_array_equal(read.mixtures.sizes, model.mixtures.sizes)
    for name in ("weights", "means", "variances"):
        np.testing.assert_allclose(
            getattr(read.mixtures, name), getattr(model.mixtures, name), rtol=1e-5, atol=1e-6
        )
    features = np.random.default_rng(1).standard_normal((9, DIM)).astype(np.float32)
    np.testing.assert_allclose(
        read.mixtures.log_likelihoods(features), model.mixtures.log_likelihoods(features), rtol=1e-4
    )
    assert read_structure(tmp_path / "a").pdf_of == model.structure.pdf_of
    write_model(tmp_path / "b", read)
    written = read_model(tmp_path / "b")
    np.testing.assert_array_equal(written.mixtures.sizes, read.mixtures.sizes)
    np.testing.assert_allclose(written.mixtures.means, read.mixtures.means, rtol=1e-5, atol=1e-6)


def test_a_tree_of_another_model_or_of_nothing_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, make_model())
    other = Lexicon([Entry("a", ("A",))], ["SIL"], ["A"], "SIL")
    structure = monophone_structure(topology(other, number(other.phones)))
    for tree in (structure.tree, b"", b"garbage", structure.tree[:40]):
        (tmp_path / "tree").write_bytes(tree)
        with pytest.raises(UserError, match="tree"):
            read_model(tmp_path)
    (tmp_path / "tree").unlink()
    with pytest.raises(UserError, match="tree: no such file; the model needs its tree"):
        read_model(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.999])
def test_a_truncated_model_is_refused(tmp_path: Path, share: float) -> None:
    write_model(tmp_path, make_model())
    data = (tmp_path / "final.mdl").read_bytes()
    (tmp_path / "final.mdl").write_bytes(data[: int(share * len(data))])
    with pytest.raises(UserError, match=r"final.mdl, byte \d+: expected"):
        read_model(tmp_path)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no final.mdl; expected a directory that `asrtrain gmm`"):
        read_structure(tmp_path)
