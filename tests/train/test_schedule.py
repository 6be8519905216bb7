"""The schedule against Kaldi's train_scheduler.sh, followed by hand."""

import math

import pytest

from asrtrain.io.errors import UserError
from asrtrain.train.schedule import NewBob, ScheduleConfig, Verdict

CONFIG = ScheduleConfig(learning_rate=1.0)


def test_the_rate_stays_while_the_loss_falls_then_halves_until_it_stalls() -> None:
    schedule = NewBob(CONFIG, initial_loss=4.0)
    assert schedule.judge(2.0) == Verdict(accepted=True, finished=False)
    assert schedule.learning_rate == 1.0
    assert schedule.judge(1.99) == Verdict(accepted=True, finished=False)  # falls by 0.5 %
    assert schedule.learning_rate == 0.5
    assert schedule.judge(1.5) == Verdict(accepted=True, finished=False)  # halving goes on
    assert schedule.learning_rate == 0.25
    assert schedule.judge(1.4999) == Verdict(accepted=True, finished=True)
    assert schedule.best_loss == 1.4999


def test_a_rise_is_rejected_and_starts_halving_then_a_second_one_ends_it() -> None:
    schedule = NewBob(CONFIG, initial_loss=4.0)
    assert schedule.judge(5.0) == Verdict(accepted=False, finished=False)
    assert (schedule.best_loss, schedule.learning_rate) == (4.0, 0.5)
    assert schedule.judge(4.5) == Verdict(accepted=False, finished=True)


def test_a_nan_is_rejected() -> None:
    schedule = NewBob(CONFIG, initial_loss=4.0)
    assert not schedule.judge(math.nan).accepted
    assert schedule.best_loss == 4.0


def test_the_first_epochs_may_keep_the_rate() -> None:
    schedule = NewBob(ScheduleConfig(learning_rate=1.0, keep_rate_epochs=1), initial_loss=4.0)
    assert schedule.judge(4.5) == Verdict(accepted=True, finished=False)
    assert (schedule.best_loss, schedule.learning_rate) == (4.5, 1.0)
    assert not schedule.judge(4.6).accepted


def test_max_and_min_epochs() -> None:
    schedule = NewBob(ScheduleConfig(max_epochs=2), initial_loss=4.0)
    assert not schedule.judge(3.0).finished
    assert schedule.judge(2.0).finished
    patient = NewBob(ScheduleConfig(min_epochs=3), initial_loss=4.0)
    assert [patient.judge(5.0).finished for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"learning_rate": 0.0}, "schedule.learning_rate=0.0"),
        ({"max_epochs": 0}, "schedule.max_epochs=0"),
        ({"halving_factor": 1.0}, "schedule.halving_factor=1.0"),
        ({"end_halving_improvement": 0.5}, "schedule.start_halving_improvement=0.01"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict, named: str) -> None:
    with pytest.raises(UserError, match=named):
        NewBob(ScheduleConfig(**settings), 1.0)
