"""A training that was stopped and goes on ends with the bits of one that was left alone."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from asrtrain.frames.shards import FrameSet, Indices
from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.train.config import (
    CheckpointConfig,
    LaunchConfig,
    SearchConfig,
    TrainConfig,
    TrainerConfig,
)
from asrtrain.train.loop import Trainer
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.schedule import ScheduleConfig
from asrtrain.train.verb import train
from tests.train.sets import make_set

ONEBIT = ExchangeConfig(method="onebit", workers=4)
STEPS_AN_EPOCH = 9


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    """Two epochs of nine steps; the second one, at that rate, is rejected."""
    return TrainConfig(
        frames=str(make_set(tmp_path / "frames", [40, 30, 57, 60, 90], seed=1)),
        dev=str(make_set(tmp_path / "dev", [33, 20], seed=2)),
        out=str(tmp_path / "dnn"),
        model=DnnConfig(hidden=[16], left_context=1, right_context=1),
        exchange=ONEBIT,
        trainer=TrainerConfig(minibatch=32),
        optimizer=OptimizerConfig(momentum=50.0),
        schedule=ScheduleConfig(learning_rate=0.02, max_epochs=2),
        checkpoint=CheckpointConfig(steps=4),
    )


def digest_of(config: TrainConfig) -> str:
    return json.loads((Path(config.out) / "summary.json").read_text())["sha256"]


def metrics_of(config: TrainConfig) -> list[dict]:
    lines = [json.loads(line) for line in (Path(config.out) / "metrics.jsonl").open()]
    timed = ("seconds", "frames_per_second", "time_spent")
    return [{key: each[key] for key in each if key not in timed} for each in lines]


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """From now on, a training is interrupted when it has taken that many steps in one life."""
    left, take = [step], Trainer.step

    def limited(self: Trainer, data: FrameSet, minibatch: Indices) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        take(self, data, minibatch)

    monkeypatch.setattr(Trainer, "step", limited)


def interrupted(config: TrainConfig, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            train(config)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"exchange": replace(ONEBIT, double_buffer=True)},
        {"exchange": replace(ONEBIT, bits=4, tie="input")},
        {"exchange": replace(ONEBIT, warm_start_hours=100 / 360_000)},
        {"exchange": ExchangeConfig(method="float32", workers=2, double_buffer=True)},
        {"exchange": ExchangeConfig(method="bfloat16", workers=2)},
        {"optimizer": OptimizerConfig(momentum=50.0, adagrad="partial")},
        {"optimizer": OptimizerConfig(momentum=50.0, adagrad="aggregate")},
        {"schedule": ScheduleConfig(learning_rate=3.0, max_epochs=2)},
        {"schedule": ScheduleConfig(kind="exponential", max_epochs=2)},
        {
            "trainer": TrainerConfig(minibatch="auto"),
            "search": SearchConfig(
                every_hours=128 / 360_000, hours=64 / 360_000, min_minibatch=16, margin=0.5
            ),
            "exchange": replace(ONEBIT, double_buffer=True),
        },
        {
            "schedule": ScheduleConfig(auto=True, max_epochs=2),
            "search": SearchConfig(hours=64 / 360_000),
        },
        {"trainer": TrainerConfig(minibatch_profile=[16, 32], epoch_frames=150)},
    ],
    ids=lambda change: " ".join(map(str, change)),
)
@pytest.mark.parametrize("step", [5, 12])
def test_to_the_bit(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict, step: int
) -> None:
    config = replace(config, **change)
    alone = replace(config, out=str(tmp_path / "alone"), checkpoint=CheckpointConfig())
    train(alone)
    interrupted(config, monkeypatch, step)
    assert not Path(config.out).exists()
    train(config)
    assert digest_of(config) == digest_of(alone)
    assert metrics_of(config) == metrics_of(alone)


def test_again_and_again(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = replace(config, out=str(tmp_path / "alone"))
    train(alone)
    for _ in range(3):  # each life gets one checkpoint further
        interrupted(config, monkeypatch, 5)
    train(config)
    assert digest_of(config) == digest_of(alone)


def test_the_newest_checkpoints_are_kept_and_removed_at_the_end(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(config, checkpoint=CheckpointConfig(steps=1, keep=2))
    interrupted(config, monkeypatch, 6)
    folder = Path(config.out).parent / ".dnn.partial" / "checkpoints"
    assert sorted(each.name for each in folder.iterdir()) == ["step-00000005", "step-00000006"]
    train(config)
    assert not (Path(config.out) / "checkpoints").exists()
    assert not (Path(config.out) / "unfinished.json").exists()


def test_before_the_first_checkpoint_nothing_is_left(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(config, monkeypatch, 2)
    assert not (Path(config.out).parent / ".dnn.partial").exists()


def test_other_settings_are_refused_or_overwrite(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(config, monkeypatch, 6)
    other = replace(config, trainer=replace(config.trainer, seed=2))
    with pytest.raises(UserError, match=r"unfinished .*trainer.seed: 1, now 2.*overwrite=true"):
        train(other)
    train(replace(other, overwrite=True))
    alone = replace(other, out=str(tmp_path / "alone"))
    train(alone)
    assert digest_of(other) == digest_of(alone)


def test_another_number_of_workers_goes_on_with_a_warning(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    interrupted(config, monkeypatch, 6)
    more = replace(config, exchange=replace(ONEBIT, workers=6))
    with caplog.at_level(logging.INFO):
        train(more)
    assert "is of 4 workers, now there are 6: their residuals start from zero" in caplog.text
    figures = json.loads((Path(config.out) / "summary.json").read_text())
    assert figures["workers"] == 6
    assert metrics_of(config)[0]["frames"] == 277


def test_a_checkpoint_that_cannot_be_read_is_named(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(config, monkeypatch, 6)
    folder = Path(config.out).parent / ".dnn.partial" / "checkpoints" / "step-00000004"
    (folder / "shard-0" / "worker-002.pt").write_bytes(b"not a checkpoint")
    told = r"worker-002.pt: cannot be read .*; remove .*/step-00000004 to go on"
    with pytest.raises(UserError, match=told):
        train(config)


@pytest.mark.slow
@pytest.mark.parametrize("double_buffer", [False, True])
def test_on_any_number_of_processes(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, double_buffer: bool
) -> None:
    """Four workers in 1, 2 and 4 processes; and a run that begins in one and goes on in two."""
    config = replace(config, exchange=replace(ONEBIT, double_buffer=double_buffer))
    digests = set()
    for nproc in (1, 2, 4):
        run = replace(config, out=str(tmp_path / f"{nproc}"), launch=LaunchConfig(nproc=nproc))
        train(run)
        digests.add(digest_of(run))
    interrupted(config, monkeypatch, 6)
    train(replace(config, launch=LaunchConfig(nproc=2)))
    digests.add(digest_of(config))
    assert len(digests) == 1
