"""Kaldi's text tables: a line is a key, a space, and the rest; keys are in byte order."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from asrtrain.io.errors import UserError


def read_table(path: Path) -> dict[str, str]:
    """Read `key rest` lines in the order of the file; a rest may be empty.

    Raises UserError if the file is missing, empty or not UTF-8, if two lines have the same key, or
    if keys are not in byte order.
    """
    table: dict[str, str] = {}
    lines: dict[str, int] = {}
    previous = ""
    for number, line in enumerate(read_lines(path), start=1):
        key, _, rest = line.strip().partition(" ")
        if not key:
            raise UserError(f"{path}, line {number}: empty; expected `key value`, remove the line")
        if key in table:
            raise UserError(
                f"{path}, lines {lines[key]} and {number}: both have the key {key}; remove one"
            )
        if key.encode() < previous.encode():
            raise UserError(
                f"{path}, line {number}: {key} comes after {previous}, not in byte order; "
                f"sort it with `LC_ALL=C sort -o {path} {path}`"
            )
        table[key], lines[key], previous = rest.strip(), number, key
    return table


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file that must exist and not be empty."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}; convert it") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    if not text.strip():
        raise UserError(f"{path}: is empty")
    return text.splitlines()


def write_table(path: Path, table: Mapping[str, str]) -> None:
    """Write `key rest` lines in byte order of the keys."""
    keys = sorted(table, key=str.encode)
    write_lines(path, (f"{key} {table[key]}".rstrip() for key in keys))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8 text."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
