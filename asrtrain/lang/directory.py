"""Reading a lang directory, and FSTs: a missing or damaged file is a user's mistake."""

from pathlib import Path

import kaldifst

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_lines


def read_topo(lang: Path) -> str:
    """The topology, in Kaldi's text form. Raises UserError if it is missing or something else."""
    text = "\n".join(read_lines(lang / "topo")).strip()
    if not (text.startswith("<Topology>") and text.endswith("</Topology>")):
        raise UserError(f"{lang / 'topo'}: expected <Topology> ... </Topology>; make it again")
    return f"{text}\n"


def read_phone_set(lang: Path, name: str) -> list[int]:
    """The integers in phones/NAME.int. Raises UserError if a line is something else."""
    path = lang / "phones" / f"{name}.int"
    fields = [field for line in read_lines(path) for field in line.split()]
    wrong = next((field for field in fields if not field.isdigit()), None)
    if wrong is not None:
        raise UserError(f"{path}: expected integers, found {wrong}; make the lang directory again")
    return [int(field) for field in fields]


def read_unk(lang: Path) -> str:
    """The word for those that the lexicon lacks; empty if there is none."""
    path = lang / "oov.txt"
    if not path.is_file():
        raise UserError(f"{path}: no such file; make the lang directory with `asrtrain lang`")
    return path.read_text(encoding="utf-8").strip()


def read_fst(path: Path, maker: str) -> kaldifst.StdVectorFst:
    """An FST over tropical weights. Raises UserError, naming the verb `maker`, if it is not one."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with `asrtrain {maker} out={path.parent}`")
    # The library returns None for a bad header and throws for what follows it.
    try:
        fst = kaldifst.StdVectorFst.read(str(path))
    except RuntimeError:
        fst = None
    if fst is None:
        raise UserError(f"{path}: not an FST or truncated; make it again with `asrtrain {maker}`")
    return fst
