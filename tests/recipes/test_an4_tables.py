"""The writers of AN4's tables, and the recipe of CNTK's test on a few frames."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asrtrain.score.wer import file_digest

AN4 = Path(os.environ.get("ASRTRAIN_TEST_DATA", "/nonexistent")) / "an4"
WAYS = ("one", "four", "double", "warm")
LOCAL = Path(__file__).parents[2] / "egs" / "an4" / "local"


def run(*command: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write_epochs(training: Path, losses: list[float]) -> None:
    training.mkdir(parents=True)
    epochs = [
        {"epoch": number, "train_loss": loss, "train_frame_accuracy": 0.75}
        for number, loss in enumerate(losses, start=1)
    ]
    (training / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in epochs))


def test_arms_are_compared_seed_by_seed(tmp_path: Path) -> None:
    """The arm is 1 % and 3 % above the baseline: on average 2 %, and Student's t for one degree of
    freedom is 12.706, so the half-width is 12.706 x 1."""
    for seed, base, own in (("1", 1.0, 1.01), ("2", 2.0, 2.06)):
        write_epochs(tmp_path / "float32" / f"seed{seed}", [3.0, base])
        write_epochs(tmp_path / "onebit" / f"seed{seed}", [3.0, own])
    script = [sys.executable, LOCAL / "cntk_table.py", "--exp", tmp_path]
    done = run(*script, "--arms", "float32", "onebit", "--seeds", "1", "2")
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("| onebit | 3.0000 ± 0.0000, 25.00 ± 0.00 % |")
    assert last.endswith("| +2.00 ± 12.71 % |")


def test_an_arm_that_is_missing_is_named(tmp_path: Path) -> None:
    script = [sys.executable, LOCAL / "cntk_table.py", "--exp", tmp_path]
    done = run(*script, "--arms", "float32", "--seeds", "1")
    assert done.returncode == 1
    assert f"{tmp_path}/float32/seed1/metrics.jsonl: No such file" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def write_arm(directory: Path, errors: int, accuracy: float) -> None:
    """An arm that has made so many errors in 10 words."""
    figures = dict.fromkeys(
        ("workers", "epochs", "steps", "dev_frame_accuracy", "wire_bytes_per_step"), 1
    )
    figures |= {"seconds": 1.0, "frames_per_second": 1.0, "train_frame_accuracy": accuracy}
    directory.mkdir(parents=True)
    (directory / "summary.json").write_text(json.dumps(figures))
    counts = {"substitutions": errors, "deletions": 0, "insertions": 0, "words": 10}
    choice = ""
    for name in ("score_dev", "score_test"):
        score = directory / name / "score.json"
        score.parent.mkdir()
        held = {"chosen": {"scale": 0.1, "penalty": 0.0}, "chosen_on": "dev"}
        held |= {"choice_sha256": choice, "utterances": {"an1": counts}}
        score.write_text(json.dumps(held))
        choice = file_digest(score)


def test_wer_and_frame_accuracy_over_seeds(tmp_path: Path) -> None:
    """Two seeds at 10 % and 30 % WER: mean 20 %, half-width 12.706 x 10."""
    arms = [f"{net}_{way}" for net in ("sigmoid", "relu", "svd") for way in WAYS]
    arms += [f"adagrad_{place}" for place in ("smoothed", "raw", "partial", "aggregate", "double")]
    for arm in arms:
        write_arm(tmp_path / arm / "seed1", 1, 0.5)
        write_arm(tmp_path / arm / "seed2", 3, 0.5)
    done = run(sys.executable, LOCAL / "paper_tables.py", "--exp", tmp_path, "--seeds", "1", "2")
    assert done.returncode == 0, done.stderr
    cell = "20.00 ± 127.06 (50.0 ± 0.0)"
    assert f"| not parallel | {cell} | {cell} | {cell} |" in done.stdout.splitlines()
    assert done.stdout.count(cell) == len(arms)


def test_without_cntk_labels_it_says_so(tmp_path: Path) -> None:
    done = run(LOCAL / "cntk_ab.sh", "--data", tmp_path)
    assert done.returncode == 1
    assert "no cntk/glob_0000.mlf there" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not (AN4 / "cntk").is_dir(), reason="no an4/cntk/ under ASRTRAIN_TEST_DATA")
def test_what_one_bit_costs_on_cntks_test_with_error_feedback_and_without(tmp_path: Path) -> None:
    """The ablation of section 3, one seed: below half a percent with it, several without."""
    done = run(LOCAL / "cntk_ab.sh", "--data", AN4, "--work", tmp_path / "work", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    arms = ["float32", "onebit", "float32_double", "onebit_double", "onebit_no_feedback"]
    assert [each[1].strip() for each in rows] == arms
    assert len({each[2] for each in rows}) == 1, "epoch 1 is a warm start: the same in all arms"
    cost = {each[1].strip(): float(each[-2].strip(" %")) for each in rows[1:]}
    assert abs(cost["onebit"]) < 0.5
    assert cost["onebit_no_feedback"] > 2
