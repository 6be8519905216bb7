"""Block momentum: its update by hand, and trainings with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import load_model
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.train.block import BlockMomentum
from asrtrain.train.config import CheckpointConfig, LaunchConfig, TrainConfig, TrainerConfig
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.schedule import ScheduleConfig
from asrtrain.train.verb import train
from tests.train.sets import make_set
from tests.train.test_resume import digest_of, interrupted


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    """Nine steps of 32 frames an epoch, a block of two: the last one of an epoch is unfinished."""
    return TrainConfig(
        frames=str(make_set(tmp_path / "frames", [40, 30, 57, 60, 90], seed=1)),
        dev=str(make_set(tmp_path / "dev", [33, 20], seed=2)),
        out=str(tmp_path / "dnn"),
        model=DnnConfig(hidden=[16], left_context=1, right_context=1),
        exchange=ExchangeConfig(method="onebit", workers=4),
        trainer=TrainerConfig(kind="block_momentum", minibatch=32, block_frames=64),
        optimizer=OptimizerConfig(momentum=10.0),
        schedule=ScheduleConfig(learning_rate=0.02, max_epochs=2),
        checkpoint=CheckpointConfig(steps=3),
    )


@pytest.mark.parametrize("nesterov", [False, True])
def test_the_update_by_hand(nesterov: bool) -> None:
    """Two workers change a number by 1 and 3, then by 2 and 2; momentum 1/2 is 1 - 1/K."""
    settings = TrainerConfig(kind="block_momentum", nesterov=nesterov)
    optimizer = BlockMomentum(settings, OptimizerConfig(), [torch.zeros(1, 1)], [], 2)
    changes = [float(optimizer.update(0, torch.tensor([[-4.0]]), 9)) for _ in range(2)]
    # D is 0 + 2, then 1 + 2. Nesterov adds half of how much D has grown: 2, then 1.
    assert changes == ([3.0, 3.5] if nesterov else [2.0, 3.0])


def test_momentum_of_the_blocks_is_given_or_follows_from_the_workers() -> None:
    for given, workers, expected in ((-1.0, 4, 0.75), (-1.0, 1, 0.0), (0.3, 4, 0.3)):
        settings = TrainerConfig(kind="block_momentum", block_momentum=given)
        assert BlockMomentum(settings, OptimizerConfig(), [], [], workers).momentum == expected


def test_one_worker_at_rest_takes_the_steps_of_sgd(config: TrainConfig, tmp_path: Path) -> None:
    plain = replace(
        config,
        exchange=ExchangeConfig(workers=1),
        optimizer=OptimizerConfig(momentum=0.0),
        trainer=replace(config.trainer, kind="sgd"),
    )
    blocks = replace(plain, out=str(tmp_path / "blocks"), trainer=config.trainer)
    train(plain)
    train(blocks)
    networks = [load_model(Path(each.out) / "final.pt").network for each in (plain, blocks)]
    for a, b in zip(*(each.parameters() for each in networks), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_it_learns_with_few_exchanges(config: TrainConfig) -> None:
    train(replace(config, schedule=replace(config.schedule, max_epochs=6)))
    epochs = [json.loads(line) for line in (Path(config.out) / "metrics.jsonl").open()]
    losses = [each["train_loss"] for each in epochs if "train_loss" in each]
    assert losses[-1] < 0.7 * losses[0]
    summary = json.loads((Path(config.out) / "summary.json").read_text())
    every_step = replace(config, out=config.out + "_sgd", trainer=TrainerConfig(minibatch=32))
    train(every_step)
    sgd = json.loads((Path(every_step.out) / "summary.json").read_text())
    # Of nine steps an epoch, five end in an exchange: four whole blocks and what is left.
    assert summary["wire_bytes_per_step"] == round(sgd["wire_bytes_per_step"] * 5 / 9)


@pytest.mark.parametrize("adagrad", ["none", "aggregate"])
def test_it_goes_on_with_the_same_bits(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adagrad: str
) -> None:
    config = replace(config, optimizer=OptimizerConfig(momentum=10.0, adagrad=adagrad))
    config = replace(config, schedule=replace(config.schedule, learning_rate=0.005))
    whole = replace(config, out=str(tmp_path / "whole"))
    train(whole)
    interrupted(config, monkeypatch, 7)
    partial = Path(config.out).parent / ".dnn.partial"
    assert [each.name for each in (partial / "checkpoints").glob("step-*")] == ["step-00000004"]
    train(config)
    assert digest_of(config) == digest_of(whole)


@pytest.mark.slow
def test_how_many_processes_run_the_workers_does_not_matter(
    config: TrainConfig, tmp_path: Path
) -> None:
    two = replace(config, out=str(tmp_path / "two"), launch=LaunchConfig(nproc=2))
    train(config)
    train(two)
    assert digest_of(config) == digest_of(two)
