"""What an HMM system is without its Gaussians: topology, tree and transition probabilities.

The library's own objects can neither be pickled nor read from Kaldi's files; this holds their
content as plain data, from which every process makes its own.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import kaldi_hmm_gmm as khg

from asrtrain.hmm.binary import HEADER, BinaryReader, BinaryWriter
from asrtrain.io.errors import UserError


@dataclass(frozen=True)
class HmmStructure:
    """Topology, tree and transition probabilities."""

    topology: str
    """In Kaldi's text form."""
    tree: bytes
    """Content of Kaldi's binary tree file."""
    log_probs: tuple[float, ...] | None = None
    """Log probability by transition id, from 1 (0 is unused); None: the topology's own."""

    @cached_property
    def context(self) -> khg.ContextDependency:
        """The tree as the library has it."""
        tree = khg.ContextDependency.__new__(khg.ContextDependency)
        signed = memoryview(self.tree.removeprefix(HEADER)).cast("b").tolist()
        try:
            tree.__setstate__((signed,))
        except RuntimeError as error:
            raise UserError(
                "the tree beside the model is not Kaldi's binary tree, or truncated; copy it again"
            ) from error
        return tree

    @cached_property
    def transitions(self) -> khg.TransitionModel:
        """The transition model as the library has it."""
        model = khg.TransitionModel(self.context, read_topology(self.topology))
        if self.log_probs is None:
            return model
        *fixed, _, _ = model.__getstate__()
        leaving = [0.0] + [
            _log_of_rest(_self_loop(model, state, self.log_probs))
            for state in range(1, model.num_transition_states + 1)
        ]
        restored = khg.TransitionModel.__new__(khg.TransitionModel)
        restored.__setstate__((*fixed, list(self.log_probs), leaving))
        return restored

    @cached_property
    def pdf_of(self) -> list[int]:
        """Pdf id by transition id, from 1 (0 is unused)."""
        return self.transitions.transition_id_to_pdf_array()

    @property
    def num_pdfs(self) -> int:
        """S: how many senones there are."""
        return self.transitions.num_pdfs

    def with_transitions(self, model: khg.TransitionModel) -> "HmmStructure":
        """The same structure with the probabilities of `model`."""
        return replace(self, log_probs=tuple(model.log_probs))

    def transitions_of_phones(self, phones: list[int]) -> list[int]:
        """The transition ids of `phones`."""
        of, wanted = self.transitions.transition_id_to_phone, set(phones)
        return [each for each in range(1, len(self.pdf_of)) if of(each) in wanted]

    def pdfs_of_phones(self, phones: list[int]) -> list[int]:
        """The pdfs that only or also `phones` use, sorted."""
        return sorted({self.pdf_of[each] for each in self.transitions_of_phones(phones)})


def monophone_structure(topology: str) -> HmmStructure:
    """One senone for each state of each phone."""
    topo = read_topology(topology)
    tree = khg.monophone_context_dependency(topo.phones, topo.get_phone_to_num_pdf_classes())
    signed = tree.__getstate__()[0]
    return HmmStructure(topology, HEADER + bytes(value & 0xFF for value in signed))


def read_topology(text: str) -> khg.HmmTopology:
    """The library's topology from Kaldi's text form. Raises UserError if it is not one."""
    topo = khg.HmmTopology()
    try:
        topo.read(text)
    except RuntimeError as error:
        raise UserError(f"topology cannot be read: {str(error).splitlines()[0]}") from error
    return topo


def write_transitions(writer: BinaryWriter, structure: HmmStructure) -> None:
    """Kaldi's TransitionModel::Write."""
    model = structure.transitions
    writer.token("<TransitionModel>")
    _write_topology(writer, model.topo)
    writer.token("<Triples>")
    triples = _triples(model)
    writer.integer(len(triples))
    for triple in triples:
        writer.integer(*triple)
    writer.token("</Triples>", "<LogProbs>")
    writer.vector(model.log_probs)
    writer.token("</LogProbs>", "</TransitionModel>")


def read_transitions(reader: BinaryReader, tree: Path) -> HmmStructure:
    """Kaldi's TransitionModel::Read, with the `tree` file that belongs to it.

    Raises UserError if the tree gives other senones than the model says.
    """
    reader.expect("<TransitionModel>")
    topology = _read_topology(reader)
    reader.expect("<Triples>")
    triples = [
        (reader.integer(), reader.integer(), reader.integer()) for _ in range(reader.integer())
    ]
    reader.expect("</Triples>", "<LogProbs>")
    log_probs = reader.vector()
    reader.expect("</LogProbs>", "</TransitionModel>")
    if not tree.is_file():
        raise UserError(f"{tree}: no such file; the model needs its tree beside it")
    structure = HmmStructure(topology, tree.read_bytes(), tuple(log_probs.tolist()))
    if triples != _triples(structure.transitions):
        raise UserError(f"{tree}: does not belong to the model beside it; copy both from one place")
    return structure


def _triples(model: khg.TransitionModel) -> list[tuple[int, int, int]]:
    """(phone, HMM state, pdf) of each transition state."""
    return [each.__getstate__()[:3] for each in model.tuples]


def _write_topology(writer: BinaryWriter, topo: khg.HmmTopology) -> None:
    phones, indices, entries = topo.__getstate__()
    writer.token("<Topology>")
    writer.integers(phones)
    writer.integers(indices)
    writer.integer(len(entries))
    for entry in entries:
        writer.integer(len(entry))
        for state in entry:
            writer.integer(state.forward_pdf_class, len(state.transitions))
            for to, probability in state.transitions:
                writer.integer(to)
                writer.real(probability)
    writer.token("</Topology>")


def _read_topology(reader: BinaryReader) -> str:
    """Kaldi's binary topology in its text form."""
    reader.expect("<Topology>")
    phones, indices = reader.integers(), reader.integers()
    lines = ["<Topology>"]
    for number in range(reader.integer()):
        members = " ".join(str(phone) for phone in phones if indices[phone] == number)
        lines += ["<TopologyEntry>", "<ForPhones>", members, "</ForPhones>"]
        for state in range(reader.integer()):
            pdf_class, arcs = reader.integer(), range(reader.integer())
            pairs = [f"<Transition> {reader.integer()} {reader.real():.9g}" for _ in arcs]
            shown = f" <PdfClass> {pdf_class}" if pdf_class >= 0 else ""
            lines.append(f"<State> {state}{shown} {' '.join(pairs)} </State>")
        lines.append("</TopologyEntry>")
    reader.expect("</Topology>")
    return "\n".join([*lines, "</Topology>", ""])


def _self_loop(
    model: khg.TransitionModel, state: int, log_probs: tuple[float, ...]
) -> float | None:
    """Log probability of a transition state's self-loop, None if it has none."""
    first = model.state2id[state]
    end = model.state2id[state + 1]
    return next((log_probs[tid] for tid in range(first, end) if model.is_self_loop(tid)), None)


def _log_of_rest(log_prob: float | None) -> float:
    """log(1 - p), with Kaldi's floor where p is 1."""
    if log_prob is None:
        return 0.0
    return math.log(max(1 - math.exp(log_prob), 1e-10))
