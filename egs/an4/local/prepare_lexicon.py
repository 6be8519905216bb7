#!/usr/bin/env python3
"""Makes Kaldi's dict directory from AN4's etc/an4.dic and etc/an4.filler.

`WORD(2)` in the dictionary is a second pronunciation of WORD; the fillers stand for silence, SIL.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from asrtrain.cli.main import exit_status
from asrtrain.io.errors import UserError
from asrtrain.io.settings import StageConfig
from asrtrain.io.stage import stage
from asrtrain.io.tables import read_lines, write_lines


@dataclass(frozen=True, kw_only=True)
class LexiconConfig(StageConfig):
    """Settings of this script."""

    data: str
    """AN4 as distributed."""

    @property
    def lists(self) -> list[str]:
        """The files that decide the result."""
        return [f"{self.data}/etc/an4.dic", f"{self.data}/etc/an4.filler"]


@stage("an4-prepare-lexicon", inputs=("lists",))
def prepare(config: LexiconConfig, out: Path) -> None:
    """Write lexicon.txt, silence_phones.txt, nonsilence_phones.txt, optional_silence.txt."""
    dictionary, fillers = (Path(each) for each in config.lists)
    entries = sorted(set(read_entries(dictionary)))
    silences = sorted({phones for _, phones in read_entries(fillers)})
    phones = sorted({phone for _, pronunciation in entries for phone in pronunciation.split()})
    write_lines(out / "lexicon.txt", (f"{word} {pronunciation}" for word, pronunciation in entries))
    write_lines(out / "silence_phones.txt", silences)
    write_lines(out / "optional_silence.txt", silences[:1])
    write_lines(out / "nonsilence_phones.txt", phones)


def read_entries(path: Path) -> list[tuple[str, str]]:
    """(word, phones) of each line, numbers of further pronunciations removed."""
    entries = []
    for number, line in enumerate(read_lines(path), start=1):
        word, *phones = line.split()
        if not phones:
            raise UserError(f"{path}, line {number}: {word} has no pronunciation")
        entries.append((re.sub(r"\(\d+\)$", "", word), " ".join(phones)))
    return entries


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="AN4 as distributed")
    parser.add_argument("--out", required=True, help="dict directory to make")
    prepare(LexiconConfig(**vars(parser.parse_args())))


if __name__ == "__main__":
    raise SystemExit(exit_status("prepare_lexicon.py", main))
