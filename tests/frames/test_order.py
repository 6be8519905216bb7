"""Every frame comes once an epoch, in an order that only seed and epoch decide."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.frames.order import FrameOrder, share

shards = st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(sum)


@given(shards, st.integers(1, 50), st.integers(1, 3), st.integers(0, 5))
def test_minibatches_cover_the_set_once(
    shard_frames: list[int], size: int, window: int, epoch: int
) -> None:
    order = FrameOrder(shard_frames, seed=1, window_shards=window)
    batches = list(order.minibatches(epoch, size))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    assert 1 <= len(batches[-1]) <= size
    assert len(batches) == order.steps(size)
    assert sorted(np.concatenate(batches)) == list(range(sum(shard_frames)))


@given(shards, st.integers(1, 50))
def test_the_order_does_not_depend_on_the_minibatch_size(
    shard_frames: list[int], size: int
) -> None:
    order = FrameOrder(shard_frames, seed=3, window_shards=2)
    whole = np.concatenate(list(order.minibatches(1, 10**6)))
    np.testing.assert_array_equal(np.concatenate(list(order.minibatches(1, size))), whole)


def test_seed_and_epoch_change_the_order() -> None:
    orders = [
        tuple(next(FrameOrder([100], seed).minibatches(epoch, 100)))
        for seed, epoch in ((1, 1), (1, 2), (2, 1))
    ]
    assert len(set(orders)) == 3
    assert orders[0] == tuple(next(FrameOrder([100], 1).minibatches(1, 100)))


def test_a_window_holds_whole_shards() -> None:
    """Frames of one window of shards come before those of the next."""
    order = FrameOrder([10, 10, 10, 10], seed=1, window_shards=2)
    (stream,) = order.minibatches(1, 40)
    assert len({frame // 10 for frame in stream[:20]}) == 2


@given(st.integers(0, 100), st.integers(1, 16))
def test_shares_partition_a_minibatch(size: int, workers: int) -> None:
    minibatch = np.arange(size)
    parts = [share(minibatch, rank, workers) for rank in range(workers)]
    np.testing.assert_array_equal(np.concatenate(parts), minibatch)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
