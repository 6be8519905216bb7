"""A stage: one verb that makes one output directory, whole or not at all, and once.

A complete output holds `stage.json`: the verb, the settings that decide its result, a fingerprint
of each input, and an id that stages further down the chain use as the fingerprint of this one.

A long stage may leave checkpoints while it is not complete; started again, it goes on from them.
"""

import fcntl
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from asrtrain import __version__
from asrtrain.io.errors import UserError
from asrtrain.io.json_file import read_json
from asrtrain.io.log import log_file
from asrtrain.io.settings import StageConfig, result_settings

RECORD = "stage.json"
UNFINISHED = "unfinished.json"
CHECKPOINTS = "checkpoints"
"""Folder within an unfinished output of what a resumable stage goes on from."""
COUNTS = "metrics.jsonl"
LOG = "log"

log = logging.getLogger(__name__)
C = TypeVar("C", bound=StageConfig)


def stage(
    verb: str,
    inputs: tuple[str, ...] = (),
    resumable: bool = False,
    may_differ: tuple[str, ...] = (),
) -> Callable[[Callable[[C, Path], None]], Callable[[C], bool]]:
    """Turn `make(config, out)` into a verb `run(config)` that makes `config.out` once.

    `inputs` names the config's fields that hold input paths: a string, or a list of strings; an
    empty string is no input. `make` writes into a folder that is renamed to `config.out` when it
    returns, and removed when it raises. `run` returns False when the output was complete already.

    A `resumable` stage finds in its folder what it had written, if there are `CHECKPOINTS` among
    it; `may_differ` names settings (`group.key`) that need not be those of the unfinished output.

    Raises UserError when an input is missing, when the output was made, or left unfinished, with
    other settings (unless `overwrite`), or when another process is making it.
    """

    def decorate(make: Callable[[C, Path], None]) -> Callable[[C], bool]:
        @wraps(make)
        def run(config: C) -> bool:
            record = describe(verb, inputs, config)
            if is_complete(config, record):
                log.info("%s: %s is complete, skipped", verb, config.out)
                return False
            log.info("%s: making %s", verb, config.out)
            begin = time.monotonic()

            def keep(partial: Path) -> bool:
                return resumable and _goes_on(partial, record, may_differ, config.overwrite)

            with atomic_directory(Path(config.out), keep) as out, log_file(out / LOG):
                if resumable:
                    (out / UNFINISHED).write_text(json.dumps(record, indent=1) + "\n")
                make(config, out)
                shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
                (out / UNFINISHED).unlink(missing_ok=True)
                record["seconds"] = round(time.monotonic() - begin, 3)
                (out / RECORD).write_text(json.dumps(record, indent=1) + "\n")
            log.info("%s: made %s in %.1f s", verb, config.out, record["seconds"])
            return True

        return run

    return decorate


def describe(verb: str, inputs: tuple[str, ...], config: StageConfig) -> dict[str, Any]:
    """The record of a stage before it runs: settings, input fingerprints and the id they give."""
    record = {
        "verb": verb,
        "version": __version__,
        "settings": result_settings(config),
        "inputs": {field: _fingerprints(field, getattr(config, field)) for field in inputs},
    }
    return record | {"id": _digest(record)}


def is_complete(config: StageConfig, record: dict[str, Any]) -> bool:
    """Whether `config.out` is complete and is what `record` describes.

    An output whose inputs have changed is stale and counts as not complete, as does any if
    `overwrite` is set. Raises UserError when it was made with other settings, or is something else
    than an output of this verb: that is never replaced.
    """
    out, verb = Path(config.out), record["verb"]
    if not out.exists():
        return False
    if not (out / RECORD).is_file():
        raise UserError(
            f"{out}: exists but has no {RECORD}, so it is not a finished output of "
            f"{verb}; move it away or give another out="
        )
    made = _read_record(out / RECORD)
    if made["verb"] != verb:
        raise UserError(
            f"{out}: was made by {made['verb']}, not {verb}; move it away or give another out="
        )
    if config.overwrite:
        return False
    differing = differing_settings(made["settings"], record["settings"])
    if differing:
        raise UserError(
            f"{out}: was made with other settings ({'; '.join(differing)}); "
            "give another out=, remove it, or say overwrite=true"
        )
    stale = [
        field for field in record["inputs"] if made["inputs"].get(field) != record["inputs"][field]
    ]
    if stale:
        log.info("%s: %s changed since %s was made", verb, ", ".join(stale), out)
    return not stale


