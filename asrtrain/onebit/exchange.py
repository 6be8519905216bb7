"""The striped exchange: how K workers take one deterministic step of SGD together.

Every worker encodes its whole sub-gradient and sends each owner its stripe; the owner decodes and
sums the K stripes in rank order, turns the sum into an update, encodes that with a residual of its
own and sends it to all; every worker, the owner too, adds the *decoded* update to its model. So
replicas stay bit-identical, and the data sent per worker does not grow with K
(Seide et al. 2014, section 3.1).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from asrtrain.onebit.codec import Codec
from asrtrain.onebit.stripes import Stripe, stripes_of
from asrtrain.onebit.transport import Transport

NON_FINITE = -1
"""In place of the frame count: this worker's sub-gradient was NaN or infinite and is left out."""

Update = Callable[[list[Tensor], int], list[Tensor]]
"""(summed gradient of each owned stripe, frames of the minibatch) to what is added to each."""


@dataclass(frozen=True)
class StepReport:
    """What all workers know of a step once it is done."""

    frames: int
    """Frames of the minibatch, over all workers."""
    non_finite: int
    """How many workers had a NaN or infinite sub-gradient, which was left out."""


class StripedExchange:
    """Takes steps on `parameters`, which every worker must hold with the same values.

    A parameter of more than one dimension is a matrix of its first dimension by the rest; a vector
    is one row. The parameters must be contiguous.
    """

    def __init__(self, parameters: Sequence[Tensor], codec: Codec, transport: Transport) -> None:
        self._matrices = [_as_matrix(parameter.detach()) for parameter in parameters]
        self._codec = codec
        self._transport = transport
        self._stripes = stripes_of([_shape(each) for each in self._matrices], transport.workers)
        self._device = self._matrices[0].device
        self._residuals = [
            codec.new_residual(_shape(each), self._device) for each in self._matrices
        ]
        self._update_residuals = [
            codec.new_residual(shape, self._device) for shape in self.owned_shapes()
        ]
        self.seconds = {"encode": 0.0, "wait": 0.0, "aggregate": 0.0, "apply": 0.0}

    @property
    def owned(self) -> list[Stripe]:
        """This worker's stripes, one of each parameter; the order of an update's tensors."""
        return self._stripes[self._transport.rank]

    def owned_shapes(self) -> list[tuple[int, int]]:
        """(rows, columns) of each owned stripe, for the optimizer's state."""
        return [(each.end - each.begin, self._columns(each)) for each in self.owned]

    def wire_bytes(self) -> int:
        """Bytes that a step puts on the wire, over all workers; none goes to the sender itself."""
        words = sum(self._words(owned) for owned in self._stripes)
        workers = self._transport.workers
        return 4 * (workers - 1) * (2 * words + workers)

    def step(self, gradients: Sequence[Tensor], frames: int, update: Update) -> StepReport:
        """Exchange this worker's `gradients` (sums over its `frames`) and update the parameters.

        A worker that has run out of data takes part with zero gradients and `frames` 0. A worker
        whose gradients hold a NaN or an infinity takes part with zeros as well and says so: its
        residuals stay clean, and no other worker's share is lost.
        """
        matrices = [_as_matrix(gradient) for gradient in gradients]
        if not bool(torch.isfinite(torch.stack([each.sum() for each in matrices])).all()):
            matrices, frames = [torch.zeros_like(each) for each in matrices], NON_FINITE
        received = self._send_gradients(matrices, frames)
        counts = [int(message[0]) for message in received]
        report = StepReport(sum(max(count, 0) for count in counts), counts.count(NON_FINITE))
        begin = perf_counter()
        updates = update(self._sum([message[1:] for message in received]), report.frames)
        self.seconds["aggregate"] += perf_counter() - begin
        self._apply(self._send_updates(updates))
        return report

    def state(self) -> dict[str, list[Tensor]]:
        """Copies of both residuals, so that a rejected step or epoch can be undone."""
        return {
            "residuals": [each.clone() for each in self._residuals],
            "update_residuals": [each.clone() for each in self._update_residuals],
        }

    def load_state(self, state: dict[str, list[Tensor]]) -> None:
        """Put back what `state` returned."""
        for own, saved in zip(self._residuals, state["residuals"], strict=True):
            own.copy_(saved)
        for own, saved in zip(self._update_residuals, state["update_residuals"], strict=True):
            own.copy_(saved)

    def residual_norm(self) -> float:
        """Euclidean norm of what this worker's sub-gradient still owes."""
        return math.sqrt(sum(float(each.square().sum()) for each in self._residuals))

    def _send_gradients(self, matrices: list[Tensor], frames: int) -> list[Tensor]:
        begin = perf_counter()
        rows = [
            self._codec.encode(matrix, residual)
            for matrix, residual in zip(matrices, self._residuals, strict=True)
        ]
        header = torch.tensor([frames], dtype=torch.int32, device=self._device)
        messages = [
            torch.cat(
                [header, *(rows[each.matrix][each.begin : each.end].flatten() for each in owned)]
            )
            for owned in self._stripes
        ]
        self.seconds["encode"] += perf_counter() - begin
        length = 1 + self._words(self.owned)
        return self._carry(messages, [length] * self._transport.workers)

    def _sum(self, messages: list[Tensor]) -> list[Tensor]:
        """Sum the workers' decoded stripes in rank order: the same bits on every run."""
        totals = [torch.zeros(shape, device=self._device) for shape in self.owned_shapes()]
        for message in messages:
            self._decode_add_(message, self.owned, totals)
        return totals

    def _send_updates(self, updates: list[Tensor]) -> list[Tensor]:
        begin = perf_counter()
        rows = [
            self._codec.encode(each, residual).flatten()
            for each, residual in zip(updates, self._update_residuals, strict=True)
        ]
        message = torch.cat(rows)
        self.seconds["encode"] += perf_counter() - begin
        lengths = [self._words(owned) for owned in self._stripes]
        return self._carry([message] * self._transport.workers, lengths)

    def _apply(self, messages: list[Tensor]) -> None:
        begin = perf_counter()
        for message, owned in zip(messages, self._stripes, strict=True):
            rows = [self._matrices[each.matrix][each.begin : each.end] for each in owned]
            self._decode_add_(message, owned, rows)
        self.seconds["apply"] += perf_counter() - begin

    def _carry(self, messages: list[Tensor], lengths: list[int]) -> list[Tensor]:
        begin = perf_counter()
        received = self._transport.exchange(messages, lengths)
        self.seconds["wait"] += perf_counter() - begin
        return received

    def _decode_add_(self, message: Tensor, owned: list[Stripe], outs: list[Tensor]) -> None:
        """Add what a message says of the stripes `owned` to `outs`, one tensor a stripe."""
        parts = torch.split(message, [self._words([stripe]) for stripe in owned])
        for part, out in zip(parts, outs, strict=True):
            if part.numel():
                self._codec.decode_add_(part.view(out.shape[0], -1), out)

    def _words(self, owned: list[Stripe]) -> int:
        return sum(
            (each.end - each.begin) * self._codec.row_words(self._columns(each)) for each in owned
        )

    def _columns(self, stripe: Stripe) -> int:
        return self._matrices[stripe.matrix].shape[1]


def _as_matrix(tensor: Tensor) -> Tensor:
    """A view of (rows, columns); a vector is one row."""
    return tensor.view(1, -1) if tensor.dim() < 2 else tensor.view(tensor.shape[0], -1)


def _shape(matrix: Tensor) -> tuple[int, int]:
    return matrix.shape[0], matrix.shape[1]
