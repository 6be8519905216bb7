"""Trials: they leave no trace, and choose what their rule says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from asrtrain.frames.shards import FrameSet, Indices
from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.train.config import SearchConfig, TrainConfig, TrainerConfig
from asrtrain.train.loop import DivergedError, Trainer
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.schedule import ScheduleConfig
from asrtrain.train.search import minibatch_candidates
from asrtrain.train.verb import train
from tests.train.sets import make_set

FRAME = 1 / 360_000
SEARCH = SearchConfig(every_hours=128 * FRAME, hours=64 * FRAME, min_minibatch=16)


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    return TrainConfig(
        frames=str(make_set(tmp_path / "frames", [256, 256], seed=1)),
        dev=str(make_set(tmp_path / "dev", [33, 20], seed=2)),
        out=str(tmp_path / "dnn"),
        model=DnnConfig(hidden=[16], left_context=1, right_context=1),
        exchange=ExchangeConfig(method="onebit", workers=2),
        trainer=TrainerConfig(minibatch="auto"),
        optimizer=OptimizerConfig(momentum=50.0),
        schedule=ScheduleConfig(learning_rate=0.02, max_epochs=1),
        search=SEARCH,
    )


def summary(config: TrainConfig) -> dict:
    return json.loads((Path(config.out) / "summary.json").read_text())


def test_candidates_grow_by_the_square_root_of_two_from_half_to_twice_the_size() -> None:
    assert minibatch_candidates(SearchConfig(), 1024) == [512, 724, 1024, 1448, 2048]
    assert minibatch_candidates(SearchConfig(max_growth=1.5), 1024) == [512, 724, 1024, 1448]
    near_the_ends = SearchConfig(min_minibatch=1000, max_minibatch=1100)
    assert minibatch_candidates(near_the_ends, 1024) == [1000, 1024, 1100]


def test_trials_leave_no_trace(config: TrainConfig, tmp_path: Path) -> None:
    """A search with a single candidate: the bits of a training that knows no search."""
    single = replace(SEARCH, min_minibatch=32, max_minibatch=32)
    for double_buffer in (False, True):
        exchange = replace(config.exchange, double_buffer=double_buffer)
        searching = replace(
            config, exchange=exchange, search=single, out=str(tmp_path / f"a{double_buffer}")
        )
        plain = replace(
            searching, trainer=TrainerConfig(minibatch=32), out=str(tmp_path / f"b{double_buffer}")
        )
        train(searching)
        train(plain)
        assert len(summary(searching)["searches"]) == 3
        assert summary(searching)["steps"] == summary(plain)["steps"] == 512 // 32
        if not double_buffer:  # with it, a search waits for the half minibatch under way
            assert summary(searching)["sha256"] == summary(plain)["sha256"]


def test_with_a_wide_margin_sizes_grow_and_with_none_the_best_wins(
    config: TrainConfig, tmp_path: Path
) -> None:
    train(replace(config, search=replace(SEARCH, margin=0.99)))
    chosen = [each["chosen"] for each in summary(config)["searches"]]
    assert chosen == [32, 64, 128]
    strict = replace(config, search=replace(SEARCH, margin=0.0), out=str(tmp_path / "strict"))
    train(strict)
    for search in summary(strict)["searches"]:
        accuracies = dict(search["tried"])
        assert accuracies[search["chosen"]] == max(accuracies.values())
        assert search["frames"] == 64 * len(accuracies)


def test_a_trial_that_diverges_is_rejected_and_undone(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Trainer.step

    def limited(self: Trainer, data: FrameSet, minibatch: Indices) -> None:
        take(self, data, minibatch)
        if len(minibatch) > 16:
            raise DivergedError("too large")

    monkeypatch.setattr(Trainer, "step", limited)
    train(replace(config, search=replace(SEARCH, margin=0.99)))
    for search in summary(config)["searches"]:
        assert (search["tried"][-1], search["chosen"]) == ([23, None], 16)


def test_trials_are_not_double_buffered(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bool]] = []
    take = Trainer.step

    def watched(self: Trainer, data: FrameSet, minibatch: Indices) -> None:
        seen.append((self.steps, self.double_buffer))
        take(self, data, minibatch)

    monkeypatch.setattr(Trainer, "step", watched)
    train(replace(config, exchange=replace(config.exchange, double_buffer=True)))
    trial_steps = sum(not double for _, double in seen)
    assert trial_steps > 0
    assert sum(double for _, double in seen) == summary(config)["steps"]


def test_an_initial_rate_that_is_far_too_small_is_raised(
    config: TrainConfig, tmp_path: Path
) -> None:
    slow = replace(
        config,
        trainer=TrainerConfig(minibatch=16),
        schedule=ScheduleConfig(learning_rate=1e-4, auto=True, max_epochs=1),
        search=replace(SEARCH, hours=256 * FRAME),
    )
    train(slow)
    (search,) = summary(slow)["searches"]
    assert search["chosen"] == pytest.approx(8e-4)
    metrics = json.loads((Path(slow.out) / "metrics.jsonl").read_text())
    assert metrics["learning_rate"] == search["chosen"]


def test_rates_that_all_diverge_are_an_error(config: TrainConfig) -> None:
    wild = replace(
        config,
        trainer=TrainerConfig(minibatch=16),
        schedule=ScheduleConfig(learning_rate=1e36, auto=True, max_epochs=1),
    )
    with pytest.raises(UserError, match=r"schedule.learning_rate=1e\+36: training diverges at"):
        train(wild)


def test_settings_that_exclude_each_other_are_named() -> None:
    with pytest.raises(UserError, match=r"schedule.auto=true and schedule.kind=profile"):
        ScheduleConfig(kind="profile", profile=[0.1], auto=True)
    with pytest.raises(UserError, match=r"trainer.minibatch=auto and trainer.minibatch_profile"):
        TrainerConfig(minibatch="auto", minibatch_profile=[64])
