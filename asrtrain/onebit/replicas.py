"""Proof that all workers hold the same bits."""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from asrtrain.onebit.transport import Transport


class ReplicasDifferError(RuntimeError):
    """The workers' parameters are not bit-identical: an error in the program, not in its input."""


def digest(tensors: Sequence[Tensor]) -> str:
    """SHA-256 of the tensors' bytes, in order, as hexadecimal."""
    sha = hashlib.sha256()
    for tensor in tensors:
        sha.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return sha.hexdigest()


def check_replicas(tensors: Sequence[Tensor], transport: Transport) -> None:
    """Compare the workers' digests; a collective. Raises ReplicasDifferError on all of them."""
    own = torch.frombuffer(bytearray.fromhex(digest(tensors)), dtype=torch.int32)
    received = transport.exchange([own] * transport.size, [own.numel()] * transport.size)
    differing = [rank for rank, each in enumerate(received) if not torch.equal(each, received[0])]
    if differing:
        raise ReplicasDifferError(f"parameters of workers {differing} differ from worker 0's")
