"""A small dict directory and transcripts for tests."""

from pathlib import Path

from asrtrain.corpus.datadir import DataDirectory

LEXICON = """A AH
A EY
BE B IY
BEAD B IY D
BEE B IY
SEA S IY
SEE S IY
"""


def small_dict(path: Path, lexicon: str = LEXICON) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "lexicon.txt").write_text(lexicon)
    (path / "silence_phones.txt").write_text("SIL\n")
    (path / "optional_silence.txt").write_text("SIL\n")
    (path / "nonsilence_phones.txt").write_text("AH\nB\nD\nEY\nIY\nS\n")
    return path


def transcripts(path: Path, sentences: list[str]) -> Path:
    ids = [f"s{number}" for number in range(len(sentences))]
    path.mkdir(parents=True, exist_ok=True)
    DataDirectory(
        path,
        {each: text.split() for each, text in zip(ids, sentences, strict=True)},
        {each: each for each in ids},
    ).write(path)
    return path
