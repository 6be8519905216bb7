"""Senone labels of an alignment directory, as `align` or as `import-ali` makes one.

ali.*.gz, final.mdl, tree   transition ids and the model that made them
pdf.*.gz, num_pdfs          pdf ids alone (as Kaldi's ali-to-pdf writes them), and their number
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.hmm.model_file import read_structure
from asrtrain.io.archive import read_int_vectors, write_int_vectors
from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_lines

PDF_ARCHIVE, NUM_PDFS = "pdf.1.gz", "num_pdfs"


@dataclass(frozen=True)
class PdfLabels:
    """Frame labels of a set of utterances."""

    num_pdfs: int
    """S: senones of the model, whether or not the alignment uses them."""
    labels: dict[str, npt.NDArray[np.int32]]
    """Pdf id of each frame, by utterance."""


def read_pdf_labels(directory: str | Path) -> PdfLabels:
    """Read all ali.*.gz; where there are none, all pdf.*.gz.

    Raises UserError if there is neither, or an id that the model or num_pdfs does not have.
    """
    directory = Path(directory)
    alignments, pdfs = sorted(directory.glob("ali.*.gz")), sorted(directory.glob("pdf.*.gz"))
    if pdfs and not alignments:
        num_pdfs = _read_num_pdfs(directory / NUM_PDFS)
        return PdfLabels(num_pdfs, dict(_pdf_vectors(pdfs, num_pdfs)))
    structure = read_structure(directory)
    if not alignments:
        raise UserError(
            f"{directory}: no ali.*.gz; make them with `asrtrain align out={directory}`"
        )
    pdf_of = np.array(structure.pdf_of, np.int32)
    return PdfLabels(structure.num_pdfs, dict(_aligned_vectors(alignments, pdf_of)))


def write_pdf_labels(directory: Path, labels: PdfLabels) -> None:
    """Write pdf.1.gz and num_pdfs, which `read_pdf_labels` reads."""
    write_int_vectors(directory / PDF_ARCHIVE, labels.labels)
    (directory / NUM_PDFS).write_text(f"{labels.num_pdfs}\n")


def _aligned_vectors(
    archives: list[Path], pdf_of: npt.NDArray[np.int32]
) -> Iterator[tuple[str, npt.NDArray[np.int32]]]:
    for archive in archives:
        for utterance, transitions in read_int_vectors(archive).items():
            if len(transitions) and not 1 <= transitions.min() <= transitions.max() < len(pdf_of):
                raise UserError(
                    f"{archive}: {utterance} has transition ids from {transitions.min()} to "
                    f"{transitions.max()}, the model has 1 to {len(pdf_of) - 1}; it was made with "
                    "another model"
                )
            yield utterance, pdf_of[transitions]


def _pdf_vectors(
    archives: list[Path], num_pdfs: int
) -> Iterator[tuple[str, npt.NDArray[np.int32]]]:
    for archive in archives:
        for utterance, pdfs in read_int_vectors(archive).items():
            if len(pdfs) and not 0 <= pdfs.min() <= pdfs.max() < num_pdfs:
                raise UserError(
                    f"{archive}: {utterance} has pdf ids from {pdfs.min()} to {pdfs.max()}, "
                    f"{NUM_PDFS} allows 0 to {num_pdfs - 1}; import the labels again"
                )
            yield utterance, pdfs


def _read_num_pdfs(path: Path) -> int:
    text = read_lines(path)[0].strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise UserError(f"{path}: expected the number of pdf ids, found '{text[:80]}'")
    return int(text)
