"""Jobs and workers: order, errors, and that nothing depends on how many there are."""

import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrtrain.io.errors import UserError
from asrtrain.io.parallel import Workers, map_jobs, split_evenly


def square(number: int) -> int:
    if number < 0:
        raise UserError(f"{number}: expected 0 or more")
    return number * number


@pytest.mark.parametrize("nj", [1, 3])
def test_results_come_in_the_order_of_the_jobs(nj: int) -> None:
    assert list(map_jobs(square, range(20), nj, "squares", "numbers")) == [n * n for n in range(20)]
    assert list(map_jobs(square, [], nj, "squares", "numbers")) == []


@pytest.mark.parametrize("nj", [1, 2])
def test_a_users_mistake_comes_through(nj: int) -> None:
    with pytest.raises(UserError, match="-1: expected 0 or more"):
        list(map_jobs(square, [2, -1, 3], nj, "squares", "numbers"))


def end_process(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_one_line() -> None:
    with pytest.raises(UserError, match=r"squares: a process was killed, .* give a smaller nj="):
        list(map_jobs(end_process, range(4), 2, "squares", "numbers"))


class Adder:
    """Keeps a sum between calls."""

    def __init__(self, start: int) -> None:
        if start < 0:
            raise UserError("negative start")
        self.total = start

    def add(self, number: int) -> int:
        self.total += square(number)
        return self.total

    def process(self) -> int:
        return os.getpid()

    def root(self) -> float:
        if self.total == 0:
            raise ValueError("no root of nothing")
        return self.total**0.5

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("starts", [[5], [1, 2, 3]])
def test_workers_keep_their_state(starts: list[int]) -> None:
    with Workers(Adder, starts) as workers:
        assert workers.call("add", 2) == [start + 4 for start in starts]
        assert workers.call("add", 1) == [start + 5 for start in starts]
        processes = workers.call("process")
    own = os.getpid()
    assert processes == [own] if len(starts) == 1 else own not in processes
    for process in set(processes) - {own}:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


@pytest.mark.parametrize("starts", [[1], [1, 2]])
def test_workers_errors_come_through(starts: list[int]) -> None:
    with Workers(Adder, starts) as workers, pytest.raises(UserError, match="-3: expected"):
        workers.call("add", -3)


def test_after_an_error_the_next_call_has_its_own_results() -> None:
    with Workers(Adder, [0, 4, 9]) as workers:
        with pytest.raises(ValueError, match="no root of nothing"):
            workers.call("root")
        assert workers.call("add", 1) == [1, 5, 10]


def test_a_killed_worker_is_one_line() -> None:
    with (
        Workers(Adder, [1, 2]) as workers,
        pytest.raises(UserError, match=r"end: a process was killed, .* give a smaller nj="),
    ):
        workers.call("end")


def fail_to_start(starts: list[int]) -> None:
    with Workers(Adder, starts) as workers:
        workers.call("add", 1)


@pytest.mark.parametrize("starts", [[-1], [1, -1]])
def test_errors_at_the_start_come_through(starts: list[int]) -> None:
    with pytest.raises(UserError, match="negative start"):
        fail_to_start(starts)


@given(st.integers(0, 50), st.integers(1, 20))
def test_splits_are_even_complete_and_in_order(size: int, parts: int) -> None:
    split = split_evenly(range(size), parts)
    assert [each for part in split for each in part] == list(range(size))
    assert len(split) == min(size, parts)
    assert all(split)
    if split:
        assert max(map(len, split)) - min(map(len, split)) <= 1
