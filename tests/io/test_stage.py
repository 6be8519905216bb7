"""Stages make an output once, whole or not at all."""

import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asrtrain.io.errors import UserError
from asrtrain.io.settings import result_settings
from asrtrain.io.stage import atomic_directory, stage, write_counts
from tests.io.stages import CopyConfig, Inner, copy


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "source").write_text("x")
    return str(tmp_path / "source")


def config(tmp_path: Path, source: str, **changes) -> CopyConfig:
    return CopyConfig(**{"out": str(tmp_path / "out"), "source": source, "repeat": 2} | changes)


def left_over(tmp_path: Path) -> list[str]:
    return [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_it_is_made_once(tmp_path: Path, source: str) -> None:
    assert copy(config(tmp_path, source))
    assert (tmp_path / "out" / "whole").read_text() == "xx"
    before = (tmp_path / "out" / "stage.json").stat().st_mtime_ns
    assert not copy(config(tmp_path, source))
    assert (tmp_path / "out" / "stage.json").stat().st_mtime_ns == before
    assert not left_over(tmp_path)


def test_it_holds_its_settings_and_its_log(tmp_path: Path, source: str) -> None:
    copy(config(tmp_path, source))
    record = json.loads((tmp_path / "out" / "stage.json").read_text())
    assert record["verb"] == "copy"
    assert record["settings"] == {"source": source, "repeat": 2, "inner": {"rate": 0.5}}
    assert record["inputs"] == {"source": hashlib.sha256(b"x").hexdigest()}


def test_its_log_has_what_was_logged_while_it_was_made(
    tmp_path: Path, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    @stage("speaker")
    def speaker(config: CopyConfig, out: Path) -> None:
        logging.getLogger("asrtrain.test").warning("two of three")

    with caplog.at_level(logging.INFO):
        speaker(config(tmp_path, source))
        (line,) = (tmp_path / "out" / "log").read_text().splitlines()
        assert line.endswith(" WARNING two of three")
        speaker(config(tmp_path, source))
    out = tmp_path / "out"
    assert caplog.messages[0] == f"speaker: making {out}"
    assert caplog.messages[-1] == f"speaker: {out} is complete, skipped"
    logging.getLogger("asrtrain.test").warning("after it")
    assert "after it" not in (out / "log").read_text()


def test_settings_that_do_not_change_the_result_may_differ(tmp_path: Path, source: str) -> None:
    copy(config(tmp_path, source))
    assert not copy(config(tmp_path, source, nj=7))
    assert result_settings(config(tmp_path, source, nj=7)) == result_settings(
        config(tmp_path, source)
    )


def test_other_settings_are_refused_with_both_values(tmp_path: Path, source: str) -> None:
    copy(config(tmp_path, source))
    other = config(tmp_path, source, repeat=3, inner=Inner(rate=0.25))
    message = r"out: was made with other settings \(inner.rate: 0.5, now 0.25; repeat: 2, now 3\)"
    with pytest.raises(UserError, match=message):
        copy(other)
    assert copy(config(tmp_path, source, repeat=3, overwrite=True))
    assert (tmp_path / "out" / "whole").read_text() == "xxx"
    assert not left_over(tmp_path)


def test_a_changed_input_makes_it_stale(tmp_path: Path, source: str) -> None:
    copy(config(tmp_path, source))
    Path(source).write_text("y")
    assert copy(config(tmp_path, source))
    assert (tmp_path / "out" / "whole").read_text() == "yy"


def test_stages_down_the_chain_see_a_change_by_its_id(tmp_path: Path, source: str) -> None:
    @stage("next", inputs=("source",))
    def following(config: CopyConfig, out: Path) -> None:
        (out / "seen").write_text((Path(config.source) / "whole").read_text())

    first = config(tmp_path, source)
    second = config(tmp_path, str(tmp_path / "out"), out=str(tmp_path / "next"))
    copy(first)
    assert following(second)
    copy(config(tmp_path, source, overwrite=True))
    assert not following(second)  # made again from the same: the same
    copy(config(tmp_path, source, repeat=5, overwrite=True))
    assert following(second)
    assert (tmp_path / "next" / "seen").read_text() == "xxxxx"


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"source=.*nowhere: no such file or folder"):
        copy(config(tmp_path, str(tmp_path / "nowhere")))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_no_stage_made_is_not_touched(
    tmp_path: Path, source: str, overwrite: bool
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis").write_text("mine")
    with pytest.raises(UserError, match=r"out: exists but has no stage.json"):
        copy(config(tmp_path, source, overwrite=overwrite))
    assert (tmp_path / "out" / "thesis").read_text() == "mine"


@pytest.mark.parametrize("overwrite", [False, True])
def test_another_verbs_output_is_not_replaced(tmp_path: Path, source: str, overwrite: bool) -> None:
    @stage("shout")
    def shout(config: CopyConfig, out: Path) -> None:
        (out / "thesis").write_text("MINE")

    shout(config(tmp_path, source))
    with pytest.raises(UserError, match=r"out: was made by shout, not copy; move it away"):
        copy(config(tmp_path, source, overwrite=overwrite))
    assert (tmp_path / "out" / "thesis").read_text() == "MINE"


@pytest.mark.parametrize(
    ("content", "message"), [("garbage", "cannot be read as JSON"), ("{}", "lacks verb, settings")]
)
def test_a_spoilt_record_is_one_line(
    tmp_path: Path, source: str, content: str, message: str
) -> None:
    copy(config(tmp_path, source))
    (tmp_path / "out" / "stage.json").write_text(content)
    with pytest.raises(
        UserError, match=rf"stage.json: {message}.*; remove .*out and make it again"
    ):
        copy(config(tmp_path, source))
    with pytest.raises(UserError, match=rf"stage.json: {message}"):
        copy(config(tmp_path, str(tmp_path / "out"), out=str(tmp_path / "next")))


def test_an_output_where_none_can_be_is_named(tmp_path: Path, source: str) -> None:
    with pytest.raises(UserError, match=r"source/out: cannot be made here: Not a directory"):
        copy(config(tmp_path, source, out=f"{source}/out"))


@pytest.mark.parametrize("error", [UserError("no"), KeyboardInterrupt(), OSError("disk")])
def test_an_error_leaves_nothing(tmp_path: Path, source: str, error: BaseException) -> None:
    @stage("broken")
    def broken(config: CopyConfig, out: Path) -> None:
        (out / "half").write_text("x")
        raise error

    with pytest.raises(type(error)):
        broken(config(tmp_path, source))
    assert not (tmp_path / "out").exists()
    assert not left_over(tmp_path)


def test_an_error_while_making_anew_keeps_what_was(tmp_path: Path, source: str) -> None:
    copy(config(tmp_path, source))
    with pytest.raises(IsADirectoryError):
        copy(config(tmp_path, str(tmp_path), overwrite=True))
    assert (tmp_path / "out" / "whole").read_text() == "xx"


def start(tmp_path: Path) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.io.stages", str(tmp_path / "out"), "60"],
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / ".out.partial" / "half").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_after_the_process_was_ended_it_is_made_from_the_start(tmp_path: Path, how: int) -> None:
    process = start(tmp_path)
    os.kill(process.pid, how)
    process.wait(timeout=60)
    assert not (tmp_path / "out").exists()
    copy(CopyConfig(out=str(tmp_path / "out")))
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        *("folder", "half", "log", "stage.json", "whole")
    ]
    assert not left_over(tmp_path)


def test_two_processes_do_not_make_the_same(tmp_path: Path) -> None:
    process = start(tmp_path)
    with pytest.raises(UserError, match=r"out: another process is making it"):
        copy(CopyConfig(out=str(tmp_path / "out")))
    process.kill()
    process.wait(timeout=60)


def test_counts_are_lines_of_json(tmp_path: Path) -> None:
    write_counts(tmp_path, epoch=1)
    write_counts(tmp_path, epoch=2, loss=0.5)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"epoch": 1}, {"epoch": 2, "loss": 0.5}]


def test_atomic_directory_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    for number in range(2):
        with atomic_directory(tmp_path / "a") as path:
            (path / str(number)).touch()
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["1"]
    assert not left_over(tmp_path)
