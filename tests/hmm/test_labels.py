"""Alignment directories that hold pdf ids; those with a model are in test_align."""

import gzip
from pathlib import Path

import kaldiio
import numpy as np
import pytest

from asrtrain.hmm.labels import PdfLabels, read_pdf_labels, write_pdf_labels
from asrtrain.io.archive import write_int_vectors
from asrtrain.io.errors import UserError

LABELS = {"a": np.array([0, 2, 2], np.int32), "b": np.array([1], np.int32)}


def test_written_and_read(tmp_path: Path) -> None:
    write_pdf_labels(tmp_path, PdfLabels(3, LABELS))
    got = read_pdf_labels(tmp_path)
    assert got.num_pdfs == 3
    assert {key: each.tolist() for key, each in got.labels.items()} == {"a": [0, 2, 2], "b": [1]}


def test_the_archive_is_kaldis(tmp_path: Path) -> None:
    write_pdf_labels(tmp_path, PdfLabels(3, LABELS))
    with gzip.open(tmp_path / "pdf.1.gz") as file:
        stored = dict(kaldiio.load_ark(file))
    assert stored["a"].tolist() == [0, 2, 2]


def test_all_jobs_archives_are_read(tmp_path: Path) -> None:
    write_pdf_labels(tmp_path, PdfLabels(3, {"a": LABELS["a"]}))
    write_int_vectors(tmp_path / "pdf.2.gz", {"b": LABELS["b"]})
    assert read_pdf_labels(tmp_path).labels.keys() == {"a", "b"}


def test_an_id_beyond_num_pdfs(tmp_path: Path) -> None:
    write_pdf_labels(tmp_path, PdfLabels(2, LABELS))
    with pytest.raises(UserError, match=r"pdf.1.gz: a has pdf ids from 0 to 2, .* 0 to 1"):
        read_pdf_labels(tmp_path)


@pytest.mark.parametrize("content", ["0\n", "-3\n", "many\n", "3 4\n", "99999999999\n"])
def test_num_pdfs_must_be_a_number(tmp_path: Path, content: str) -> None:
    write_pdf_labels(tmp_path, PdfLabels(3, LABELS))
    (tmp_path / "num_pdfs").write_text(content)
    with pytest.raises(UserError, match="num_pdfs: expected the number of pdf ids, found"):
        read_pdf_labels(tmp_path)
    (tmp_path / "num_pdfs").unlink()
    with pytest.raises(UserError, match="num_pdfs: no such file"):
        read_pdf_labels(tmp_path)


def test_transition_ids_are_preferred_and_need_their_model(tmp_path: Path) -> None:
    write_pdf_labels(tmp_path, PdfLabels(3, LABELS))
    write_int_vectors(tmp_path / "ali.1.gz", LABELS)
    with pytest.raises(UserError, match=r"no final.mdl"):
        read_pdf_labels(tmp_path)
