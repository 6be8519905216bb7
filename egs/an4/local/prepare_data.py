#!/usr/bin/env python3
"""Makes Kaldi data directories of AN4 as distributed: etc/ with feat/ or wav/ beside it.

AN4's ids name the speaker last (an251-fash-b); ours name it first (fash-an251-fash-b), as Kaldi
wants. The speaker is the folder's name.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from asrtrain.cli.main import exit_status
from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.errors import UserError
from asrtrain.io.settings import StageConfig
from asrtrain.io.stage import stage
from asrtrain.io.tables import read_lines

KINDS = (("feat", ".mfc", "cepstra.scp"), ("wav", ".sph", "wav.scp"), ("wav", ".raw", "wav.scp"))


@dataclass(frozen=True, kw_only=True)
class PrepareConfig(StageConfig):
    """Settings of this script."""

    data: str
    """AN4 as distributed."""
    set: str
    """train or test."""

    @property
    def lists(self) -> list[str]:
        """The files that decide the result."""
        stem = Path(self.data) / "etc" / f"an4_{self.set}"
        return [f"{stem}.fileids", f"{stem}.transcription"]


@stage("an4-prepare-data", inputs=("lists",))
def prepare(config: PrepareConfig, out: Path) -> None:
    """Write text, utt2spk, spk2utt and cepstra.scp or wav.scp."""
    fileids, transcripts = config.lists
    words = read_transcripts(Path(transcripts))
    text, utt2spk, recordings, table = {}, {}, {}, ""
    for fileid in read_lines(Path(fileids)):
        _, speaker, name = fileid.strip().rsplit("/", 2)
        if name not in words:
            raise UserError(f"{transcripts}: no transcript of {name}, which {fileids} lists")
        utterance = f"{speaker}-{name}"
        text[utterance], utt2spk[utterance] = words.pop(name), speaker
        recordings[utterance], table = find_recording(Path(config.data), fileid.strip())
    if words:
        raise UserError(f"{fileids}: does not list {min(words)}, of which {transcripts} has words")
    DataDirectory(out, text, utt2spk, table, recordings).write(out)


def read_transcripts(path: Path) -> dict[str, list[str]]:
    """Words by utterance from lines `WORDS (id)`; sentence marks are dropped."""
    transcripts = {}
    for number, line in enumerate(read_lines(path), start=1):
        match = re.fullmatch(r"(.*)\((\S+)\)\s*", line)
        if not match:
            raise UserError(f"{path}, line {number}: expected `WORDS (utterance-id)`: {line}")
        transcripts[match[2]] = [each for each in match[1].split() if each not in ("<s>", "</s>")]
    return transcripts


def find_recording(data: Path, fileid: str) -> tuple[str, str]:
    """The utterance's file, and the table that it belongs in."""
    for folder, ending, table in KINDS:
        path = data / folder / f"{fileid}{ending}"
        if path.is_file():
            return str(path), table
    tried = ", ".join(f"{folder}/{fileid}{ending}" for folder, ending, _ in KINDS)
    raise UserError(f"{data}: no features or audio of {fileid}: none of {tried}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="AN4 as distributed")
    parser.add_argument("--set", required=True, choices=("train", "test"))
    parser.add_argument("--out", required=True, help="data directory to make")
    prepare(PrepareConfig(**vars(parser.parse_args())))


if __name__ == "__main__":
    raise SystemExit(exit_status("prepare_data.py", main))
