"""Symbol tables: names and the integers that stand for them in FSTs, in OpenFst's text form."""

from collections.abc import Sequence
from pathlib import Path

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_lines, write_lines

EPSILON = "<eps>"
WORD_DISAMBIG = "#0"
"""Stands for epsilon on the back-off arcs of G.fst."""
SENTENCE_START, SENTENCE_END = "<s>", "</s>"


def number(names: Sequence[str]) -> dict[str, int]:
    """Integers for `names` in order, from 1; 0 is epsilon."""
    return {name: place for place, name in enumerate([EPSILON, *names])}


def write_symbols(path: Path, symbols: dict[str, int]) -> None:
    """Write `name integer` lines in the order of the integers."""
    write_lines(path, (f"{name} {value}" for name, value in symbols.items()))


def read_symbols(path: Path) -> dict[str, int]:
    """Read what `write_symbols` or Kaldi wrote. Raises UserError if a line is something else."""
    symbols = {}
    for place, line in enumerate(read_lines(path), start=1):
        name, _, value = line.strip().partition(" ")
        if not value.strip().isdigit():
            raise UserError(f"{path}, line {place}: expected `symbol integer`, found: {line}")
        symbols[name] = int(value)
    return symbols
