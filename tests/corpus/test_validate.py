"""`data-validate` passes a sound directory and names what is wrong with others."""

from pathlib import Path

import pytest

from asrtrain.corpus.validate import ValidateConfig, validate
from asrtrain.io.errors import UserError
from tests.corpus.directories import small_directory


def sound(path: Path) -> Path:
    for file in small_directory(path).recordings.values():
        Path(file).touch()
    return path


def test_a_sound_directory(tmp_path: Path) -> None:
    validate(ValidateConfig(data=str(sound(tmp_path))))


def replace(path: Path, table: str, old: str, new: str) -> None:
    text = (path / table).read_text()
    assert old in text
    (path / table).write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("text", "s1-1 HELLO S1-1", "s1-1", r"text: s1-1 has no words"),
        ("spk2utt", "s1-1 ", "", r"spk2utt: speaker s1 disagrees with utt2spk"),
        ("spk2utt", "s2 s2-0 s2-1 s2-2\n", "", r"spk2utt: speaker s2 disagrees"),
        ("wav.scp", "s1-1.wav", "none.wav", r"wav.scp: s1-1: .*none.wav: no file"),
        ("utt2spk", "s0-0 s0", "s0-0 z", r"utt2spk: sorting by utterance does not sort by speaker"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, table: str, old: str, new: str, message: str
) -> None:
    replace(sound(tmp_path), table, old, new)
    if table == "utt2spk":
        (tmp_path / "spk2utt").unlink()
    with pytest.raises(UserError, match=message):
        validate(ValidateConfig(data=str(tmp_path)))


def test_features_that_lack_an_utterance(tmp_path: Path) -> None:
    sound(tmp_path)
    (tmp_path / "feats.scp").write_text("s0-0 feats.ark:5\n")
    with pytest.raises(UserError, match=r"feats.scp: no features for s0-1"):
        validate(ValidateConfig(data=str(tmp_path)))
