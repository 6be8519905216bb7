"""The option parser that every run.sh sources."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = f"""set -euo pipefail
nj=2 stop_stage=9
usage="usage: me [--nj N]"
. {ROOT}/recipes/utils/parse_options.sh
echo "$nj|$stop_stage|${{overrides[*]}}|${{positional[*]}}"
"""


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", "-c", SCRIPT, "me", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "2|9||"),
        (["--nj", "4", "a.b=c d", "place"], "4|9|a.b=c d|place"),
        (["--stop-stage", "3", "+experiment=x"], "2|3|+experiment=x|"),
        (["--nj", "$(touch trap)"], "$(touch trap)|9||"),
    ],
)
def test_what_is_set(arguments: list[str], printed: str) -> None:
    assert run(*arguments).stdout == printed + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--njj", "4"], "me: error: no option '--njj'; --help lists them"),
        (["--nj"], "me: error: option '--nj' needs a value"),
        (["--nj;x", "4"], "me: error: no option '--nj;x'; --help lists them"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message + "\n")


def test_help() -> None:
    done = run("--help")
    assert (done.returncode, done.stdout) == (0, "usage: me [--nj N]\n")


def an4(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "egs/an4/run.sh", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--data DIR must be given"),
        (["--data", "/nowhere"], "--data /nowhere: no folder etc/ there; expected AN4"),
        (["--data"], "option '--data' needs a value"),
        (["--date", "x"], "no option '--date'"),
        (["--data", "/", "stray"], "'stray' is no option and no key=value"),
    ],
)
def test_the_an4_example_refuses_in_one_line(arguments: list[str], message: str) -> None:
    done = an4(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert message in done.stderr


def test_the_an4_example_explains_itself() -> None:
    done = an4("--help")
    assert done.returncode == 0
    for option in (
        "--data",
        "--work",
        "--stage",
        "--stop-stage",
        "--nj",
        "--speakers",
        "key=value",
    ):
        assert option in done.stdout
