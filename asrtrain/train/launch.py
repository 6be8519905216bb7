"""Starting processes with PyTorch's own launcher, the engine of `torchrun`."""

import ctypes
import logging
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig as ElasticConfig
from torch.distributed.launcher.api import elastic_launch

from asrtrain.io.errors import UserError
from asrtrain.io.log import log_to_terminal
from asrtrain.onebit.transport import (
    LocalTransport,
    PeerLostError,
    ProcessGroupTransport,
    Transport,
)
from asrtrain.train.config import LaunchConfig
from asrtrain.train.environment import processes, rank

log = logging.getLogger(__name__)


ROLL_CALL_SECONDS = 3
"""How long process 0 waits for the others to say that they are alive, once one is missed; they
take four times as long, so that its answer, which knows of all, is the first."""

_LAUNCHER_LOGS = (
    "torch.distributed.elastic.agent.server.api",
    "torch.distributed.elastic.multiprocessing.api",
    "torch.distributed.launcher.api",
)
"""Of PyTorch's launcher, which would tell of a failure in many lines; ours are in the error."""


def launch(config: LaunchConfig, worker: Callable[..., None], *arguments: Any) -> None:
    """Run `worker(*arguments)` in `config.nproc` processes; return when all are done.

    Raises UserError, naming the process that failed first, after the others were stopped.
    """
    elastic = ElasticConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=config.nproc,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        run_id=f"asrtrain-{os.getpid()}",
        max_restarts=0,
        monitor_interval=0.1,
        start_method="spawn",
    )
    for name in _LAUNCHER_LOGS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # A killed worker leaves semaphores, which Python's tracker frees; its warning helps nobody.
    os.environ.setdefault("PYTHONWARNINGS", "ignore::UserWarning:multiprocessing.resource_tracker")
    try:
        elastic_launch(elastic, _started)(worker, *arguments)
    except ChildFailedError as error:
        failed, failure = error.get_first_failure()
        if failure.exitcode == -signal.SIGINT:
            raise KeyboardInterrupt from None
        raise UserError(f"process {failed} of {config.nproc} failed: {_reason(failure)}") from None
    except SignalException:
        raise KeyboardInterrupt from None


@contextmanager
def process_group(config: LaunchConfig) -> Iterator[Transport]:
    """The transport among the processes; a single one needs no group.

    The group is destroyed on success only: after an error the others may still be in a collective,
    and waiting for them would hang; the process just ends. Raises UserError, naming them, when
    others are gone or late.
    """
    torch.set_num_threads(config.threads)
    if processes() == 1:
        yield LocalTransport()
        return
    backend = "cpu:gloo,cuda:nccl" if config.device == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=config.timeout_s))
    patience = timedelta(seconds=4 * ROLL_CALL_SECONDS)
    roll_call = dist.new_group(backend="gloo", timeout=patience)
    try:
        yield ProcessGroupTransport()
    except RuntimeError as error:
        if not _tells_of_a_lost_peer(error):
            raise
        raise UserError(_who_is_missing(roll_call, config.timeout_s)) from error
    dist.destroy_process_group()


def _tells_of_a_lost_peer(error: RuntimeError) -> bool:
    """Of our own collectives, or one within the layers of a split model.

    NCCL's errors are of a type of their own; gloo's can be known by its source file alone.
    """
    return isinstance(error, PeerLostError | dist.DistError) or "/gloo/" in str(error)


def _who_is_missing(roll_call: dist.ProcessGroup, timeout_s: int) -> str:
    """Call the roll, in a group of its own, which no collective can have upset; name the silent."""
    patience, begin = timedelta(seconds=ROLL_CALL_SECONDS), monotonic()
    try:
        dist.monitored_barrier(roll_call, patience, wait_all_ranks=True)
    except RuntimeError as error:
        if rank():  # if process 0 is there, its answer is better: let the launcher see it first
            sleep(max(0.0, begin + 4 * ROLL_CALL_SECONDS - monotonic()))
        named = re.search(r"[Rr]anks? ([\d, ]+) failed to pass", str(error))
        silent = named[1].strip() if named else "0"
        return (
            f"process {silent} is gone, or did not answer within launch.timeout_s={timeout_s}; "
            "start again to go on from the newest checkpoint"
        )
    return (
        f"the processes lost each other for launch.timeout_s={timeout_s}, but all are alive: is "
        "one of them, or the network, that slow? Start again to go on from the newest checkpoint"
    )


def _started(worker: Callable[..., None], *arguments: Any) -> None:
    """First steps of a launched process."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker at once, without a word
    if rank() == 0:
        log_to_terminal()
    worker(*arguments)


def _die_with_parent() -> None:
    """Ask Linux to end this process when the launcher dies, even by SIGKILL: no orphans."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _reason(failure: Any) -> str:
    """The exception that the worker recorded, or how it ended."""
    if failure.exitcode < 0:
        return f"killed by {signal.Signals(-failure.exitcode).name}"
    message = failure.message
    held = message.get("message", message) if isinstance(message, dict) else message
    return str(held)
