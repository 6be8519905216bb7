"""A split model trains as a whole one does, and its files are those of a whole one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import load_model
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.train.config import LaunchConfig, ParallelConfig, TrainConfig, TrainerConfig
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.schedule import ScheduleConfig
from asrtrain.train.verb import train
from tests.train.sets import make_set


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    """Five senones: over two processes a stripe of three rows and one of two, over four an empty
    one as well."""
    return TrainConfig(
        frames=str(make_set(tmp_path / "frames", [40, 30, 57, 60, 90], seed=1)),
        dev=str(make_set(tmp_path / "dev", [33, 20], seed=2)),
        out=str(tmp_path / "dnn"),
        model=DnnConfig(hidden=[16, 10], left_context=1, right_context=1),
        exchange=ExchangeConfig(workers=4),
        trainer=TrainerConfig(minibatch=32),
        optimizer=OptimizerConfig(momentum=50.0),
        schedule=ScheduleConfig(learning_rate=0.02, max_epochs=1),
    )


def trained(config: TrainConfig, out: Path, shards: int, nproc: int) -> dict:
    """Train a model split over `shards` of `nproc` processes; return its figures."""
    split = ParallelConfig(model=shards)
    train(replace(config, out=str(out), parallel=split, launch=LaunchConfig(nproc=nproc)))
    return json.loads((out / "summary.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["float32", "onebit"])
def test_two_by_two_is_one_within_rounding(
    config: TrainConfig, tmp_path: Path, method: str
) -> None:
    config = replace(config, exchange=ExchangeConfig(method=method, workers=4))
    whole = trained(config, tmp_path / "whole", 1, 1)
    split = trained(config, tmp_path / "split", 2, 4)
    assert split["dev_loss"] == pytest.approx(whole["dev_loss"], rel=1e-6)
    assert (split["parameters"], split["processes"]) == (whole["parameters"], 4)
    networks = [load_model(tmp_path / each / "final.pt").network for each in ("whole", "split")]
    for a, b in zip(*(each.parameters() for each in networks), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_how_many_replicas_hold_the_workers_does_not_matter(
    config: TrainConfig, tmp_path: Path
) -> None:
    config = replace(config, exchange=ExchangeConfig(method="onebit", workers=4))
    one_replica = trained(config, tmp_path / "one", 2, 2)
    two_replicas = trained(config, tmp_path / "two", 2, 4)
    assert one_replica["sha256"] == two_replicas["sha256"]


@pytest.mark.slow
def test_more_shards_than_rows(config: TrainConfig, tmp_path: Path) -> None:
    """Of the output layer's five rows the fourth shard holds none."""
    config = replace(config, trainer=replace(config.trainer, precision="bfloat16"))
    whole = trained(config, tmp_path / "whole", 1, 1)
    split = trained(config, tmp_path / "split", 4, 4)
    assert split["dev_loss"] == pytest.approx(whole["dev_loss"], rel=0.02)
