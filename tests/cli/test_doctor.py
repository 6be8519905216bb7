"""`doctor` finds this installation sound, and says what to do about one that is not."""

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
