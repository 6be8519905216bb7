"""A tiny verb for tests, in a module that other processes can import."""

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from asrtrain.io.settings import StageConfig, run_only
from asrtrain.io.stage import stage


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Nested settings."""

    rate: float = 0.5
    """A rate."""


@dataclass(frozen=True, kw_only=True)
class CopyConfig(StageConfig):
    """Settings of the tiny verb."""

    source: str = ""
    """File to copy."""
    repeat: int = 1
    """How often."""
    inner: Inner = field(default_factory=Inner)
    """Nested."""
    nj: int = run_only(1)
    """Processes."""
    wait: float = run_only(0.0)
    """Seconds to sleep when half done."""


@stage("copy", inputs=("source",))
def copy(config: CopyConfig, out: Path) -> None:
    """Copy a file some times."""
    text = Path(config.source).read_text() if config.source else ""
    (out / "half").write_text(text)
    time.sleep(config.wait)
    (out / "whole").write_text(text * config.repeat)
    (out / "folder").mkdir()


if __name__ == "__main__":
    copy(CopyConfig(out=sys.argv[1], wait=float(sys.argv[2])))
