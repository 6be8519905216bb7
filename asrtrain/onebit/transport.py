"""Moving messages between workers: one collective, and a count of the bytes that it puts out."""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor


class Transport(Protocol):
    """Carries messages, 1-D int32 tensors, between `workers` workers."""

    rank: int
    workers: int
    bytes_sent: int
    """Payload handed to other workers since the transport was made."""

    def exchange(self, messages: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        """Send `messages[k]` to worker k; return what worker k sent, of `lengths[k]` words.

        A collective: every worker must enter it, in the same order of calls.
        """


class LocalTransport:
    """A single worker, which sends to itself alone."""

    rank = 0
    workers = 1
    bytes_sent = 0

    def exchange(self, messages: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        """Return the message."""
        return list(messages)


class ProcessGroupTransport:
    """The workers of a torch.distributed process group (default: all of them)."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self.rank = dist.get_rank(group)
        self.workers = dist.get_world_size(group)
        self.bytes_sent = 0

    def exchange(self, messages: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        """One all-to-all with uneven splits.

        Raises RuntimeError if a peer is gone, or late by more than the group's time-out.
        """
        outgoing = torch.cat(list(messages))
        incoming = outgoing.new_empty(sum(lengths))
        sizes = [message.numel() for message in messages]
        dist.all_to_all_single(incoming, outgoing, list(lengths), sizes, group=self._group)
        self.bytes_sent += (sum(sizes) - sizes[self.rank]) * outgoing.element_size()
        return list(torch.split(incoming, list(lengths)))


def sum_over_workers(values: Sequence[float], transport: Transport) -> list[float]:
    """Sum each of `values` over the workers in float64 and rank order: the same bits for all.

    A collective.
    """
    own = torch.tensor(list(values), dtype=torch.float64).view(torch.int32)
    received = transport.exchange([own] * transport.workers, [own.numel()] * transport.workers)
    totals = torch.zeros(len(values), dtype=torch.float64)
    for each in received:
        totals += each.view(torch.float64)
    return [float(total) for total in totals]
