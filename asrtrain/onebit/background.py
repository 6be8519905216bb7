"""A thread that does one thing after the other, in the order in which they were given."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Background:
    """A daemon thread, so that a process whose peers are gone can end while it waits for them."""

    def __init__(self, torch_threads: int) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]]
        self._queue = SimpleQueue()
        Thread(target=self._work, args=(torch_threads,), name="exchange", daemon=True).start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Call `function(*arguments)` once all before it is done."""
        future: Future[T] = Future()
        self._queue.put((future, function, arguments))
        return future

    def _work(self, torch_threads: int) -> None:
        torch.set_num_threads(torch_threads)  # a setting of each thread, not of the process
        while True:
            future, function, arguments = self._queue.get()
            try:
                future.set_result(function(*arguments))
            except BaseException as error:  # raised again where the result is asked for
                future.set_exception(error)
