"""What training starts from: a trained model, its SVD factors, pre-trained layers."""

import json
import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from asrtrain.frames.shards import FrameSet
from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import load_model, log_priors_from_counts, new_model
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.onebit.transport import LocalTransport
from asrtrain.train.config import LaunchConfig, PretrainConfig, TrainConfig, TrainerConfig
from asrtrain.train.initial import initial_model
from asrtrain.train.optimizer_config import OptimizerConfig
from asrtrain.train.pretrain import pretrained_by_rbm
from asrtrain.train.schedule import ScheduleConfig
from asrtrain.train.verb import train
from tests.train.sets import make_set

SIGMOID = DnnConfig(hidden=[16, 16, 16], activation="sigmoid", left_context=1, right_context=1)


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    return TrainConfig(
        frames=str(make_set(tmp_path / "frames", [200, 200], seed=1)),
        dev=str(make_set(tmp_path / "dev", [33, 20], seed=2)),
        out=str(tmp_path / "dnn"),
        model=SIGMOID,
        exchange=ExchangeConfig(method="onebit", workers=2),
        trainer=TrainerConfig(minibatch=16),
        optimizer=OptimizerConfig(momentum=50.0),
        schedule=ScheduleConfig(learning_rate=0.02, max_epochs=8),
    )


def summary(config: TrainConfig) -> dict:
    return json.loads((Path(config.out) / "summary.json").read_text())


def model_of(config: TrainConfig):
    return load_model(Path(config.out) / "final.pt")


def test_a_trained_model_goes_on_where_it_was(config: TrainConfig, tmp_path: Path) -> None:
    train(config)
    start = initial_model(
        replace(config, init=config.out), FrameSet(Path(config.frames)), LocalTransport(), False
    )
    wanted = model_of(config).network.state_dict()
    assert all(torch.equal(each, wanted[k]) for k, each in start.network.state_dict().items())
    more = replace(config, init=config.out, out=str(tmp_path / "more"))
    train(more)
    assert summary(more)["train_loss"] < summary(config)["train_loss"]


def test_svd_factors_of_a_trained_model_are_fine_tuned(config: TrainConfig, tmp_path: Path) -> None:
    train(config)
    low = replace(config.model, svd_rank=3)
    tuned = replace(config, init=config.out, model=low, out=str(tmp_path / "svd"))
    train(tuned)
    assert summary(tuned)["parameters"] < summary(config)["parameters"]
    assert model_of(tuned).config.svd_rank == 3
    assert summary(tuned)["dev_frame_accuracy"] > 0.5


def test_a_model_that_does_not_fit_is_named(config: TrainConfig, tmp_path: Path) -> None:
    train(config)
    other = replace(config, init=config.out, out=str(tmp_path / "other"))
    with pytest.raises(UserError, match=r"init=.* and model= do not fit"):
        train(replace(other, model=replace(SIGMOID, hidden=[16])))
    index = Path(config.frames) / "frames.json"
    index.write_text(index.read_text().replace('"dim": 4', '"dim": 5'))
    dev = Path(config.dev) / "frames.json"
    dev.write_text(dev.read_text().replace('"dim": 4', '"dim": 5'))
    with pytest.raises(UserError, match=r"the model has dim 4 but .*frames has 5"):
        train(other)


def test_discriminative_pretraining_says_how_each_depth_does(
    config: TrainConfig, caplog: pytest.LogCaptureFixture
) -> None:
    config = replace(config, pretrain=PretrainConfig(method="discriminative"))
    with caplog.at_level(logging.INFO):
        train(config)
    losses = [float(each) for each in re.findall(r"hidden layer\(s\): loss ([\d.]+)", caplog.text)]
    assert len(losses) == 2
    assert losses[1] < 1.7  # below chance, log 5, or near it at first
    assert summary(config)["dev_frame_accuracy"] > 0.5


def test_rbms_learn_to_reconstruct_and_become_the_hidden_layers(
    config: TrainConfig, caplog: pytest.LogCaptureFixture
) -> None:
    data = FrameSet(Path(config.frames))
    priors = log_priors_from_counts(torch.from_numpy(data.pdf_counts))
    errors = {}
    for frames in (400, 40_000):
        settings = PretrainConfig(method="rbm", frames=frames, rbm_gaussian_rate=1e-3)
        model = new_model(SIGMOID, data.dim, priors, seed=1)
        caplog.clear()
        with caplog.at_level(logging.INFO):
            pretrained_by_rbm(replace(config, pretrain=settings), model, data, LocalTransport())
        errors[frames] = [float(each) for each in re.findall(r"error ([\d.]+)", caplog.text)]
        assert len(errors[frames]) == 3
    assert errors[40_000][0] < 0.6 * errors[400][0]
    assert not model.network[-1].weight.any()  # the output layer is left as it was


@pytest.mark.slow
@pytest.mark.parametrize("method", ["discriminative", "rbm"])
def test_pretraining_depends_on_workers_not_on_processes(
    config: TrainConfig, tmp_path: Path, method: str
) -> None:
    config = replace(config, pretrain=PretrainConfig(method=method))
    digests = set()
    for nproc in (1, 2):
        run = replace(config, out=str(tmp_path / f"{nproc}"), launch=LaunchConfig(nproc=nproc))
        train(run)
        digests.add(summary(run)["sha256"])
    assert len(digests) == 1


def test_what_cannot_be_pretrained_is_refused(config: TrainConfig) -> None:
    rbm = PretrainConfig(method="rbm")
    with pytest.raises(UserError, match=r"pretrain.method=rbm with model.activation=relu"):
        replace(config, pretrain=rbm, model=replace(SIGMOID, activation="relu"))
    with pytest.raises(UserError, match=r"init=x and pretrain.method=rbm cannot work together"):
        replace(config, pretrain=rbm, init="x")
