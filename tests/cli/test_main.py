"""The command line: what it lists, what it refuses in one line, what it runs."""

import subprocess
import sys
from pathlib import Path

import pytest

import asrtrain
from asrtrain.cli.compose import conf_directory
from asrtrain.cli.help import describe_fields
from asrtrain.cli.main import main
from asrtrain.cli.verbs import VERBS, Verb


@pytest.fixture
def copy_verb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A tiny verb `copy` in the table, and a Hydra tree that has it."""
    monkeypatch.setitem(VERBS, "copy", Verb("tests.io.stages", "CopyConfig", "copy", "copy a file"))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "copy.yaml").write_text(
        "defaults:\n  - copy_schema\n  - inner: slow\n  - _self_\n"
    )
    (tmp_path / "conf" / "copy" / "inner").mkdir(parents=True)
    for name, rate in (("slow", 0.1), ("fast", 0.9)):
        (tmp_path / "conf" / "copy" / "inner" / f"{name}.yaml").write_text(f"rate: {rate}\n")
    monkeypatch.setattr("asrtrain.cli.compose.conf_directory", lambda: tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["asrtrain"])
    return tmp_path


def run(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str, list[str]]:
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err.splitlines()


def test_listing_the_verbs_imports_nothing_slow() -> None:
    code = (
        "import sys; from asrtrain.cli.main import main; assert main([]) == 0;"
        "assert not {'torch', 'hydra', 'numpy', 'omegaconf'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in VERBS:
        assert f"  {name} " in done.stdout


def test_an_unknown_verb(capsys: pytest.CaptureFixture) -> None:
    status, _, lines = run(capsys, "trian")
    assert status == 1
    assert lines == [
        "asrtrain: error: unknown verb 'trian', did you mean 'train'?; `asrtrain` lists the verbs"
    ]


def test_a_verb_runs_with_its_groups(copy_verb: Path, capsys: pytest.CaptureFixture) -> None:
    (copy_verb / "source").write_text("x")
    assert run(capsys, "copy", "source=source", "out=out", "repeat=3", "inner=fast")[0] == 0
    assert (copy_verb / "out" / "whole").read_text() == "xxx"
    assert '"rate": 0.9' in (copy_verb / "out" / "stage.json").read_text()
    assert sorted(each.name for each in copy_verb.iterdir()) == ["conf", "out", "source"]


def test_a_sweep_runs_once_for_each_value(copy_verb: Path, capsys: pytest.CaptureFixture) -> None:
    assert run(capsys, "copy", "-m", "inner=slow,fast", "out=out_${inner.rate}")[0] == 0
    assert (copy_verb / "out_0.1").is_dir()
    assert (copy_verb / "out_0.9").is_dir()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["out=a", "repaet=2"],
            "no setting 'repaet'; did you mean 'repeat'? (`asrtrain copy --help`",
        ),
        (["out=a", "inner.rat=2"], "no setting 'inner.rat'; did you mean 'inner.rate'?"),
        (["out=a", "repeat=two"], "Error merging override repeat=two"),
        (["out=a", "inner=quick"], "Could not find 'inner/quick'; choices: fast, slow"),
        (["out=a", "repeat"], "Error parsing override 'repeat'"),
        (["out=a", "repeat=1,2"], "Ambiguous value for argument 'repeat=1,2'"),
        (["repeat=2"], "out= must be given"),
        (["out=a", "--repeat"], "no option '--repeat'; settings are written key=value"),
        (["out=a", "source=none"], "source=none: no such file or folder"),
    ],
)
def test_mistakes_are_one_line(
    copy_verb: Path, capsys: pytest.CaptureFixture, arguments: list[str], line: str
) -> None:
    status, out, lines = run(capsys, "copy", *arguments)
    assert (status, out, len(lines)) == (1, "", 1)
    assert lines[0].startswith("asrtrain: error: copy: ")
    assert line in lines[0]
    assert not (copy_verb / "a").exists()


def test_a_settings_own_checks_are_one_line(capsys: pytest.CaptureFixture) -> None:
    status, out, lines = run(capsys, "compare", "baseline=a", "arms=[b]", "out=c", "confidence=95")
    assert (status, out) == (1, "")
    assert lines == ["asrtrain: error: compare: confidence=95.0: expected between 0 and 1"]


def test_a_sweep_stops_at_the_first_mistake(copy_verb: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = ["copy", "-m", "source='',none,''", "out=a_${source}"]
    status, _, lines = run(capsys, *arguments)
    assert status == 1
    assert sum("error" in line for line in lines) == 1


def test_an_interrupt_is_130(
    copy_verb: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.io.stages.time.sleep", interrupted)
    status, _, lines = run(capsys, "copy", "out=a")
    assert status == 130
    assert lines[-1] == "asrtrain: copy: interrupted"
    assert not (copy_verb / "a").exists()


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_every_setting(name: str, capsys: pytest.CaptureFixture) -> None:
    status, out, _ = run(capsys, name, "--help")
    assert status == 0
    config_class, function = VERBS[name].load()
    assert function.__doc__
    for key, _, _, meaning in describe_fields(config_class):
        assert f"  {key}=" in out
        assert meaning, f"{name}: {key} has no docstring"


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_its_file_in_the_tree(name: str) -> None:
    assert f"{name}_schema" in (conf_directory() / f"{name}.yaml").read_text()
    status = main([name, "--cfg", "job"])
    assert status == 0


def test_every_file_of_the_tree_belongs_to_a_verb() -> None:
    assert {path.stem for path in conf_directory().glob("*.yaml")} == set(VERBS)
    assert {path.name for path in conf_directory().glob("*/")} <= set(VERBS)


def test_the_version(capsys: pytest.CaptureFixture) -> None:
    assert run(capsys, "--version") == (0, f"asrtrain {asrtrain.__version__}\n", [])


def test_output_that_nobody_reads_to_its_end_is_no_error() -> None:
    command = f"{sys.executable} -m asrtrain train --help | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
