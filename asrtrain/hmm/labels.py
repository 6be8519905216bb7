"""Senone labels from an alignment directory: ali.*.gz and the final.mdl that made them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.hmm.model_file import read_structure
from asrtrain.io.archive import read_int_vectors
from asrtrain.io.errors import UserError


@dataclass(frozen=True)
class PdfLabels:
    """Frame labels of a set of utterances."""

    num_pdfs: int
    """S: senones of the model, whether or not the alignment uses them."""
    labels: dict[str, npt.NDArray[np.int32]]
    """Pdf id of each frame, by utterance."""


def read_pdf_labels(directory: str | Path) -> PdfLabels:
    """Read all ali.*.gz. Raises UserError if there is none, or an id the model does not have."""
    directory = Path(directory)
    structure = read_structure(directory)
    pdf_of = np.array(structure.pdf_of, np.int32)
    archives = sorted(directory.glob("ali.*.gz"))
    if not archives:
        raise UserError(
            f"{directory}: no ali.*.gz; make them with `asrtrain align out={directory}`"
        )
    labels = {}
    for archive in archives:
        for utterance, transitions in read_int_vectors(archive).items():
            if len(transitions) and not 1 <= transitions.min() <= transitions.max() < len(pdf_of):
                raise UserError(
                    f"{archive}: {utterance} has transition ids from {transitions.min()} to "
                    f"{transitions.max()}, the model has 1 to {len(pdf_of) - 1}; it was made with "
                    "another model"
                )
            labels[utterance] = pdf_of[transitions]
    return PdfLabels(structure.num_pdfs, labels)
