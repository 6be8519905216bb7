"""Rooms import only rooms below them; files stay small."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_import_contracts() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "3 kept, 0 broken" in done.stdout


def test_no_file_hides_a_room() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in ROOT.glob("asrtrain/**/*.py")}
    assert [path for path, length in lengths.items() if length > 400] == []
