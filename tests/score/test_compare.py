"""`compare`: figures by hand, what the verdict says, what is refused."""

import json
from pathlib import Path

import pytest

from asrtrain.io.errors import UserError
from asrtrain.score.compare import CompareConfig, compare
from asrtrain.score.report import verdict
from asrtrain.score.wer import ScoreConfig, score
from tests.score.decodings import make_decoding, make_references

REFERENCES = ["A B C D", "E F G H", "I J K L"] * 5


def make_arm(folder: Path, name: str, spoilt: int, wire: int, references=REFERENCES) -> str:
    """An arm whose first `spoilt` test utterances have an error each."""
    arm = folder / name
    figures = {
        **{"exchange": name, "workers": 2, "parameters": 10, "epochs": 3, "steps": 30, "seed": 1},
        **{"train_frame_accuracy": 0.8, "dev_frame_accuracy": 0.7, "train_loss": 1, "dev_loss": 1},
        **{"wire_bytes_per_step": wire, "seconds": 20.0, "frames_per_second": 500.0},
        **{"frames": 10_000, "sha256": "0"},
    }
    arm.mkdir(parents=True)
    (arm / "summary.json").write_text(json.dumps(figures))
    for name_of_set in ("dev", "test"):
        data = folder / f"{name}_{name_of_set}"
        make_references(data, references)
        hypotheses = [
            f"X {text[2:]}" if number < spoilt else text for number, text in enumerate(references)
        ]
        make_decoding(arm / f"decode_{name_of_set}", {(0.1, 0.0): hypotheses})
        choice = "" if name_of_set == "dev" else str(arm / "score_dev" / "score.json")
        score(
            ScoreConfig(
                data=str(data),
                decode=str(arm / f"decode_{name_of_set}"),
                choice=choice,
                out=str(arm / f"score_{name_of_set}"),
            )
        )
    return str(arm)


def config(folder: Path, **changes) -> CompareConfig:
    return CompareConfig(
        **{
            "baseline": str(folder / "float32"),
            "arms": [str(folder / "onebit")],
            "out": str(folder / "compare"),
        }
        | changes
    )


def test_figures(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    make_arm(tmp_path, "onebit", spoilt=6, wire=100)
    compare(config(tmp_path))
    held = json.loads((tmp_path / "compare" / "compare.json").read_text())
    first, second = held["arms"]
    assert (first["name"], first["test"]["wer"]["value"]) == ("float32", 100 * 3 / 60)
    assert (second["name"], second["test"]["substitutions"]) == ("onebit", 6)
    (pair,) = held["pairs"]
    assert pair["wer_difference"]["test"]["value"] == pytest.approx(5.0)
    assert pair["wire_bytes_ratio"] == pytest.approx(1 / 28)
    text = (tmp_path / "compare" / "compare.md").read_text()
    assert "**onebit: test WER 5.00 points above float32, 95 % interval" in text
    assert "It sends 1/28.0 of the bytes." in text
    assert "| float32 | 80.00 %          | 70.00 % | 5.00 % (" in text


def test_it_is_made_again_when_a_score_changes(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    make_arm(tmp_path, "onebit", spoilt=6, wire=100)
    assert compare(config(tmp_path))
    assert not compare(config(tmp_path))
    (tmp_path / "onebit" / "score_test" / "stage.json").write_text('{"id": "other"}')
    assert compare(config(tmp_path))


@pytest.mark.parametrize(
    ("value", "low", "high", "meaning"),
    [
        (0.5, 0.1, 0.9, "0.50 points above float32, 95 % interval +0.10 to +0.90: worse"),
        (-0.5, -0.9, -0.1, "0.50 points below float32, 95 % interval -0.90 to -0.10: better"),
        (0.5, -0.1, 0.9, "0.50 points above float32, 95 % interval -0.10 to +0.90: no difference"),
        (0.0, 0.0, 0.0, "equal to float32, 95 % interval +0.00 to +0.00: no difference shown"),
    ],
)
def test_verdicts(value: float, low: float, high: float, meaning: str) -> None:
    difference = {"value": value, "low": low, "high": high}
    pair = {
        "arm": "onebit",
        "baseline": "float32",
        "wer_difference": {"test": difference},
        "wire_bytes_ratio": None,
    }
    assert meaning in verdict(pair, "95 %")


def test_other_test_sets_are_refused(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    make_arm(tmp_path, "onebit", spoilt=3, wire=100, references=REFERENCES[:-1])
    with pytest.raises(UserError, match=r"onebit and float32 were scored on different dev sets"):
        compare(config(tmp_path))
    assert not (tmp_path / "compare").exists()


def test_a_choice_made_on_the_test_set_is_refused(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    arm = Path(make_arm(tmp_path, "onebit", spoilt=3, wire=100))
    path = arm / "score_test" / "score.json"
    held = json.loads(path.read_text()) | {"chosen_on": str(arm / "decode_test")}
    path.write_text(json.dumps(held))
    with pytest.raises(UserError, match=r"were chosen on .*decode_test; score it with choice="):
        compare(config(tmp_path))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    with pytest.raises(UserError, match=r"arms=.*onebit: no such file or folder"):
        compare(config(tmp_path))
    with pytest.raises(UserError, match=r"arms=\[\]: expected at least one"):
        config(tmp_path, arms=[])
    (tmp_path / "float32" / "summary.json").unlink()
    with pytest.raises(
        UserError, match=r"summary.json: no such file; make it with `asrtrain train"
    ):
        compare(config(tmp_path, arms=[str(tmp_path / "float32")]))
