"""Splits are disjoint, complete and decided by the seed."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.corpus.split import SplitConfig, SubsetConfig, split, subset
from asrtrain.io.errors import UserError
from tests.corpus.directories import small_directory


@given(st.integers(1, 5), st.integers(0, 3))
@settings(max_examples=20)
def test_the_parts_are_disjoint_and_complete(
    tmp_path_factory: pytest.TempPathFactory, speakers: int, seed: int
) -> None:
    path = tmp_path_factory.mktemp("split")
    whole = small_directory(path / "all", speakers=6)
    parts = {}
    for part in ("train", "dev"):
        config = SplitConfig(
            data=str(path / "all"), out=str(path / part), part=part, speakers=speakers, seed=seed
        )
        split(config)
        parts[part] = DataDirectory.read(path / part)
    assert len(parts["dev"].spk2utt) == speakers
    assert not parts["dev"].spk2utt.keys() & parts["train"].spk2utt.keys()
    together = parts["dev"].utterances + parts["train"].utterances
    assert sorted(together) == whole.utterances


def held_out(path: Path, name: str, seed: int) -> list[str]:
    split(
        SplitConfig(data=str(path / "all"), out=str(path / name), part="dev", speakers=3, seed=seed)
    )
    return list(DataDirectory.read(path / name).spk2utt)


def test_the_seed_decides(tmp_path: Path) -> None:
    small_directory(tmp_path / "all", speakers=20)
    assert held_out(tmp_path, "a", 1) == held_out(tmp_path, "b", 1) != held_out(tmp_path, "c", 2)


def test_subsets(tmp_path: Path) -> None:
    small_directory(tmp_path / "all", speakers=6)
    subset(SubsetConfig(data=str(tmp_path / "all"), out=str(tmp_path / "a"), speakers=2))
    assert len(DataDirectory.read(tmp_path / "a").utterances) == 2 * 3
    subset(SubsetConfig(data=str(tmp_path / "all"), out=str(tmp_path / "b"), utterances=4))
    assert len(DataDirectory.read(tmp_path / "b").utterances) == 4
    subset(SubsetConfig(data=str(tmp_path / "all"), out=str(tmp_path / "c")))
    assert len(DataDirectory.read(tmp_path / "c").utterances) == 6 * 3


def test_more_than_there_are(tmp_path: Path) -> None:
    small_directory(tmp_path / "all", speakers=2)
    with pytest.raises(UserError, match=r"all: speakers=2 leaves none of 2"):
        split(SplitConfig(data=str(tmp_path / "all"), out=str(tmp_path / "a"), speakers=2))
    with pytest.raises(UserError, match=r"all: utterances=7 but there are only 6"):
        subset(SubsetConfig(data=str(tmp_path / "all"), out=str(tmp_path / "a"), utterances=7))
    assert not (tmp_path / "a").exists()
