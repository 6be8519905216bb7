"""n-gram models in the ARPA format: base-10 logarithms of probabilities and back-off weights."""

import math
from collections.abc import Iterator
from pathlib import Path

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_lines, write_lines
from asrtrain.lang.ngram import Gram, NgramModel
from asrtrain.lang.symbols import SENTENCE_START

IMPOSSIBLE = -99.0
"""Log probability that stands for 0, as of the sentence start."""


def write_arpa(path: Path, model: NgramModel) -> None:
    """Write `model`, n-grams in byte order."""
    write_lines(path, _lines(model))


def _lines(model: NgramModel) -> Iterator[str]:
    by_length: dict[int, list[Gram]] = {length: [] for length in range(1, model.order + 1)}
    by_length[1].append((SENTENCE_START,))
    for gram in model.probabilities:
        by_length[len(gram)].append(gram)
    yield "\\data\\"
    yield from (f"ngram {length}={len(grams)}" for length, grams in by_length.items())
    for length, grams in by_length.items():
        yield ""
        yield f"\\{length}-grams:"
        for gram in sorted(grams):
            probability = model.probabilities.get(gram)
            shown = math.log10(probability) if probability else IMPOSSIBLE
            weight = model.backoffs.get(gram)
            tail = f"\t{math.log10(weight):.7f}" if weight and length < model.order else ""
            yield f"{shown:.7f}\t{' '.join(gram)}{tail}"
    yield ""
    yield "\\end\\"


def read_arpa(path: Path) -> NgramModel:
    """Read a model. Raises UserError, naming the line, if the file is not in the ARPA format."""
    probabilities: dict[Gram, float] = {}
    backoffs: dict[Gram, float] = {}
    length, order = 0, 0
    for place, line in enumerate(read_lines(path), start=1):
        if line.startswith("\\") and line.endswith("-grams:"):
            length = _integer(path, place, line[1:-7])
            order = max(order, length)
        elif length and line.strip() and line != "\\end\\":
            fields = line.split()
            if len(fields) not in (length + 1, length + 2):
                raise UserError(f"{path}, line {place}: expected a {length}-gram, found: {line}")
            gram = tuple(fields[1 : length + 1])
            logarithm = _real(path, place, fields[0])
            if logarithm > IMPOSSIBLE:
                probabilities[gram] = 10**logarithm
            if len(fields) == length + 2:
                backoffs[gram] = 10 ** _real(path, place, fields[-1])
    if not order:
        raise UserError(f"{path}: no n-grams there; expected an ARPA file")
    return NgramModel(order, probabilities, backoffs)


def _integer(path: Path, place: int, text: str) -> int:
    if not text.isdigit():
        raise UserError(f"{path}, line {place}: expected a section such as \\2-grams:")
    return int(text)


def _real(path: Path, place: int, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{path}, line {place}: expected a number, found {text}") from None
