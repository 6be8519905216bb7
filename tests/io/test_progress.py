"""Bars: silent off a terminal and while work is short, informative otherwise."""

import io
import sys

import pytest

from asrtrain.io import progress as room
from asrtrain.io.progress import progress, progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_are_silent_off_a_terminal(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "DELAY_SECONDS", 0.0)
    with progress_bar("work", 10, "things") as bar:
        bar.update(10)
    assert list(progress(range(3), "work", 3, "things")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("delay", "shown"), [(0.0, True), (60.0, False)])
def test_on_a_terminal_a_bar_shows_once_the_work_is_long(
    monkeypatch: pytest.MonkeyPatch, delay: float, shown: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(room, "DELAY_SECONDS", delay)
    assert list(progress(range(3), "aligning", 3, "utterances")) == [0, 1, 2]
    assert ("aligning" in terminal.getvalue()) == shown
    assert ("utterances/s" in terminal.getvalue()) == shown


def test_no_item_is_taken_before_it_is_asked_for() -> None:
    taken: list[int] = []
    items = progress(map(taken.append, range(9)), "work", 9, "things")
    next(items)
    assert taken == [0]
