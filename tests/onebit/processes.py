"""A function on several processes of a gloo group."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_processes(count: int, function: Callable[[], Any], directory: Path) -> list[Any]:
    """`function`, of a module's top level, in `count` processes; what it returns, by rank."""
    mp.spawn(_work, (count, free_port(), function, directory), nprocs=count)
    return [torch.load(directory / f"{rank}.pt", weights_only=True) for rank in range(count)]


def _work(rank: int, count: int, port: int, function: Callable[[], Any], directory: Path) -> None:
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=count)
    torch.save(function(), directory / f"{rank}.pt")
    dist.destroy_process_group()
