"""The owner's optimizer against recurrences in float64 and its laws."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from asrtrain.io.errors import UserError
from asrtrain.train.optimizer import StripeOptimizer
from asrtrain.train.optimizer_config import OptimizerConfig

PLAIN = OptimizerConfig(momentum=0.0)
COUNTS = (10, 50, 3, 50)


def optimizer_for(config: OptimizerConfig, stripe: Tensor, rate: float = 0.5) -> StripeOptimizer:
    optimizer = StripeOptimizer(config, [stripe], [stripe], workers=2)
    optimizer.begin_epoch(rate, epoch=0, minibatch=50)
    return optimizer


def gradients() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 3, generator=generator) for _ in COUNTS]


def test_momentum_is_the_recurrence_in_float64() -> None:
    optimizer = optimizer_for(OptimizerConfig(momentum=100.0), torch.zeros(2, 3))
    velocity = torch.zeros(2, 3, dtype=torch.float64)
    for gradient, frames in zip(gradients(), COUNTS, strict=True):
        keep = math.exp(-frames / 100)
        velocity = keep * velocity + (1 - keep) * gradient.double()
        torch.testing.assert_close(optimizer.update(0, gradient, frames).double(), -0.5 * velocity)


def test_without_momentum_it_is_plain_descent() -> None:
    update = optimizer_for(PLAIN, torch.zeros(1, 2)).update(0, torch.tensor([[1.0, -2.0]]), 256)
    torch.testing.assert_close(update, torch.tensor([[-0.5, 1.0]]))


def test_a_constant_gradient_is_followed_at_the_same_rate_at_any_minibatch_size() -> None:
    """Unit gain: once at speed, a frame moves the parameters by rate times its gradient."""
    for frames in (16, 256):
        optimizer = optimizer_for(OptimizerConfig(momentum=1000.0), torch.zeros(1, 1))
        for _ in range(20_000 // frames):
            update = optimizer.update(0, torch.tensor([[2.0 * frames]]), frames)
        torch.testing.assert_close(update / frames, torch.tensor([[-1.0]]), rtol=1e-4, atol=0)


def test_momentum_of_a_minibatch_is_that_of_its_two_halves() -> None:
    config = OptimizerConfig(momentum=0.9, momentum_unit="minibatch")
    for parts in (1, 2):
        optimizer = optimizer_for(config, torch.zeros(1, 1), rate=1.0)
        optimizer.update(0, torch.ones(1, 1), 50 // parts)
        first = float(optimizer.velocities[0])
        for _ in range(parts):
            optimizer.update(0, torch.zeros(1, 1), 50 // parts)
        assert float(optimizer.velocities[0]) == pytest.approx(0.9 * first)


def test_the_momentum_profile_goes_by_epoch_and_its_last_value_stays() -> None:
    config = OptimizerConfig(momentum_profile=[100.0, 200.0])
    optimizer = StripeOptimizer(config, [torch.zeros(1, 1)], [], workers=1)
    for epoch, wanted in ((0, 100), (1, 200), (5, 200)):
        optimizer.begin_epoch(1.0, epoch, minibatch=64)
        assert optimizer.time_constant == wanted


def normalized_by_hand(values: list[Tensor]) -> list[Tensor]:
    """Each value over the root of the mean, so far, of value squared over frames, in float64."""
    squares = [value.double().square() / n for value, n in zip(values, COUNTS, strict=True)]
    means = [torch.stack(squares[: i + 1]).mean(dim=0) for i in range(len(squares))]
    return [value.double() / mean.sqrt() for value, mean in zip(values, means, strict=True)]


def test_adagrad_on_the_aggregate_in_float64() -> None:
    optimizer = optimizer_for(replace(PLAIN, adagrad="aggregate"), torch.zeros(2, 3))
    wanted = normalized_by_hand(gradients())
    for gradient, frames, want in zip(gradients(), COUNTS, wanted, strict=True):
        torch.testing.assert_close(optimizer.update(0, gradient, frames).double(), -0.5 * want)


def test_adagrad_after_momentum_in_float64() -> None:
    config = OptimizerConfig(momentum=100.0, adagrad="smoothed")
    optimizer, velocity = optimizer_for(config, torch.zeros(2, 3)), torch.zeros(2, 3).double()
    velocities = []
    for gradient, frames in zip(gradients(), COUNTS, strict=True):
        keep = math.exp(-frames / 100)
        velocity = keep * velocity + (1 - keep) * gradient.double()
        velocities.append(velocity)
    wanted = normalized_by_hand(velocities)
    for gradient, frames, want in zip(gradients(), COUNTS, wanted, strict=True):
        torch.testing.assert_close(optimizer.update(0, gradient, frames).double(), -0.5 * want)


def test_partial_adagrad_is_each_workers_own() -> None:
    optimizer = optimizer_for(replace(PLAIN, adagrad="partial"), torch.zeros(2, 3))
    wanted = normalized_by_hand(gradients())
    for gradient, frames, want in zip(gradients(), COUNTS, wanted, strict=True):
        got = optimizer.prepared(0, 0, gradient, frames)
        torch.testing.assert_close(got.double(), want)
        assert torch.equal(optimizer.update(0, got, frames), got * -0.5)
    alone = optimizer.prepared(1, 0, gradients()[0], COUNTS[0])
    torch.testing.assert_close(alone.double(), wanted[0])


def test_adagrad_moves_as_far_a_frame_at_any_minibatch_size() -> None:
    for frames in (16, 256):
        generator = torch.Generator().manual_seed(1)
        optimizer = optimizer_for(replace(PLAIN, adagrad="aggregate"), torch.zeros(1, 1000))
        for _ in range(100):  # independent frames, each with a gradient of size 3
            total = 3 * math.sqrt(frames) * torch.randn(1, 1000, generator=generator)
            update = optimizer.update(0, total, frames)
        assert float(update.square().mean() / frames) == pytest.approx(0.25, rel=0.1)


def test_adagrads_floor_bounds_what_it_divides_by() -> None:
    config = replace(PLAIN, adagrad="aggregate", adagrad_floor=0.5)
    update = optimizer_for(config, torch.zeros(1, 2)).update(0, torch.tensor([[1e-3, 0.0]]), 1)
    torch.testing.assert_close(update, torch.tensor([[-1e-3, 0.0]]))


def test_clipping_and_decay_are_by_frame() -> None:
    config = replace(PLAIN, clip_value=0.1, weight_decay=0.01)
    stripe = torch.tensor([[2.0, -1.0]])
    update = optimizer_for(config, stripe).update(0, torch.tensor([[5.0, -0.5]]), 10)
    torch.testing.assert_close(update, torch.tensor([[-0.5 * (1 + 0.2), -0.5 * (-0.5 - 0.1)]]))


@pytest.mark.parametrize("adagrad", ["partial", "aggregate", "smoothed"])
def test_state_undoes_updates(adagrad: str) -> None:
    optimizer = optimizer_for(OptimizerConfig(adagrad=adagrad), torch.zeros(2, 3))

    def take(gradient: Tensor) -> Tensor:
        return optimizer.update(0, optimizer.prepared(1, 0, gradient, 10), 10)

    take(gradients()[0])
    owner, worker = optimizer.owner_state(), optimizer.worker_state(1)
    wanted = take(gradients()[1])
    optimizer.load_owner_state(owner)
    optimizer.load_worker_state(1, worker)
    assert torch.equal(take(gradients()[1]), wanted)


def test_a_momentum_that_does_not_fit_its_unit_is_refused() -> None:
    with pytest.raises(UserError, match=r"optimizer.momentum=2000.0 and optimizer.momentum_unit"):
        OptimizerConfig(momentum_unit="minibatch")
