"""The striped exchange: how K workers take one deterministic step of SGD together.

Every worker encodes its whole sub-gradient and sends each owner its stripe; the owner decodes and
sums the K stripes in worker order, turns the sum into an update, encodes that with a residual of
its own and sends it to all; every replica, the owner's too, adds the *decoded* update to its model.
So replicas stay bit-identical, and the data sent per worker does not grow with K
(Seide et al. 2014, section 3.1).

The K workers run in W processes, K / W in each; the result depends on K and not on W.
"""

import math
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

import torch
from torch import Tensor

from asrtrain.onebit.background import Background
from asrtrain.onebit.bucket import Bucket, EncodedUpdate, Update, as_matrix
from asrtrain.onebit.codec import Codec
from asrtrain.onebit.stripes import Stripe
from asrtrain.onebit.transport import Transport

T = TypeVar("T")

BUCKET_BYTES = 25 << 20
"""Gradients are exchanged as soon as so many bytes of them are there (as torch's DDP does)."""


@dataclass(frozen=True)
class StepReport:
    """What all workers know of a step once it is done."""

    frames: int
    """Frames of the minibatch, over all workers."""
    non_finite: int
    """How many sub-gradients and updates were NaN or infinite, and were left out."""


class StripedExchange:
    """Takes steps on `parameters`, which every process must hold with the same values.

    `workers` is K, by default the number of processes W, of which it must be a multiple. A
    parameter of more than one dimension is a matrix of its first dimension by the rest; a vector is
    one row. The parameters must be contiguous.

    With `overlap`, buckets are exchanged in a thread of their own, so that back-propagation goes on
    meanwhile; the result is the same. No other collective may be started before `wait`.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        codec: Codec,
        transport: Transport,
        workers: int | None = None,
        bucket_bytes: int = BUCKET_BYTES,
        overlap: bool = False,
    ) -> None:
        self.workers = workers or transport.size
        if self.workers % transport.size:
            raise ValueError(
                f"{self.workers} workers cannot be spread evenly over {transport.size} processes"
            )
        self.transport, self.codec = transport, codec
        self.seconds = dict.fromkeys(("quantize", "exchange", "update", "apply", "wait"), 0.0)
        self.parameters = [each.detach() for each in parameters]
        self.matrices = [as_matrix(each, codec.tie) for each in self.parameters]
        self._buckets = [
            self._bucket(numbers) for numbers in _in_buckets(self.matrices, bucket_bytes)
        ]
        self._place = {
            number: (bucket, place)
            for bucket, each in enumerate(self._buckets)
            for place, number in enumerate(each.numbers)
        }
        self._background = Background(torch.get_num_threads()) if overlap else None

    @property
    def form(self) -> str:
        """What travels, in words."""
        return f"{self.codec.bits} bit(s) a value"

    @property
    def local_workers(self) -> range:
        """The numbers of the workers that this process runs."""
        share = self.workers // self.transport.size
        return range(self.transport.rank * share, (self.transport.rank + 1) * share)

    @property
    def owned(self) -> list[Stripe]:
        """This process's stripe of each parameter."""
        return [
            Stripe(number, owned.begin, owned.end)
            for number, owned in self._in_order([each.owned for each in self._buckets])
        ]

    @property
    def residuals(self) -> list[list[Tensor]]:
        """What each worker of this process still owes of its sub-gradients, by parameter."""
        return [
            [each for _, each in self._in_order([bucket.residuals[w] for bucket in self._buckets])]
            for w in range(len(self.local_workers))
        ]

    @property
    def update_residuals(self) -> list[Tensor]:
        """What this process still owes of the updates of its stripes, by parameter."""
        held = self._in_order([bucket.update_residuals for bucket in self._buckets])
        return [each for _, each in held]

    def use(self, codec: Codec) -> None:
        """Go on with another codec (of the same `tie`), from residuals of zero."""
        self.codec = codec
        for bucket in self._buckets:
            bucket.use(codec)

    def wire_bytes(self) -> int:
        """Bytes that a step puts on the wire between K machines; none goes to the sender itself."""
        return sum(each.wire_bytes(self.workers) for each in self._buckets)

    def start(self, update: Update, frames: Sequence[int]) -> "Round":
        """Begin a step, for which each worker of this process has `frames` frames."""
        return Round(self._buckets, self._place, self._background, update, frames)

    def step(
        self, gradients: Sequence[Sequence[Tensor]], frames: Sequence[int], update: Update
    ) -> StepReport:
        """Take a whole step on the `gradients` of each worker of this process.

        Gradients are sums over a worker's `frames`. A worker that has run out of data takes part
        with `frames` 0 and gradients of zero.
        """
        step = self.start(update, frames)
        for worker, own in enumerate(gradients):
            for number in reversed(range(len(own))):
                step.add(worker, number, own[number])
        return self.finish(step)

    def finish(self, step: "Round") -> StepReport:
        """Wait for a step's exchange and add its update to the parameters."""
        begin = perf_counter()
        updates = step.wait()
        arrived = perf_counter()
        for bucket, each in zip(self._buckets, updates, strict=True):
            bucket.apply(each)
        if self._background:
            self.seconds["wait"] += arrived - begin
        self.seconds["apply"] += perf_counter() - arrived
        return StepReport(updates[0].frames, max(each.non_finite for each in updates))

    def restored(self, updates: Sequence[dict[str, Any]]) -> "Round":
        """The step whose `Round.encoded` gave `updates`, to be finished."""
        arrived: list[Future[EncodedUpdate]] = [Future() for _ in updates]
        for future, each in zip(arrived, updates, strict=True):
            future.set_result(EncodedUpdate(**each))
        return Round([], {}, None, _nothing_to_update, [], arrived)

    @property
    def overlaps(self) -> bool:
        """Whether the exchange has a thread of its own."""
        return self._background is not None

    def worker_state(self, worker: int) -> dict[str, Any]:
        """Copies of what belongs to one of this process's workers."""
        return {"residuals": [each.clone() for each in self.residuals[worker]]}

    def owner_state(self) -> dict[str, Any]:
        """Copies of what belongs to the owned stripes."""
        return {"residuals": [each.clone() for each in self.update_residuals]}

    def load_worker_state(self, worker: int, state: dict[str, Any]) -> None:
        """Go back to what `worker_state` returned."""
        _copy_residuals(self.residuals[worker], state["residuals"])

    def load_owner_state(self, state: dict[str, Any]) -> None:
        """Go back to what `owner_state` returned."""
        _copy_residuals(self.update_residuals, state["residuals"])

    def residual_norm(self, worker: int) -> float:
        """Euclidean norm of what this process's worker still owes of its sub-gradients."""
        return math.sqrt(sum(float(each.square().sum()) for each in self.residuals[worker]))

    def _bucket(self, numbers: list[int]) -> Bucket:
        matrices = [self.matrices[number] for number in numbers]
        workers = len(self.local_workers)
        return self._new_bucket(
            numbers, matrices, self.codec, self.transport, workers, self.seconds
        )

    def _new_bucket(self, *parts: Any) -> Bucket:
        return Bucket(*parts)

    def _in_order(self, by_bucket: Sequence[Sequence[T]]) -> list[tuple[int, T]]:
        """(parameter's number, item) in the order of the parameters, of items kept by bucket."""
        return [
            (number, by_bucket[bucket][place])
            for number, (bucket, place) in sorted(self._place.items())
        ]


