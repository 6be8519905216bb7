"""Every frame comes once a pass, in an order that only the seed decides."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.frames.order import FrameOrder, share

shards = st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(sum)


@given(shards, st.integers(1, 50), st.integers(1, 3), st.integers(0, 5))
def test_minibatches_of_a_pass_cover_the_set_once(
    shard_frames: list[int], size: int, window: int, number: int
) -> None:
    order, frames = FrameOrder(shard_frames, seed=1, window_shards=window), sum(shard_frames)
    batches = list(order.minibatches(number * frames, (number + 1) * frames, size))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    assert 1 <= len(batches[-1]) <= size
    assert sorted(np.concatenate(batches)) == list(range(frames))


@given(shards, st.integers(1, 50), st.integers(0, 200), st.integers(1, 200))
def test_any_part_in_any_size_is_a_part_of_the_one_stream(
    shard_frames: list[int], size: int, begin: int, length: int
) -> None:
    order = FrameOrder(shard_frames, seed=3, window_shards=2)
    (stream,) = order.minibatches(0, begin + length, 10**6)
    part = np.concatenate(list(order.minibatches(begin, begin + length, size)))
    np.testing.assert_array_equal(part, stream[begin:])


def test_seed_and_pass_change_the_order() -> None:
    orders = [
        tuple(next(FrameOrder([100], seed).minibatches(begin, begin + 100, 100)))
        for seed, begin in ((1, 0), (1, 100), (2, 0))
    ]
    assert len(set(orders)) == 3
    assert orders[0] == tuple(next(FrameOrder([100], 1).minibatches(0, 100, 100)))


def test_a_window_holds_whole_shards() -> None:
    """Frames of one window of shards come before those of the next."""
    order = FrameOrder([10, 10, 10, 10], seed=1, window_shards=2)
    (stream,) = order.minibatches(0, 40, 40)
    assert len({frame // 10 for frame in stream[:20]}) == 2


@given(st.integers(0, 100), st.integers(1, 16))
def test_shares_partition_a_minibatch(size: int, workers: int) -> None:
    minibatch = np.arange(size)
    parts = [share(minibatch, rank, workers) for rank in range(workers)]
    np.testing.assert_array_equal(np.concatenate(parts), minibatch)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
