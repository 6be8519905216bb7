"""`asrtrain VERB --help`: each setting with type, default and meaning, read from the config."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from asrtrain.cli.compose import conf_directory
from asrtrain.cli.verbs import VERBS

FOOTER = """Lists are written key=[a,b]. More: -m (one run for each value of key=a,b),
--cfg job (print the settings without running), --info (where they come from)."""


def print_help(name: str) -> None:
    """Print the help page of verb `name`."""
    config_class, function = VERBS[name].load()
    print(f"usage: asrtrain {name} [key=value ...]\n")
    print(f"{inspect.getdoc(function) or VERBS[name].summary}\n")
    print("settings:")
    for key, kind, default, meaning in describe_fields(config_class):
        print(f"  {key}={default}  ({kind})")
        print(textwrap.indent(textwrap.fill(meaning, 94), "      "))
    groups = list(describe_groups(name))
    if groups:
        print("\nchoices (files of settings):")
        for group, choices in groups:
            print(f"  {group}={'|'.join(choices)}")
    print(f"\n{FOOTER}")


def describe_fields(config_class: type, prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield key, type, default and meaning of every leaf setting of a config class."""
    meanings = _field_docstrings(config_class)
    hints = get_type_hints(config_class)
    for each in fields(config_class):
        kind = hints[each.name]
        if is_dataclass(kind):
            yield from describe_fields(kind, f"{prefix}{each.name}.")
            continue
        default = each.default if each.default_factory is MISSING else each.default_factory()
        name = getattr(kind, "__name__", str(kind)) if isinstance(kind, type) else str(kind)
        yield f"{prefix}{each.name}", name, _shown(default), meanings.get(each.name, "")


def describe_groups(name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each Hydra group of the verb `name`, with its choices."""
    for folder in sorted((conf_directory() / name).glob("*/")):
        yield folder.name, sorted(file.stem for file in folder.glob("*.yaml"))


def _shown(default: Any) -> str:
    if default in (MISSING, "???"):
        return "REQUIRED"
    return f"[{','.join(map(str, default))}]" if isinstance(default, list) else str(default)


def _field_docstrings(config_class: type) -> dict[str, str]:
    """The string under each field, which Python itself does not keep."""
    meanings: dict[str, str] = {}
    for base in reversed(config_class.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body
        for field, note in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
                meanings[field.target.id] = " ".join(str(ast.literal_eval(note.value)).split())
    return meanings
