"""What of a config decides a result, and how its checks speak."""

from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from asrtrain.io.errors import UserError
from asrtrain.io.settings import (
    StageConfig,
    require,
    require_choice,
    result_settings,
    run_only,
)


@dataclass(frozen=True, kw_only=True)
class Launch:
    nproc: int = 1
    port: int = run_only(0)


@dataclass(frozen=True, kw_only=True)
class Settings(StageConfig):
    rates: list[float] = field(default_factory=lambda: [0.5])
    launch: Launch = field(default_factory=Launch)
    unseen: str = run_only("a")


def test_run_only_fields_do_not_decide_the_result_at_any_depth() -> None:
    settings = Settings(out="a", overwrite=True, launch=Launch(nproc=2, port=9))
    assert result_settings(settings) == {"rates": [0.5], "launch": {"nproc": 2}}


def test_all_others_do() -> None:
    assert result_settings(Settings(out="a", rates=[1.0])) != result_settings(Settings(out="a"))
    other = Settings(out="a", launch=Launch(nproc=2))
    assert result_settings(other) != result_settings(Settings(out="a"))


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings(out="a").out = "b"


def test_checks() -> None:
    require(True, "unsaid")
    with pytest.raises(UserError, match=r"^nj=0: expected at least 1$"):
        require(False, "nj=0: expected at least 1")
    require_choice("part", "dev", ("train", "dev"))
    with pytest.raises(UserError, match=r"^part=test: expected one of train, dev$"):
        require_choice("part", "test", ("train", "dev"))
