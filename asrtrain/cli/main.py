"""`asrtrain VERB [key=value ...]`: composes the verb's config and calls its function.

Exit status: 0 done, 1 a user's mistake (one line on standard error), 130 interrupted.
"""

import difflib
import os
import sys
from collections.abc import Callable

from asrtrain import __version__
from asrtrain.cli.verbs import VERBS

USAGE = """usage: asrtrain VERB [key=value ...]
       asrtrain VERB --help       the verb's settings, their defaults and meaning
       asrtrain VERB -m key=a,b   one run for each value

verbs:"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own); return the exit status."""
    try:
        return _dispatch(sys.argv[1:] if argv is None else argv)
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE)
        width = max(map(len, VERBS))
        for name, verb in VERBS.items():
            print(f"  {name:{width}}  {verb.summary}")
        return 0
    if arguments[0] == "--version":
        print(f"asrtrain {__version__}")
        return 0
    name, *overrides = arguments
    if name not in VERBS:
        return _fail(f"unknown verb '{name}'{_suggestion(name)}; `asrtrain` lists the verbs")
    return exit_status(name, lambda: _run(name, overrides))


def exit_status(name: str, command: Callable[[], None]) -> int:
    """Run `command`; a UserError or Ctrl-C becomes one line on standard error and a status."""
    from asrtrain.io.errors import UserError
    from asrtrain.io.log import log_to_terminal

    log_to_terminal()
    try:
        command()
    except UserError as error:
        return _fail(f"{name}: {error}")
    except KeyboardInterrupt:
        print(f"asrtrain: {name}: interrupted", file=sys.stderr)
        return 130
    return 0


def _run(name: str, overrides: list[str]) -> None:
    if "-h" in overrides or "--help" in overrides:
        from asrtrain.cli.help import print_help

        print_help(name)
    else:
        from asrtrain.cli.compose import run_verb

        run_verb(name, overrides)


def _fail(message: str) -> int:
    print(f"asrtrain: error: {' '.join(message.split())}", file=sys.stderr)
    return 1


def _suggestion(name: str) -> str:
    close = difflib.get_close_matches(name, VERBS, n=1)
    return f", did you mean '{close[0]}'?" if close else ""
