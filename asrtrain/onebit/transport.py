"""Moving messages between processes: one collective, and a count of the bytes that it puts out.

K workers run in W processes, K / W in each: process p runs the workers p K/W to (p + 1) K/W - 1.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor


class PeerLostError(RuntimeError):
    """Another process is gone, or late by more than the group's time-out."""


class Transport(Protocol):
    """Carries messages, 1-D int32 tensors, between `size` processes."""

    rank: int
    """This process's number."""
    size: int
    """W."""
    bytes_sent: int
    """Payload handed to other processes since the transport was made."""

    def exchange(self, messages: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        """Send `messages[p]` to process p; return what process p sent, of `lengths[p]` words.

        A collective: every process must enter it, in the same order of calls.
        """


class LocalTransport:
    """A single process, which sends to itself alone."""

    rank = 0
    size = 1
    bytes_sent = 0

    def exchange(self, messages: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        """Return the message."""
        return list(messages)


class ProcessGroupTransport:
    """The processes of a torch.distributed group (default: all of them)."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self.bytes_sent = 0

    def exchange(self, messages: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        """One all-to-all with uneven splits.

        Raises PeerLostError if a peer is gone, or late by more than the group's time-out.
        """
        outgoing = torch.cat(list(messages))
        incoming = outgoing.new_empty(sum(lengths))
        sizes = [message.numel() for message in messages]
        try:
            dist.all_to_all_single(incoming, outgoing, list(lengths), sizes, group=self.group)
        except RuntimeError as error:
            raise PeerLostError(str(error)) from error
        self.bytes_sent += (sum(sizes) - sizes[self.rank]) * outgoing.element_size()
        return list(torch.split(incoming, list(lengths)))


def sum_over_workers(values: Sequence[Sequence[float]], transport: Transport) -> list[float]:
    """Sum, over all workers, each of the values that every worker has.

    `values` has one row for each worker of this process. Summed in float64 and worker order: the
    same bits for all, on any number of processes. A collective.
    """
    own = torch.tensor([list(row) for row in values], dtype=torch.float64)
    totals = torch.zeros(own.shape[1], dtype=torch.float64)
    message = own.flatten().view(torch.int32)
    lengths = [message.numel()] * transport.size
    for received in transport.exchange([message] * transport.size, lengths):
        for row in received.view(torch.float64).view(own.shape):
            totals += row
    return [float(total) for total in totals]
