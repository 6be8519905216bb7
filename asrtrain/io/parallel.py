"""Work in `nj` processes: independent jobs, and workers that keep their state between calls.

Processes are spawned, not forked, since torch's threads do not survive a fork. A UserError raised
in a process is raised again in the caller; the processes end with the `with` block.
"""

import itertools
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, TypeVar

from asrtrain.io.errors import UserError
from asrtrain.io.progress import progress

J = TypeVar("J")
R = TypeVar("R")

KILLED = "a process was killed, perhaps for lack of memory; give a smaller nj="

_SPAWN = multiprocessing.get_context("spawn")


def map_jobs(
    function: Callable[[J], R], jobs: Sequence[J], nj: int, description: str, unit: str
) -> Iterator[R]:
    """Yield `function(job)` for every job, in the order of `jobs`, computed in `nj` processes.

    `function` and the jobs must pickle; with one process or one job it runs in this one. A bar
    counts the jobs.
    """
    if nj == 1 or len(jobs) <= 1:
        yield from progress(map(function, jobs), description, len(jobs), unit)
        return
    with ProcessPoolExecutor(min(nj, len(jobs)), _SPAWN, _ignore_interrupt) as pool:
        try:
            yield from progress(pool.map(function, jobs), description, len(jobs), unit)
        except BrokenProcessPool as error:
            raise UserError(f"{description}: {KILLED}") from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def split_evenly(items: Sequence[J], parts: int) -> list[Sequence[J]]:
    """Cut `items` into at most `parts` contiguous, non-empty runs, sizes differing by at most 1."""
    parts = min(parts, len(items))
    bounds = [len(items) * part // parts for part in range(parts + 1)] if parts else [0]
    return [items[begin:end] for begin, end in itertools.pairwise(bounds)]


class Workers:
    """One process for each of `arguments`, holding the object `factory(argument)`.

    A single one is held in this process.

    >>> with Workers(Counter, [first, second]) as workers:
    ...     counts = workers.call("count", "pattern")  # one result per worker, in order
    """

    def __init__(self, factory: Callable[[J], Any], arguments: Sequence[J]) -> None:
        self._held = [factory(argument) for argument in arguments] if len(arguments) == 1 else []
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        if not self._held:
            for argument in arguments:
                self._start(factory, argument)

    def _start(self, factory: Callable[[J], Any], argument: J) -> None:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_serve, args=(theirs, factory, argument), daemon=True)
        process.start()
        theirs.close()
        self._connections.append(ours)
        self._processes.append(process)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call `method(*arguments)` on every worker's object at once; return all results.

        Raises what the first of the failing workers raised.
        """
        here = [getattr(held, method)(*arguments) for held in self._held]
        try:
            for connection in self._connections:
                connection.send((method, arguments))
            # All replies are taken before any is looked at, so that none is left for the next call.
            replies = [connection.recv() for connection in self._connections]
        except (EOFError, ConnectionError) as error:
            raise UserError(f"{method}: {KILLED}") from error
        return here + [_result(reply) for reply in replies]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for connection, process in zip(self._connections, self._processes, strict=True):
            connection.close()
            if kind is not None:
                process.terminate()
            process.join()


def _serve(connection: Connection, factory: Callable[[Any], Any], argument: Any) -> None:
    _ignore_interrupt()
    held: Any = None
    while True:
        try:
            method, arguments = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            held = factory(argument) if held is None else held
            connection.send((True, getattr(held, method)(*arguments)))
        except Exception as error:
            connection.send((False, error))


def _result(reply: tuple[bool, Any]) -> Any:
    succeeded, value = reply
    if not succeeded:
        raise value
    return value


def _ignore_interrupt() -> None:
    """Leave Ctrl-C to the parent, which ends its processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