class Round:
    """A step under way. A bucket is exchanged once all workers have added all of its gradients.

    Buckets are exchanged in the order of their numbers, whatever the order of `add`: the same in
    every process.
    """

    def __init__(
        self,
        buckets: list[Bucket],
        place: dict[int, tuple[int, int]],
        background: Background | None,
        update: Update,
        frames: Sequence[int],
        arrived: Sequence[Future[EncodedUpdate]] = (),
    ) -> None:
        self._buckets, self._place, self._background = buckets, place, background
        self._update, self._frames = update, list(frames)
        self._gradients: list[list[list[Tensor | None]]] = [
            [[None] * len(bucket.numbers) for _ in frames] for bucket in buckets
        ]
        self._missing = [len(bucket.numbers) * len(frames) for bucket in buckets]
        self._updates = list(arrived)

    def add(self, worker: int, number: int, gradient: Tensor) -> None:
        """The gradient of parameter `number` from this process's worker `worker`, 0 being first."""
        bucket, place = self._place[number]
        self._gradients[bucket][worker][place] = gradient
        self._missing[bucket] -= 1
        while len(self._updates) < len(self._missing) and not self._missing[len(self._updates)]:
            self._launch(len(self._updates))

    def wait(self) -> list[EncodedUpdate]:
        """The buckets' updates, when all are there; a collective's error is raised here."""
        return [each.result() for each in self._updates]

    def encoded(self) -> list[dict[str, Any]]:
        """The step's update, the same in every process, as plain types and tensors."""
        return [vars(each) for each in self.wait()]

    def _launch(self, number: int) -> None:
        bucket, tie = self._buckets[number], self._buckets[number].codec.tie
        gradients = [
            [as_matrix(each, tie) for each in own if each is not None]
            for own in self._gradients[number]
        ]
        self._gradients[number] = []
        if self._background:
            work = self._background.submit(bucket.exchange, gradients, self._frames, self._update)
        else:
            work = Future()
            work.set_result(bucket.exchange(gradients, self._frames, self._update))
        self._updates.append(work)


def _copy_residuals(own: list[Tensor], saved: list[Tensor]) -> None:
    """What is owed; nothing, if `saved` is of the float32 exchange of a warm start that is over."""
    for to, each in zip(own, saved, strict=True):
        to.copy_(each) if each.shape == to.shape else to.zero_()


def _nothing_to_update(number: int, total: Tensor, frames: int) -> Tensor:
    raise RuntimeError("this step's update has arrived already")


def _in_buckets(matrices: Sequence[Tensor], bucket_bytes: int) -> list[list[int]]:
    """Parameters' numbers, last first, as gradients arrive, in runs of at least `bucket_bytes`."""
    buckets: list[list[int]] = [[]]
    filled = 0
    for number in reversed(range(len(matrices))):
        if filled >= bucket_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(number)
        filled += 4 * matrices[number].numel()
    return buckets
