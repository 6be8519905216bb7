"""The example of docs/ddp.md runs as it stands, and a second run goes on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.onebit.processes import free_port

ROOT = Path(__file__).parents[2]


def run(script: Path) -> list[float]:
    """Each rank's last loss."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"),
            *(f"--master-port={free_port()}", script.name),
        ],
        cwd=script.parent,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return [float(each) for each in re.findall(r"loss (\S+),", done.stdout)]


@pytest.mark.slow
def test_the_example_learns_and_goes_on(tmp_path: Path) -> None:
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/ddp.md").read_text(), re.DOTALL)
    script = tmp_path / "train.py"
    script.write_text(block)
    first, second = run(script), run(script)
    assert len(first) == len(second) == 2
    assert sum(second) < 0.8 * sum(first) < 0.8  # log(2) for each rank where nothing is learned
    saved = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2)]
    one, other = (each["model"] for each in saved)
    assert all(torch.equal(one[name], other[name]) for name in one)
