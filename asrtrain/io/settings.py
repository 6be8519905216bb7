"""Base of every verb's typed config, and what of a config decides a stage's result."""

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from omegaconf import MISSING

from asrtrain.io.errors import UserError


def run_only(default: Any) -> Any:
    """A config field that says how a stage runs, not what it computes (jobs, paths, time-outs).

    A complete output is kept when only such fields differ.
    """
    return field(default=default, metadata={"run_only": True})


@dataclass(frozen=True, kw_only=True)
class StageConfig:
    """Fields that every verb with an output directory has."""

    out: str = run_only(MISSING)
    """Output directory. It appears under this name only when it is complete."""
    overwrite: bool = run_only(False)
    """Make the output again, even if it is complete or was made with other settings."""


def result_settings(config: Any) -> dict[str, Any]:
    """The settings in `config` that decide the result, as plain types; nested configs as dicts."""
    settings = {}
    for each in fields(config):
        if each.metadata.get("run_only"):
            continue
        value = getattr(config, each.name)
        settings[each.name] = result_settings(value) if is_dataclass(value) else value
    return settings


def require(condition: bool, message: str) -> None:
    """Raise UserError(message) unless `condition`: for the checks in a config's `__post_init__`."""
    if not condition:
        raise UserError(message)


def require_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise UserError unless `value` is one of `choices`, naming the key and all choices."""
    require(value in choices, f"{key}={value}: expected one of {', '.join(choices)}")
