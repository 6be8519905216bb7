"""Processes as threads of the test, so that the exchange is tested without processes."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from torch import Tensor

T = TypeVar("T")


class ThreadTransport:
    """One of several transports that share a table of messages."""

    def __init__(self, rank: int, table: list, barrier: Barrier) -> None:
        self.rank, self.size, self.bytes_sent = rank, len(table), 0
        self._table, self._barrier = table, barrier

    def exchange(self, messages: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        self._table[self.rank] = list(messages)
        self.bytes_sent += sum(4 * each.numel() for each in messages) - (
            4 * messages[self.rank].numel()
        )
        self._barrier.wait(timeout=60)
        received = [sent[self.rank].clone() for sent in self._table]
        self._barrier.wait(timeout=60)
        assert [each.numel() for each in received] == list(lengths)
        return received


def run_workers(workers: int, function: Callable[[ThreadTransport], T]) -> list[T]:
    """`function` on each worker at the same time; their results in rank order."""
    table, barrier = [None] * workers, Barrier(workers)
    transports = [ThreadTransport(rank, table, barrier) for rank in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, transports))
