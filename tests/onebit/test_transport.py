"""The process-group transport on real gloo processes."""

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from asrtrain.onebit.codec import QuantizingCodec
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.replicas import ReplicasDifferError, check_replicas, digest
from asrtrain.onebit.transport import LocalTransport, ProcessGroupTransport, sum_over_workers
from tests.onebit.processes import free_port
from tests.onebit.test_exchange import descend, steps, tensors


def worker(rank: int, workers: int, port: int, out: Path) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=workers)
    transport = ProcessGroupTransport()
    parameters = tensors(seed=99)
    exchange = StripedExchange(parameters, QuantizingCodec(), transport)
    for step in range(5):
        exchange.step([tensors(seed=100 * step + rank)], [4], descend)
        check_replicas(parameters, transport)
    assert transport.bytes_sent > 0
    assert sum_over_workers([[rank + 0.5], [1]], transport) == [sum(range(workers)) + 1.5 * workers]
    torch.save(parameters, out / f"{rank}.pt")
    parameters[0][0, 0] += 1e-7 * rank
    with pytest.raises(ReplicasDifferError, match=r"\[2\]"):
        check_replicas([parameters[0] if rank == 2 else torch.zeros(1)], transport)
    dist.destroy_process_group()


@pytest.mark.slow
def test_gloo_processes_give_the_same_bits_as_threads(tmp_path: Path) -> None:
    mp.spawn(worker, (3, free_port(), tmp_path), nprocs=3)
    wanted = steps(QuantizingCodec(), 3, 5)[0]
    for rank in range(3):
        got = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))


def test_digest_is_of_the_bytes_in_order() -> None:
    one, two = torch.tensor([1.0]), torch.tensor([2.0])
    assert digest([one, two]) == digest([torch.tensor([1.0, 2.0])])
    assert digest([one, two]) != digest([two, one])
    assert digest([torch.tensor([0.0])]) != digest([torch.tensor([-0.0])])


def test_local_transport_returns_the_message() -> None:
    message = torch.arange(3, dtype=torch.int32)
    assert LocalTransport().exchange([message], [3])[0] is message
    assert sum_over_workers([[1.5, 2.0], [1.0, 0.5]], LocalTransport()) == [2.5, 2.5]
