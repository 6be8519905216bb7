"""`score`: what is chosen, what is counted, what is refused."""

import json
from pathlib import Path

import pytest

from asrtrain.io.errors import UserError
from asrtrain.score.alignment import Counts
from asrtrain.score.wer import Point, ScoreConfig, choose, kaldi_line, score
from tests.score.decodings import make_decoding, make_references

REFERENCES = ["A B C", "D E"]
POINTS = {
    (0.1, 0.0): ["A B C", "D"],
    (0.1, 1.0): ["A B C", "D E F"],
    (0.2, 0.0): ["A X C", "D"],
    (0.2, 1.0): ["A B C", "D E"],
    (0.3, 0.0): ["A", "D"],
    (0.3, 1.0): ["B C", "D"],
}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {
        "data": str(make_references(tmp_path / "data", REFERENCES)),
        "decode": str(make_decoding(tmp_path / "decode", POINTS)),
        "out": str(tmp_path / "score"),
    }


def report(settings: dict[str, str]) -> dict:
    return json.loads((Path(settings["out"]) / "score.json").read_text())


def test_the_point_of_fewest_errors_is_chosen(settings: dict[str, str]) -> None:
    score(ScoreConfig(**settings))
    assert report(settings)["chosen"] == {"scale": 0.2, "penalty": 1.0}
    assert report(settings)["wer"] == 0
    assert len(report(settings)["grid"]) == 6


def test_ties_go_to_the_smallest_penalty_then_the_smallest_scale() -> None:
    def point(scale: float, penalty: float, errors: int) -> Point:
        return Point(scale, penalty, Counts(substitutions=errors, words=9))

    points = [point(0.3, -1, 2), point(0.2, 0.5, 2), point(0.1, 0.5, 2), point(0.1, 0, 3)]
    assert choose(points) == points[2]


def test_a_choice_made_elsewhere_is_used_as_it_is(settings: dict[str, str], tmp_path: Path) -> None:
    choice = tmp_path / "dev.json"
    choice.write_text(json.dumps({"chosen": {"scale": 0.2, "penalty": 0.0}}))
    score(ScoreConfig(**settings, choice=str(choice)))
    assert report(settings)["counts"] == {
        "substitutions": 1,
        "deletions": 1,
        "insertions": 0,
        "words": 5,
    }
    assert report(settings)["chosen_on"] == str(choice)
    out = Path(settings["out"])
    assert (out / "wer").read_text() == "%WER 40.00 [ 2 / 5, 0 ins, 1 del, 1 sub ]\n"
    assert (out / "per_utt").read_text().splitlines() == [
        "s0 ref  A B C",
        "s0 hyp  A X C",
        "s0 op   C S C",
        "s0 #csid 2 1 0 0",
        "s1 ref  D E",
        "s1 hyp  D ***",
        "s1 op   C D",
        "s1 #csid 1 0 0 1",
    ]
    assert (out / "ops").read_text().splitlines() == ["D E *** 1", "S B X 1"]
    assert (out / "per_spk").read_text().splitlines()[1] == "s0 3 1 0 0 33.33"


def test_totals_are_sums_over_utterances_and_speakers(settings: dict[str, str]) -> None:
    score(ScoreConfig(**settings))
    held = report(settings)
    for group in ("utterances", "speakers"):
        for kind, total in held["counts"].items():
            assert sum(each[kind] for each in held[group].values()) == total


def test_the_log_says_the_error_rate(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        score(ScoreConfig(**settings))
    assert "%WER 0.00 [ 0 / 5, 0 ins, 0 del, 0 sub ]" in caplog.messages
    assert "acoustic scale 0.2, word insertion penalty 1" in caplog.messages


def test_kaldis_line() -> None:
    line = kaldi_line(Counts(substitutions=40, deletions=7, insertions=5, words=773))
    assert line == "%WER 6.73 [ 52 / 773, 5 ins, 7 del, 40 sub ]"


def test_the_edge_of_the_grid_is_warned_of(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    score(ScoreConfig(**settings))
    assert (
        "the best penalty, 1, is the last of the grid; decode with more penalties=" in caplog.text
    )
    assert "the best scale" not in caplog.text


def test_utterances_that_do_not_match_are_named(settings: dict[str, str], tmp_path: Path) -> None:
    more = settings | {"data": str(make_references(tmp_path / "more", [*REFERENCES, "G"]))}
    with pytest.raises(UserError, match=r"hyp/0.1_0.txt: no hypothesis for s2"):
        score(ScoreConfig(**more))
    fewer = settings | {"data": str(make_references(tmp_path / "fewer", REFERENCES[:1]))}
    with pytest.raises(UserError, match=r"hyp/0.1_0.txt: has s1, which .*fewer lacks"):
        score(ScoreConfig(**fewer))
    many = settings | {"data": str(make_references(tmp_path / "many", ["A"] * 9))}
    with pytest.raises(UserError, match=r"no hypothesis for s2, s3, s4 and 4 more, which"):
        score(ScoreConfig(**many))


def test_a_choice_that_the_grid_lacks_is_named(settings: dict[str, str], tmp_path: Path) -> None:
    choice = tmp_path / "dev.json"
    choice.write_text(json.dumps({"chosen": {"scale": 9.0, "penalty": 0.0}}))
    with pytest.raises(UserError, match=r"grid.json: has no point of scale 9 and penalty 0"):
        score(ScoreConfig(**settings, choice=str(choice)))
    choice.write_text("{}")
    with pytest.raises(UserError, match=r"dev.json: lacks chosen; choice= expects a score.json"):
        score(ScoreConfig(**settings, choice=str(choice)))
    with pytest.raises(UserError, match=r"data: Is a directory; choice= expects a score.json"):
        score(ScoreConfig(**settings, choice=settings["data"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "cannot be read as JSON"),
        ("[]", "has no points"),
        ("{}", "expected a list, found dict"),
        ('[{"scale": 0.1}]', r"{'scale': 0.1} is not a point with scale, penalty, file"),
        ("[7]", "7 is not a point"),
    ],
)
def test_a_spoilt_grid_is_named(settings: dict[str, str], content: str, message: str) -> None:
    (Path(settings["decode"]) / "grid.json").write_text(content)
    with pytest.raises(UserError, match=rf"grid.json: {message}.*; make it with `asrtrain decode"):
        score(ScoreConfig(**settings))
    assert not Path(settings["out"]).exists()


def test_a_folder_without_a_grid_is_named(settings: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"data/grid.json: no such file; make it with"):
        score(ScoreConfig(**settings | {"decode": settings["data"]}))


def test_references_without_words_are_refused(settings: dict[str, str], tmp_path: Path) -> None:
    empty = settings | {"data": str(make_references(tmp_path / "empty", ["", ""]))}
    with pytest.raises(UserError, match=r"empty/text: has no words"):
        score(ScoreConfig(**empty))


def test_one_utterance_without_words_counts_its_insertions(
    settings: dict[str, str], tmp_path: Path
) -> None:
    some = settings | {"data": str(make_references(tmp_path / "some", ["A B C", ""]))}
    score(ScoreConfig(**some))
    assert report(settings)["utterances"]["s1"] == {
        **{"speaker": "s1", "substitutions": 0, "deletions": 0, "insertions": 1, "words": 0}
    }
    assert report(settings)["wer"] == pytest.approx(100 / 3)
