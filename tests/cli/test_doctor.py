"""`doctor` finds this installation sound, and says what to do about one that is not."""

import tomllib
from pathlib import Path

import pytest

from asrtrain.cli import doctor as room
from asrtrain.cli.doctor import DoctorConfig, doctor
from asrtrain.io.errors import UserError


def test_this_installation_is_sound(capsys: pytest.CaptureFixture) -> None:
    doctor(DoctorConfig())
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok") for line in lines)
    assert any("kaldi bindings together" in line for line in lines)


def test_another_version_of_the_bindings(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(room.KALDI_SET, "kaldifst", "9.9")
    with pytest.raises(UserError, match=r"1 problem\(s\): kaldifst"):
        doctor(DoctorConfig())
    assert "pip install kaldifst==9.9" in capsys.readouterr().out


def test_the_bindings_are_those_of_the_project_file() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    pinned = dict(each.split("==") for each in project["dependencies"] if "==" in each)
    assert pinned == room.KALDI_SET


def test_what_is_missing(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "OTHERS", ("no-such-package",))
    monkeypatch.setattr("torch.distributed.is_gloo_available", lambda: False)
    monkeypatch.setenv("PATH", "/nonexistent")  # the optional programs are no problem
    with pytest.raises(UserError, match=r"2 problem\(s\): no-such-package, torch.distributed"):
        doctor(DoctorConfig())
    lines = capsys.readouterr().out.splitlines()
    problems = [" ".join(line.split()) for line in lines if line.startswith("problem")]
    assert problems == [
        "problem no-such-package missing: run tools/setup.sh",
        "problem torch.distributed gloo is missing from this build of torch: run tools/setup.sh",
    ]
    assert any(line.startswith("ok") and "sclite" in line for line in lines)


def test_another_python(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", (3, 10, 0))
    with pytest.raises(UserError, match="python"):
        doctor(DoctorConfig())
    assert "use Python 3.11 to 3.13" in capsys.readouterr().out
