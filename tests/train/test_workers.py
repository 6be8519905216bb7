"""K, the number of logical workers: what depends on it, and what does not."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import load_model
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.train.config import LaunchConfig, TrainConfig, TrainerConfig
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.schedule import ScheduleConfig
from asrtrain.train.verb import train
from tests.train.sets import SENONES, make_set


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    return TrainConfig(
        frames=str(make_set(tmp_path / "frames", [40, 30, 57, 60, 90], seed=1)),
        dev=str(make_set(tmp_path / "dev", [33, 20], seed=2)),
        out=str(tmp_path / "dnn"),
        model=DnnConfig(hidden=[16], left_context=1, right_context=1),
        trainer=TrainerConfig(minibatch=32),
        optimizer=OptimizerConfig(momentum=50.0),
        schedule=ScheduleConfig(learning_rate=0.02, max_epochs=3),
    )


def trained(config: TrainConfig, name: str, nproc: int = 1, **exchange) -> dict:
    """The summary of a run of that name, and its parameters."""
    out = Path(config.out).parent / name
    launch = LaunchConfig(nproc=nproc)
    train(replace(config, out=str(out), exchange=ExchangeConfig(**exchange), launch=launch))
    model = load_model(out / "final.pt")
    figures = json.loads((out / "summary.json").read_text())
    return {**figures, "weights": [each.detach() for each in model.network.parameters()]}


@pytest.mark.parametrize("workers", [2, 4, 7])
def test_in_float32_k_workers_are_one_within_rounding(config: TrainConfig, workers: int) -> None:
    one, more = trained(config, "one", workers=1), trained(config, "more", workers=workers)
    for a, b in zip(one["weights"], more["weights"], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("double_buffer", [False, True])
def test_more_workers_than_frames_of_a_minibatch(config: TrainConfig, double_buffer: bool) -> None:
    """Half of 64 workers have nothing to do in any step, and still owe what they owe."""
    many = trained(config, "many", workers=64, method="onebit", double_buffer=double_buffer)
    assert many["workers"] == 64
    assert many["dev_frame_accuracy"] > 0.6 > 2 / SENONES
    assert many["dev_loss"] < 0.5 * math.log(SENONES)


def test_a_warm_start_is_a_plain_exchange_in_float32(config: TrainConfig) -> None:
    """One that lasts for all three epochs, and one that ends after the first."""
    plain = trained(config, "plain", workers=4)
    buffered = {"method": "onebit", "workers": 4, "double_buffer": True}
    whole = trained(config, "whole", warm_start_hours=3 * 277 / 360_000, **buffered)
    part = trained(config, "part", warm_start_hours=277 / 360_000, **buffered)
    assert plain["sha256"] == whole["sha256"] != part["sha256"]
    losses = [
        json.loads((Path(config.out).parent / name / "metrics.jsonl").open().readline())
        for name in ("plain", "part")
    ]
    assert losses[0]["train_loss"] == losses[1]["train_loss"]


@pytest.mark.slow
def test_shares_need_not_be_even(config: TrainConfig) -> None:
    """Three workers in minibatches of 32 frames, and 21 at the end of an epoch."""
    digests = {
        trained(config, f"{nproc}", nproc, method="onebit", workers=3)["sha256"] for nproc in (1, 3)
    }
    assert len(digests) == 1


def test_bfloat16_keeps_float32_weights(config: TrainConfig) -> None:
    """Autocast computes with 8 bits of significand; weights, gradients and exchange have 24."""
    lower = replace(config, trainer=replace(config.trainer, precision="bfloat16"))
    exact, rounded = trained(config, "exact"), trained(lower, "rounded")
    assert exact["sha256"] != rounded["sha256"]
    assert rounded["dev_loss"] == pytest.approx(exact["dev_loss"], rel=0.02)
    for each in rounded["weights"]:
        assert each.dtype == torch.float32
        assert not torch.equal(each, each.bfloat16().float())
