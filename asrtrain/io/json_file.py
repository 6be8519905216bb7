"""JSON files that a stage wrote, read with the checks that a file from outside deserves."""

import json
from pathlib import Path
from typing import Any, TypeVar

from asrtrain.io.errors import UserError

T = TypeVar("T", dict[str, Any], list[Any])


def read_json(path: Path, kind: type[T], remedy: str, keys: tuple[str, ...] = ()) -> T:
    """The object or list (`kind` is dict or list) in `path`, an object with at least `keys`.

    Raises UserError, which ends with `remedy`, if the file is missing or is something else.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {remedy}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; {remedy}") from error
    except ValueError as error:  # not UTF-8, or not JSON
        raise UserError(f"{path}: cannot be read as JSON ({error}); {remedy}") from error
    if not isinstance(held, kind):
        wanted = "an object" if kind is dict else "a list"
        raise UserError(f"{path}: expected {wanted}, found {type(held).__name__}; {remedy}")
    missing = [key for key in keys if key not in held]
    if missing:
        raise UserError(f"{path}: lacks {', '.join(missing)}; {remedy}")
    return held
