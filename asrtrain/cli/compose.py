"""From overrides to a verb's typed config, with Hydra; Hydra's errors become one line."""

import difflib
import os
import re
import sys
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import asrtrain
from asrtrain.cli.verbs import VERBS
from asrtrain.io.errors import UserError

# Hydra would make time-stamped folders, change directory and set up logging of its own; here the
# verb's `out` says where results go.
QUIET_HYDRA = [
    "hydra.run.dir=.",
    "hydra.sweep.dir=.",
    "hydra.sweep.subdir=.",
    "hydra.output_subdir=null",
    "hydra/job_logging=none",
    "hydra/hydra_logging=none",
]

HYDRA_FLAGS = (
    *("-m", "--multirun", "-c", "--cfg", "-i", "--info", "-p", "--package", "--resolve"),
    *("-cd", "--config-dir", "--hydra-help"),
)


def conf_directory() -> Path:
    """The Hydra tree: inside the package once installed, beside it in a checkout."""
    package = Path(asrtrain.__file__).parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def run_verb(name: str, overrides: list[str]) -> None:
    """Compose the config of verb `name` from `overrides` and call the verb with it.

    Hydra's own flags (`-m`, `--cfg job`, `--info`) work. Raises UserError for an override that
    does not fit, naming it.
    """
    config_class, function = VERBS[name].load()
    register(name, config_class)

    failures: list[BaseException] = []

    def task(tree: DictConfig) -> None:
        # Hydra prints a line of its own for what a task raises, so raise after it has returned.
        if not failures:
            try:
                function(typed(tree))
            except BaseException as error:
                failures.append(error)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises instead of printing and exiting
    sys.argv = [f"asrtrain {name}", *_with_quiet_hydra(name, overrides)]
    main = hydra.main(config_path=str(conf_directory()), config_name=name, version_base="1.3")(task)
    try:
        main()
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_one_line(error, name)) from error
    if failures:
        raise failures[0]


def _with_quiet_hydra(name: str, arguments: list[str]) -> list[str]:
    """Insert our settings of Hydra next to the first override: it takes one run of overrides."""
    for each in arguments:
        if each.startswith("-") and each.split("=")[0] not in HYDRA_FLAGS:
            raise UserError(
                f"no option '{each}'; settings are written key=value (`asrtrain {name} --help`)"
            )
    groups = conf_directory() / name
    # A verb's groups are seen by that verb alone: `model` is a group of train, a path for decode.
    search_path = [f"hydra.searchpath=[file://{groups}]"] if groups.is_dir() else []
    places = [
        place for place, each in enumerate(arguments) if "=" in each and not each.startswith("-")
    ]
    place = places[0] if places else 0
    return [*arguments[:place], *QUIET_HYDRA, *search_path, *arguments[place:]]


def register(name: str, config_class: type) -> None:
    """Make the typed config known to Hydra as `VERB_schema`, which `conf/VERB.yaml` builds on."""
    schema = OmegaConf.structured(config_class)
    _make_writable(schema)
    ConfigStore.instance().store(name=f"{name}_schema", node=schema)


def typed(tree: DictConfig) -> Any:
    """The frozen dataclass that `tree` describes; its own checks run here."""
    missing = sorted(OmegaConf.missing_keys(tree))
    if missing:
        raise UserError(f"{', '.join(f'{key}=' for key in missing)} must be given")
    try:
        return OmegaConf.to_object(tree)
    except ValueError as error:  # from a config of the onebit room, which has no UserError
        raise UserError(str(error)) from error


def _make_writable(node: DictConfig) -> None:
    """Let overrides be merged into a frozen dataclass's schema, which OmegaConf makes read-only."""
    OmegaConf.set_readonly(node, None)
    for key in node:
        child = node._get_node(key)
        if isinstance(child, DictConfig):
            _make_writable(child)


def _one_line(error: Exception, name: str) -> str:
    unknown = re.search(r"Could not override '([^']+)'", str(error))
    if unknown:
        key = unknown[1]
        close = difflib.get_close_matches(key, _keys(name), n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        return f"no setting '{key}'{hint} (`asrtrain {name} --help` lists them)"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    choices = [line for line in lines[2:] if not re.match(r"Config search path|provider=", line)]
    if len(lines) > 1 and lines[1].startswith("Available options"):
        return f"{lines[0]}; choices: {', '.join(choices)}"
    cause = str(error.__cause__).splitlines()[0] if error.__cause__ else ""
    return f"{lines[0]} {cause}; see `asrtrain {name} --help`"


def _keys(name: str) -> list[str]:
    config_class, _ = VERBS[name].load()
    keys = []

    def walk(node: Any, prefix: str) -> None:
        for key in node:
            keys.append(f"{prefix}{key}")
            child = node._get_node(key)
            if isinstance(child, DictConfig):
                walk(child, f"{prefix}{key}.")

    walk(OmegaConf.structured(config_class), "")
    return keys
