"""The striped exchange of some of the parameters: encode, sum, update, encode, share out.

K workers run in W processes, K / W in each. Every matrix is cut into one stripe of rows a process,
whose owner sums the workers' sub-gradients in worker order. Levels and residuals belong to rows, so
the cut leaves no trace in the result: it depends on K and not on W.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import torch
from torch import Tensor

from asrtrain.onebit.codec import Codec
from asrtrain.onebit.quantize import is_finite
from asrtrain.onebit.stripes import Stripe, stripes_of
from asrtrain.onebit.transport import Transport

NON_FINITE = -1
"""In place of the frame count: this worker's sub-gradient was NaN or infinite and is left out."""

Update = Callable[[int, Tensor, int], Tensor]
"""(parameter's number, summed gradient of the owned rows, frames) to what is added to the rows."""


@dataclass(frozen=True)
class EncodedUpdate:
    """What a bucket's exchange ends with, the same in every process; not yet added to the model."""

    frames: int
    """Frames of the minibatch, over all workers whose gradients count."""
    non_finite: int
    """Workers whose sub-gradient, and stripes whose update, was NaN or infinite and left out."""
    rows: list[Tensor]
    """(R, words a row) int32 for each parameter: the encoded rows of the whole update."""


@dataclass
class Bucket:
    """Some of the parameters, whose gradients are exchanged together.

    `matrices` are views (R, C) of the parameters, `numbers` tell which parameters they are.
    `workers` is K / W, the workers of this process.
    """

    numbers: list[int]
    matrices: list[Tensor]
    codec: Codec
    transport: Transport
    workers: int
    seconds: dict[str, float]
    """Time spent by kind; shared with the other buckets."""
    residuals: list[list[Tensor]] = field(default_factory=list)
    """Of each worker of this process, for each matrix. By default both kinds are zeros."""
    update_residuals: list[Tensor] = field(default_factory=list)
    """Of each owned stripe."""

    def __post_init__(self) -> None:
        shapes = [_shape(each) for each in self.matrices]
        self.stripes = stripes_of(shapes, self.transport.size, self.numbers)
        if not self.residuals:
            self.use(self.codec)

    @property
    def owned(self) -> list[Stripe]:
        """This process's stripe of each matrix."""
        return self.stripes[self.transport.rank]

    def use(self, codec: Codec) -> None:
        """Go on with `codec`, from residuals of zero."""
        self.codec = codec
        device = self.matrices[0].device
        shapes = [_shape(each) for each in self.matrices]
        self.residuals = [
            [codec.new_residual(shape, device) for shape in shapes] for _ in range(self.workers)
        ]
        self.update_residuals = [
            codec.new_residual((each.end - each.begin, columns), device)
            for each, (_, columns) in zip(self.owned, shapes, strict=True)
        ]

    def exchange(
        self, gradients: Sequence[Sequence[Tensor]], frames: Sequence[int], update: Update
    ) -> EncodedUpdate:
        """Exchange the gradients (R, C) of each of this process's workers; a collective.

        A worker without frames takes part with zeros. One whose gradients hold a NaN or an infinity
        takes part with zeros as well and says so: its residuals stay clean, and no other worker's
        share is lost.
        """
        received = self._send_gradients(gradients, frames)
        with timed(self.seconds, "update"):
            counts = [int(count) for count in torch.stack([each[0] for each in received]).tolist()]
            total = sum(max(count, 0) for count in counts)
            sums = self._sum([message[1:] for message in received])
            updates = [
                update(number, each, total) if each.numel() else each
                for number, each in zip(self.numbers, sums, strict=True)
            ]
        rows, lost = self._send_updates(updates)
        return EncodedUpdate(total, counts.count(NON_FINITE) + lost, rows)

    def apply(self, update: EncodedUpdate) -> None:
        """Add the decoded update to the parameters."""
        for rows, matrix in zip(update.rows, self.matrices, strict=True):
            self.codec.decode_add_(rows, matrix)

    def words(self, owned: Sequence[Stripe]) -> int:
        """Length in 32-bit words of what encodes the stripes `owned`."""
        return sum(
            (each.end - each.begin) * self.codec.row_words(self.matrices[each.matrix].shape[1])
            for each in owned
        )

    def wire_bytes(self, workers: int) -> int:
        """Bytes that an exchange puts on the wire, were each of that many workers a machine."""
        shapes = [_shape(each) for each in self.matrices]
        words = sum(self.words(owned) for owned in stripes_of(shapes, workers))
        return 8 * (workers - 1) * (words + workers)

    def _send_gradients(
        self, gradients: Sequence[Sequence[Tensor]], frames: Sequence[int]
    ) -> list[Tensor]:
        """Encode and send; return the K messages for the owned stripes, in worker order."""
        with timed(self.seconds, "quantize"):
            encoded = [
                self._encode(*each) for each in zip(gradients, frames, self.residuals, strict=True)
            ]
            outgoing = [_joined(parts) for parts in zip(*encoded, strict=True)]
            length = 1 + self.words(self.owned)
        received = self._carry(outgoing, [self.workers * length] * self.transport.size)
        return [part for each in received for part in each.view(self.workers, length)]

    def _encode(
        self, gradients: Sequence[Tensor], frames: int, residuals: list[Tensor]
    ) -> list[Tensor]:
        """One worker's message for each owner: frame count, then the encoded stripes."""
        if not all(is_finite(each) for each in gradients):
            gradients, frames = [torch.zeros_like(each) for each in gradients], NON_FINITE
        rows = [
            self.codec.encode(gradient, residual)
            for gradient, residual in zip(gradients, residuals, strict=True)
        ]
        header = _header(frames, rows[0].device)
        return [
            _joined(
                [header, *(rows[each.matrix][each.begin : each.end].flatten() for each in owned)]
            )
            for owned in self.stripes
        ]

    def _sum(self, messages: list[Tensor]) -> list[Tensor]:
        """Sum the workers' decoded stripes in worker order: the same bits on every run."""
        totals = [
            torch.zeros(each.end - each.begin, matrix.shape[1], device=matrix.device)
            for each, matrix in zip(self.owned, self.matrices, strict=True)
        ]
        for message in messages:
            for part, total in zip(self._parts(message, self.owned), totals, strict=True):
                if total.numel():
                    self.codec.decode_add_(part, total)
        return totals

    def _send_updates(self, updates: list[Tensor]) -> tuple[list[Tensor], int]:
        """Encode and send to all; return the whole matrices' encoded rows, and the number lost."""
        with timed(self.seconds, "quantize"):
            lost, rows = self._encoded_updates(updates)
            header = _header(lost, rows[0].device)
            message = _joined([header, *(each.flatten() for each in rows)])
            lengths = [1 + self.words(owned) for owned in self.stripes]
        received = self._carry([message] * self.transport.size, lengths)
        losses = torch.stack([each[0] for each in received]).sum()
        return self._assembled([each[1:] for each in received]), int(losses)

    def _encoded_updates(self, updates: list[Tensor]) -> tuple[int, list[Tensor]]:
        """How many hold a NaN or an infinity, and the encoded rows; zeros for those."""
        lost, rows = 0, []
        for each, residual in zip(updates, self.update_residuals, strict=True):
            finite = is_finite(each)
            lost += not finite
            rows.append(self.codec.encode(each if finite else torch.zeros_like(each), residual))
        return lost, rows

    def _assembled(self, messages: list[Tensor]) -> list[Tensor]:
        """The owners' rows of every matrix, one below the other."""
        parts: list[list[tuple[int, Tensor]]] = [[] for _ in self.matrices]
        for message, owned in zip(messages, self.stripes, strict=True):
            for stripe, part in zip(owned, self._parts(message, owned), strict=True):
                parts[stripe.matrix].append((stripe.begin, part))
        ordered = [sorted(each, key=lambda part: part[0]) for each in parts]
        return [_joined([rows for _, rows in each]) for each in ordered]

    def _parts(self, message: Tensor, owned: list[Stripe]) -> list[Tensor]:
        """A message's encoded rows of each stripe."""
        parts = torch.split(message, [self.words([stripe]) for stripe in owned])
        return [
            part.view(each.end - each.begin, self.words([Stripe(each.matrix, 0, 1)]))
            for part, each in zip(parts, owned, strict=True)
        ]

    def _carry(self, messages: list[Tensor], lengths: list[int]) -> list[Tensor]:
        with timed(self.seconds, "exchange"):
            return self.transport.exchange(messages, lengths)


def as_matrix(tensor: Tensor, tie: str = "output") -> Tensor:
    """A view of (rows that share levels, columns); a vector is one row."""
    if tensor.dim() < 2:
        return tensor.view(1, -1)
    matrix = tensor.view(tensor.shape[0], math.prod(tensor.shape[1:]))
    return matrix.t() if tie == "input" else matrix


class timed:
    """Adds the time of a `with` block to `seconds[key]`."""

    def __init__(self, seconds: dict[str, float], key: str) -> None:
        self._seconds, self._key = seconds, key

    def __enter__(self) -> None:
        self._begin = perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._key] += perf_counter() - self._begin


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _header(count: int, device: torch.device) -> Tensor:
    return torch.tensor([count], dtype=torch.int32, device=device)


def _shape(matrix: Tensor) -> tuple[int, int]:
    return matrix.shape[0], matrix.shape[1]
