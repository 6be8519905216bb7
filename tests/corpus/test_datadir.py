"""Data directories: written then read they are the same; tables that disagree are named."""

from pathlib import Path

import pytest

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.errors import UserError
from tests.corpus.directories import small_directory


def test_write_then_read(tmp_path: Path) -> None:
    written = small_directory(tmp_path)
    assert DataDirectory.read(tmp_path) == written


def test_spk2utt_is_the_inverse_of_utt2spk(tmp_path: Path) -> None:
    small_directory(tmp_path, speakers=2, utterances=2)
    assert (tmp_path / "spk2utt").read_text() == "s0 s0-0 s0-1\ns1 s1-0 s1-1\n"


def test_a_subset_keeps_every_table_in_step(tmp_path: Path) -> None:
    part = small_directory(tmp_path / "all").subset(["s1-0", "s3-2"])
    (tmp_path / "part").mkdir()
    part.write(tmp_path / "part")
    read = DataDirectory.read(tmp_path / "part")
    assert read.utterances == ["s1-0", "s3-2"]
    assert read.text.keys() == read.recordings.keys() == read.utt2spk.keys()


@pytest.mark.parametrize("table", ["text", "wav.scp", "utt2spk"])
def test_an_utterance_that_a_table_lacks_is_named(tmp_path: Path, table: str) -> None:
    small_directory(tmp_path)
    lines = (tmp_path / table).read_text().splitlines(keepends=True)
    (tmp_path / table).write_text("".join(lines[:4] + lines[5:]))
    with pytest.raises(UserError, match=rf"{tmp_path}/{table}: no entry for utterance s1-1, which"):
        DataDirectory.read(tmp_path)


def test_an_utterance_without_a_speaker_is_named(tmp_path: Path) -> None:
    small_directory(tmp_path)
    text = (tmp_path / "utt2spk").read_text()
    (tmp_path / "utt2spk").write_text(text.replace("s1-1 s1", "s1-1"))
    with pytest.raises(UserError, match=r"utt2spk: s1-1 has no speaker"):
        DataDirectory.read(tmp_path)
