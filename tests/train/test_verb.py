"""The verb `train` on small sets: in this process, on several workers, and when things go wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from asrtrain.frames.order import FrameOrder
from asrtrain.frames.shards import FrameSet
from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import load_model, log_priors_from_counts, new_model
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.onebit.replicas import digest
from asrtrain.train.config import LaunchConfig, ParallelConfig, TrainConfig, TrainerConfig
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
        trainer=TrainerConfig(minibatch=16),
        optimizer=OptimizerConfig(momentum=50.0),
        schedule=ScheduleConfig(learning_rate=0.02, max_epochs=3),
    )


def summary(config: TrainConfig) -> dict:
    return json.loads((Path(config.out) / "summary.json").read_text())


def epochs_of(config: TrainConfig) -> list[dict]:
    return [json.loads(line) for line in (Path(config.out) / "metrics.jsonl").open()]


def plain_torch_training(config: TrainConfig) -> list[torch.Tensor]:
    """One worker's float32 training as a loop over torch's own SGD.

    torch's momentum v = m v + g with rate r (1 - m) takes the same steps as unit gain at rate r;
    it has one factor m, so the epoch's last, smaller minibatch is left out in both.
    """
    data = FrameSet(Path(config.frames))
    priors = log_priors_from_counts(torch.from_numpy(data.pdf_counts))
    network = new_model(config.model, data.dim, priors, config.trainer.seed).network
    keep = np.exp(-config.trainer.minibatch / config.optimizer.momentum)
    rate = config.schedule.learning_rate * (1 - keep)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=keep)
    order = FrameOrder(data.shard_frames, config.trainer.seed)
    for minibatch in order.minibatches(0, data.num_frames, config.trainer.minibatch):
        features, labels = data.batch(minibatch, 1, 1)
        optimizer.zero_grad()
        scores = network(torch.from_numpy(features))
        cross_entropy(scores, torch.from_numpy(labels).long(), reduction="sum").backward()
        optimizer.step()
    return [each.detach() for each in network.parameters()]


def test_one_float32_worker_is_torchs_own_sgd(config: TrainConfig, tmp_path: Path) -> None:
    """In 100 steps, of one epoch."""
    even = str(make_set(tmp_path / "even", [16 * 100], seed=1))
    config = replace(config, frames=even, schedule=replace(config.schedule, max_epochs=1))
    train(config)
    trained = load_model(Path(config.out) / "final.pt").network
    for got, wanted in zip(trained.parameters(), plain_torch_training(config), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", ["float32", "onebit"])
def test_it_learns_and_writes_what_it_says(config: TrainConfig, method: str) -> None:
    config = replace(config, exchange=ExchangeConfig(method=method))
    train(config)
    figures, lines = summary(config), epochs_of(config)
    assert figures["dev_frame_accuracy"] > 0.6 > 2 / SENONES
    assert (figures["exchange"], figures["workers"]) == (method, 1)
    assert figures["wire_bytes_per_step"] == 0
    assert figures["steps"] == 3 * -(-277 // 16)
    accepted = [line for line in lines if line["accepted"]]
    assert figures["dev_loss"] == pytest.approx(accepted[-1]["dev_loss"], rel=1e-6)
    model = load_model(Path(config.out) / "final.pt")
    assert digest(list(model.network.parameters())) == figures["sha256"]


def test_same_seed_same_bits_another_seed_others(config: TrainConfig, tmp_path: Path) -> None:
    digests = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run = replace(config, out=str(tmp_path / name), trainer=replace(config.trainer, seed=seed))
        train(run)
        digests.append(summary(run)["sha256"])
    assert digests[0] == digests[1] != digests[2]


def test_a_rejected_epoch_leaves_no_trace(config: TrainConfig, tmp_path: Path) -> None:
    """A rate that makes the loss rise is rejected; what is kept is the start: equal posteriors."""
    wild = replace(config, schedule=ScheduleConfig(learning_rate=50.0, max_epochs=1))
    train(wild)
    assert [line["accepted"] for line in epochs_of(wild)] == [False]
    assert summary(wild)["dev_loss"] == pytest.approx(np.log(SENONES), rel=1e-6)


def test_a_nan_in_the_features_stops_training_with_advice(
    config: TrainConfig, tmp_path: Path
) -> None:
    features = Path(config.frames) / "000.features.npy"
    spoilt = np.load(features)
    spoilt[:] = np.nan
    np.save(features, spoilt)
    strict = replace(config, trainer=replace(config.trainer, max_non_finite_steps=2))
    with pytest.raises(UserError, match=r"NaN or infinite for 3 steps.*schedule.learning_rate"):
        train(strict)
    assert not Path(config.out).exists()


def test_sets_that_do_not_belong_together_are_named(config: TrainConfig) -> None:
    index = Path(config.dev) / "frames.json"
    index.write_text(index.read_text().replace('"num_senones": 5', '"num_senones": 6'))
    with pytest.raises(UserError, match=r"num_senones 5 but .*dev has 6"):
        train(config)


@pytest.mark.parametrize(
    ("shards", "nproc", "workers", "said"),
    [
        (1, 2, 3, r"exchange.workers=3 and launch.nproc=2 .* evenly over the processes"),
        (2, 3, 0, r"parallel.model=2 and launch.nproc=3 .* takes 2 processes"),
        (2, 4, 3, r"exchange.workers=3 and launch.nproc=4 .* replicas, of which there are 2"),
    ],
)
def test_workers_replicas_and_processes_must_fit(
    config: TrainConfig, shards: int, nproc: int, workers: int, said: str
) -> None:
    wrong = replace(
        config,
        exchange=ExchangeConfig(workers=workers),
        parallel=ParallelConfig(model=shards),
        launch=LaunchConfig(nproc=nproc),
    )
    with pytest.raises(UserError, match=said):
        train(wrong)


@pytest.mark.parametrize(("nproc", "workers"), [(1, 0), (1, 4), (2, 4)])
def test_powersgd_takes_a_process_for_every_worker(
    config: TrainConfig, nproc: int, workers: int
) -> None:
    exchange = ExchangeConfig(method="powersgd", workers=workers)
    wrong = replace(config, exchange=exchange, launch=LaunchConfig(nproc=nproc))
    with pytest.raises(UserError, match=r"exchange.method=powersgd.* launch.nproc=.* process for"):
        train(wrong)


def test_powersgd_does_not_go_with_a_split_model(config: TrainConfig) -> None:
    powersgd = ExchangeConfig(method="powersgd")
    with pytest.raises(UserError, match=r"exchange.method=powersgd and parallel.model=2"):
        replace(config, exchange=powersgd, parallel=ParallelConfig(model=2))


def two_workers(config: TrainConfig, method: str) -> TrainConfig:
    return replace(
        config,
        exchange=ExchangeConfig(method=method),
        launch=LaunchConfig(nproc=2),
        trainer=replace(config.trainer, check_replicas=True),
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["float32", "onebit"])
def test_two_workers(config: TrainConfig, tmp_path: Path, method: str) -> None:
    """Replicas are compared after every step; two runs give the same bits."""
    digests = []
    for name in ("a", "b"):
        run = replace(two_workers(config, method), out=str(tmp_path / name))
        train(run)
        digests.append(summary(run)["sha256"])
    assert digests[0] == digests[1]
    assert summary(run)["dev_frame_accuracy"] > 0.6
    alone = replace(config, exchange=ExchangeConfig(method=method))
    train(alone)
    assert summary(run)["dev_loss"] == pytest.approx(summary(alone)["dev_loss"], rel=0.1)
    if method == "float32":
        pair, single = (load_model(Path(each.out) / "final.pt").network for each in (run, alone))
        for a, b in zip(pair.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_powersgd_sends_less_and_learns_as_well(config: TrainConfig, tmp_path: Path) -> None:
    wide = replace(config, model=replace(config.model, hidden=[64, 64]))
    figures = {}
    for name in ("float32", "powersgd", "again"):
        run = two_workers(wide, "float32" if name == "float32" else "powersgd")
        run = replace(run, out=str(tmp_path / name))
        train(run)
        figures[name] = summary(run)
    exact, low_rank = figures["float32"], figures["powersgd"]
    assert low_rank["sha256"] == figures["again"]["sha256"]
    assert low_rank["wire_bytes_per_step"] < 0.3 * exact["wire_bytes_per_step"]
    assert low_rank["dev_loss"] == pytest.approx(exact["dev_loss"], rel=0.1)


@pytest.mark.slow
def test_more_workers_than_frames_at_an_epochs_end(config: TrainConfig, tmp_path: Path) -> None:
    few = str(make_set(tmp_path / "few", [33], seed=1))  # the last minibatch is one frame
    run = replace(two_workers(config, "onebit"), frames=few)
    train(run)
    assert epochs_of(run)[0]["frames"] == 33


def command(config: TrainConfig, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "asrtrain", "train"),
        *(f"frames={config.frames}", f"dev={config.dev}", f"out={config.out}"),
        *("launch.nproc=2", *more),
    ]


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def children_of(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(each) for each in path.read_text().split()]


def training_workers(process: int) -> list[int]:
    """The launched workers among a launcher's children (spawn also starts a resource tracker)."""
    return [
        each
        for each in children_of(process)
        if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()
    ]


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        ("interrupt", "exchange=onebit"),
        ("kill", "exchange=onebit"),
        ("kill", "exchange=powersgd"),
        ("kill", "parallel.model=2"),
    ],
)
def test_ended_in_the_middle_it_leaves_no_orphans_and_goes_on(
    config: TrainConfig, tmp_path: Path, ending: str, kind: str
) -> None:
    """Stopped after an epoch and started again, it ends with the bits of a run left alone."""
    epochs = ("schedule.max_epochs=30", "schedule.min_epochs=30", kind)
    process = subprocess.Popen(
        command(config, *epochs),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(config.out).parent,
    )
    partial = Path(config.out).parent / ".dnn.partial"
    wait_for(lambda: list(partial.glob("checkpoints/step-*")))
    started = training_workers(process.pid)
    assert len(started) == 2
    if ending == "interrupt":
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in errors
        assert errors.splitlines()[-1] == "asrtrain: train: interrupted"
    else:
        os.kill(started[-1], signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert errors.splitlines()[-1].startswith("asrtrain: error: train: process ")
    wait_for(lambda: all(has_ended(each) for each in started))
    assert not Path(config.out).exists()
    again = subprocess.run(command(config, *epochs), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "going on from step" in again.stderr
    assert not (Path(config.out) / "checkpoints").exists()
    left_alone = replace(config, out=str(tmp_path / "alone"))
    subprocess.run(command(left_alone, *epochs), check=True)
    assert summary(config)["sha256"] == summary(left_alone)["sha256"]
    assert [each["epoch"] for each in epochs_of(config)] == list(range(1, 31))


@pytest.mark.slow
def test_a_launcher_that_is_killed_takes_its_workers_with_it(config: TrainConfig) -> None:
    endless = command(config, "schedule.max_epochs=100000", "schedule.min_epochs=100000")
    process = subprocess.Popen(endless, stderr=subprocess.PIPE, text=True)
    partial = Path(config.out).parent / ".dnn.partial"
    wait_for(lambda: list(partial.glob("checkpoints/step-*")))
    started = training_workers(process.pid)
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: all(has_ended(each) for each in started))


@pytest.mark.slow
@pytest.mark.parametrize(("late", "shards"), [(0, 1), (2, 1), (2, 3)])
def test_a_late_process_is_named_and_stops_the_others(
    config: TrainConfig, late: int, shards: int
) -> None:
    endless = command(config, "schedule.max_epochs=100000", "schedule.min_epochs=100000")
    three = ("launch.nproc=3", "launch.timeout_s=3", f"parallel.model={shards}")
    process = subprocess.Popen([*endless, *three], stderr=subprocess.PIPE, text=True)
    partial = Path(config.out).parent / ".dnn.partial"
    wait_for(lambda: list(partial.glob("checkpoints/step-*")))
    started = training_workers(process.pid)
    os.kill(sorted(started)[late], signal.SIGSTOP)  # started one after the other, by rank
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"process {late} is gone, or did not answer within" in errors.splitlines()[-1]
    wait_for(lambda: all(has_ended(each) for each in started))
    assert list(partial.glob("checkpoints/step-*"))


@pytest.mark.slow
def test_under_torchrun_it_is_the_same_run(config: TrainConfig, tmp_path: Path) -> None:
    ours, theirs = (
        replace(config, out=str(tmp_path / "a")),
        replace(config, out=str(tmp_path / "b")),
    )
    subprocess.run(command(ours, "schedule.max_epochs=1"), check=True)
    torchrun = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        *("-m", "asrtrain.train", f"frames={config.frames}", f"dev={config.dev}"),
        *(f"out={theirs.out}", "schedule.max_epochs=1"),
    ]
    subprocess.run(torchrun, check=True)
    assert summary(ours)["sha256"] == summary(theirs)["sha256"]
    assert summary(theirs)["workers"] == 2
    again = subprocess.run(torchrun, check=True, capture_output=True, text=True)
    assert "is complete, skipped" in again.stderr
