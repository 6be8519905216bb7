"""Momentum on stripes against the recurrence in float64 and its laws."""

import math

import torch

from asrtrain.train.momentum import momentum_for


def test_the_recurrence_in_float64() -> None:
    optimizer = momentum_for([(2, 3)], time_constant=100.0)
    optimizer.rate = 0.5
    generator = torch.Generator().manual_seed(0)
    velocity = torch.zeros(2, 3, dtype=torch.float64)
    for frames in (10, 50, 3):
        gradient = torch.randn(2, 3, generator=generator)
        keep = math.exp(-frames / 100)
        velocity = keep * velocity + (1 - keep) * gradient.double()
        (update,) = optimizer.update([gradient], frames)
        torch.testing.assert_close(update.double(), -0.5 * velocity)


def test_without_a_time_constant_it_is_plain_descent() -> None:
    optimizer = momentum_for([(1, 2)], time_constant=0.0)
    optimizer.rate = 0.1
    (update,) = optimizer.update([torch.tensor([[1.0, -2.0]])], 256)
    torch.testing.assert_close(update, torch.tensor([[-0.1, 0.2]]))


def test_a_constant_gradient_is_followed_at_the_same_rate_at_any_minibatch_size() -> None:
    """Unit gain: once at speed, a frame moves the parameters by rate times its gradient."""
    for frames in (16, 256):
        optimizer = momentum_for([(1, 1)], time_constant=1000.0)
        optimizer.rate = 0.1
        for _ in range(20_000 // frames):
            (update,) = optimizer.update([torch.tensor([[2.0 * frames]])], frames)
        torch.testing.assert_close(update / frames, torch.tensor([[-0.2]]), rtol=1e-4, atol=0)


def test_state_undoes_updates() -> None:
    optimizer = momentum_for([(1, 2)], time_constant=100.0)
    optimizer.rate = 1.0
    optimizer.update([torch.ones(1, 2)], 10)
    state = optimizer.state()
    (wanted,) = optimizer.update([torch.ones(1, 2)], 10)
    optimizer.load_state(state)
    (again,) = optimizer.update([torch.ones(1, 2)], 10)
    assert torch.equal(again, wanted)
