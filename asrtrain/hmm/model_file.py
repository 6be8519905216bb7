"""A GMM-HMM on disk as Kaldi keeps it: final.mdl and tree."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asrtrain.hmm.binary import BinaryReader, BinaryWriter
from asrtrain.hmm.gaussians import Mixtures
from asrtrain.hmm.structure import HmmStructure, read_transitions, write_transitions
from asrtrain.io.errors import UserError

FINAL_MODEL, TREE = "final.mdl", "tree"


@dataclass(frozen=True)
class HmmModel:
    """An HMM system and the Gaussians of its senones."""

    structure: HmmStructure
    mixtures: Mixtures


def write_model(directory: Path, model: HmmModel) -> None:
    """Write final.mdl (TransitionModel, AmDiagGmm) and tree, binary."""
    writer = BinaryWriter()
    write_transitions(writer, model.structure)
    _write_mixtures(writer, model.mixtures)
    writer.write(directory / FINAL_MODEL)
    (directory / TREE).write_bytes(model.structure.tree)


def read_structure(directory: Path) -> HmmStructure:
    """The HMM structure of a final.mdl, whatever acoustic model follows it there.

    Raises UserError if final.mdl or tree is missing or is something else.
    """
    return read_transitions(_open(directory), directory / TREE)


def read_model(directory: Path) -> HmmModel:
    """A GMM-HMM. Raises UserError as `read_structure`, or if no Gaussians follow."""
    reader = _open(directory)
    structure = read_transitions(reader, directory / TREE)
    return HmmModel(structure, _read_mixtures(reader))


def _open(directory: Path) -> BinaryReader:
    if not (directory / FINAL_MODEL).is_file():
        raise UserError(
            f"{directory}: no {FINAL_MODEL}; expected a directory that `asrtrain gmm` or Kaldi made"
        )
    return BinaryReader(directory / FINAL_MODEL)


def _write_mixtures(writer: BinaryWriter, mixtures: Mixtures) -> None:
    writer.token("<DIMENSION>")
    writer.integer(mixtures.means.shape[1])
    writer.token("<NUMPDFS>")
    writer.integer(len(mixtures.sizes))
    for start, size in zip(mixtures.starts, mixtures.sizes, strict=True):
        own = slice(start, start + size)
        inverse = 1 / mixtures.variances[own]
        writer.token("<DiagGMM>", "<GCONSTS>")
        writer.vector(mixtures.gconsts[own])
        writer.token("<WEIGHTS>")
        writer.vector(mixtures.weights[own])
        writer.token("<MEANS_INVVARS>")
        writer.matrix(mixtures.means[own] * inverse)
        writer.token("<INV_VARS>")
        writer.matrix(inverse)
        writer.token("</DiagGMM>")


def _read_mixtures(reader: BinaryReader) -> Mixtures:
    reader.expect("<DIMENSION>")
    reader.integer()
    reader.expect("<NUMPDFS>")
    weights, means, variances = [], [], []
    for _ in range(reader.integer()):
        reader.expect("<DiagGMM>")
        if reader.token() == "<GCONSTS>":  # derived from the rest; Kaldi may leave them out
            reader.vector()
            reader.expect("<WEIGHTS>")
        weights.append(reader.vector().astype(np.float64))
        reader.expect("<MEANS_INVVARS>")
        scaled = reader.matrix().astype(np.float64)
        reader.expect("<INV_VARS>")
        variances.append(1 / reader.matrix().astype(np.float64))
        means.append(scaled * variances[-1])
        reader.expect("</DiagGMM>")
    return Mixtures(
        np.array([len(each) for each in weights]),
        np.concatenate(weights),
        np.concatenate(means),
        np.concatenate(variances),
    )
