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


def change(path: Path, **values) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


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
    assert "; it sends 1/28.0 of the bytes.**" in text
    assert "| float32 | 80.00 %          | 70.00 % | 5.00 % (" in text


def test_it_is_made_again_when_a_score_changes(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    make_arm(tmp_path, "onebit", spoilt=6, wire=100)
    assert compare(config(tmp_path))
    assert not compare(config(tmp_path))
    change(tmp_path / "onebit" / "score_test" / "stage.json", id="other")
    assert compare(config(tmp_path))


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(1 / 28, "it sends 1/28.0 of the bytes."), (28.0, "it sends 28.0 times the bytes.")],
)
def test_what_is_said_of_the_wire(ratio: float, said: str) -> None:
    pair = {
        "arm": "a",
        "baseline": "b",
        "wer_difference": {"test": {"value": 0.0, "low": 0.0, "high": 0.0}},
        "wire_bytes_ratio": ratio,
    }
    assert verdict(pair, "95 %").endswith(said)


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
    change(arm / "score_test" / "score.json", chosen_on=str(arm / "decode_test"), choice_sha256="")
    with pytest.raises(
        UserError, match=r"were chosen on .*decode_test, not on .*; score it with choice="
    ):
        compare(config(tmp_path))


def test_a_dev_choice_taken_from_elsewhere_is_refused(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    arm = Path(make_arm(tmp_path, "onebit", spoilt=3, wire=100))
    change(arm / "score_dev" / "score.json", chosen_on="exp/peek/score.json", choice_sha256="1")
    with pytest.raises(
        UserError, match=r"chosen on exp/peek/score.json; score the dev set without choice="
    ):
        compare(config(tmp_path))


def test_a_dev_score_made_anew_after_the_choice_is_refused(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    arm = Path(make_arm(tmp_path, "onebit", spoilt=3, wire=100))
    change(arm / "score_dev" / "score.json", chosen={"scale": 0.2, "penalty": 0.0})
    with pytest.raises(UserError, match=r"not on .*score_dev/score.json as it is now; score it"):
        compare(config(tmp_path))


def test_arms_that_were_moved_compare_as_before(tmp_path: Path) -> None:
    make_arm(tmp_path / "old", "float32", spoilt=3, wire=2800)
    make_arm(tmp_path / "old", "onebit", spoilt=6, wire=100)
    compare(config(tmp_path / "old"))
    (tmp_path / "old").rename(tmp_path / "new")
    compare(config(tmp_path / "new", out=str(tmp_path / "again")))
    first, second = (
        (folder / "compare.json").read_text()
        for folder in (tmp_path / "new" / "compare", tmp_path / "again")
    )
    assert first == second


def test_arms_in_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    baseline = make_arm(tmp_path / "seed1", "onebit", spoilt=3, wire=100)
    arm = make_arm(tmp_path / "seed2", "onebit", spoilt=3, wire=100)
    compare(config(tmp_path, baseline=baseline, arms=[arm]))
    held = json.loads((tmp_path / "compare" / "compare.json").read_text())
    assert [each["name"] for each in held["arms"]] == [baseline, arm]


def test_an_arm_against_itself_is_equal(tmp_path: Path) -> None:
    arm = make_arm(tmp_path, "float32", spoilt=3, wire=0)
    compare(config(tmp_path, arms=[arm]))
    (pair,) = json.loads((tmp_path / "compare" / "compare.json").read_text())["pairs"]
    nothing = {"value": 0.0, "low": 0.0, "high": 0.0}
    assert pair["wer_difference"] == {"dev": nothing, "test": nothing}
    assert pair["wire_bytes_ratio"] is None  # one worker sends nothing
    assert pair["seconds_ratio"] == 1


def test_the_tables_line_up_as_plain_text(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    make_arm(tmp_path, "onebit_with_a_long_name", spoilt=6, wire=100)
    compare(config(tmp_path, arms=[str(tmp_path / "onebit_with_a_long_name")]))
    blocks = (tmp_path / "compare" / "compare.md").read_text().split("\n\n")
    tables = [block.splitlines() for block in blocks if block.startswith("|")]
    assert len(tables) == 3
    for lines in tables:
        bars = [[place for place, sign in enumerate(line) if sign == "|"] for line in lines]
        assert all(each == bars[0] for each in bars)


def test_the_log_says_the_verdict(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    make_arm(tmp_path, "onebit", spoilt=6, wire=100)
    with caplog.at_level("INFO"):
        compare(config(tmp_path))
    assert any(line.startswith("onebit: test WER 5.00 points above") for line in caplog.messages)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    make_arm(tmp_path, "float32", spoilt=3, wire=2800)
    with pytest.raises(UserError, match=r"arms=.*onebit: no such file or folder"):
        compare(config(tmp_path))
    with pytest.raises(UserError, match=r"arms=\[\]: expected at least one"):
        config(tmp_path, arms=[])
    with pytest.raises(
        UserError, match=r"float32/peek/score.json: no such file; make it with `asrtrain score out="
    ):
        compare(config(tmp_path, arms=[str(tmp_path / "float32")], test="peek"))
    (tmp_path / "float32" / "summary.json").write_text('{"workers": 2}')
    with pytest.raises(UserError, match=r"summary.json: lacks epochs, steps, .*; make it with"):
        compare(config(tmp_path, arms=[str(tmp_path / "float32")]))
    (tmp_path / "float32" / "summary.json").unlink()
    with pytest.raises(
        UserError, match=r"summary.json: no such file; make it with `asrtrain train"
    ):
        compare(config(tmp_path, arms=[str(tmp_path / "float32")]))