def differing_settings(made: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    """`key: made, now wanted` for every leaf that differs between two settings trees."""
    lines = []
    for key in sorted(made.keys() | wanted.keys()):
        old, new = made.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            lines += differing_settings(old, new, f"{prefix}{key}.")
        elif old != new:
            lines.append(f"{prefix}{key}: {old}, now {new}")
    return lines


def write_counts(out: Path, **counts: Any) -> None:
    """Append one line of counts to the stage's `metrics.jsonl`."""
    with open(out / COUNTS, "a") as file:
        file.write(json.dumps(counts) + "\n")


def partial_directory(final: Path) -> Path:
    """Where the output `final` is written before it is complete."""
    return final.parent / f".{final.name}.partial"


@contextmanager
def atomic_directory(final: Path, keep: Callable[[Path], bool] = lambda _: False) -> Iterator[Path]:
    """A folder beside `final` to write into, renamed to `final` on success.

    Unless `keep(folder)`, it is emptied at the start and removed after an error. Raises UserError
    if it cannot be made, or if another process has it.
    """
    partial = partial_directory(final)
    try:
        partial.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{final}: cannot be made here: {error.strerror}; give another out="
        ) from error
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        _lock(descriptor, partial, final)
        if not keep(partial):
            for left_over in partial.iterdir():
                shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()
        try:
            yield partial
        except BaseException:
            if not keep(partial):
                shutil.rmtree(partial, ignore_errors=True)
            raise
        old = final.parent / f".{final.name}.old"
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            final.rename(old)
        partial.rename(final)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(descriptor)


def _goes_on(
    partial: Path, record: dict[str, Any], may_differ: tuple[str, ...], overwrite: bool
) -> bool:
    """Whether the unfinished output has checkpoints, and is that of `record`."""
    checkpoints, made_file = partial / CHECKPOINTS, partial / UNFINISHED
    if not (made_file.is_file() and checkpoints.is_dir() and any(checkpoints.glob("[!.]*"))):
        return False
    made = _read_record(made_file)
    differing = [
        line
        for line in differing_settings(made["settings"], record["settings"])
        if line.split(":")[0] not in may_differ
    ]
    if made["inputs"] != record["inputs"]:
        differing.append("inputs changed")
    if differing and not overwrite:
        raise UserError(
            f"{partial}: an unfinished output of other settings ({'; '.join(differing)}); "
            "give another out=, remove it, or say overwrite=true"
        )
    return not differing


def _lock(descriptor: int, partial: Path, final: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(partial)):
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    raise UserError(f"{final}: another process is making it; wait for it, or stop it")


def _read_record(path: Path) -> dict[str, Any]:
    keys = ("verb", "settings", "inputs", "id")
    return read_json(path, dict, f"remove {path.parent} and make it again", keys)


def _fingerprints(field: str, value: str | list[str]) -> Any:
    if isinstance(value, str):
        return _fingerprint(field, Path(value)) if value else ""
    return [_fingerprints(field, each) for each in value]


def _fingerprint(field: str, path: Path) -> str:
    """The id of a stage's output; else a digest of a file, or of a foreign folder's listing."""
    if (path / RECORD).is_file():
        return _read_record(path / RECORD)["id"]
    if path.is_file():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.is_file())
        return _digest(
            [(each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in files]
        )
    raise UserError(f"{field}={path}: no such file or folder; check the path")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
