"""PowerSGD, torch's own hook, as a peer for comparison: matrices travel as two factors of low rank.

After Vogels, Karimireddy, Jaggi: "PowerSGD: practical low-rank gradient compression for distributed
optimization", NeurIPS 2019. The hook is written for DDP's buckets; all that it asks of one is here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
    PowerSGDState,
    powerSGD_hook,
)

from asrtrain.onebit.bucket import Bucket, EncodedUpdate, Update, timed
from asrtrain.onebit.codec import Float32Codec
from asrtrain.onebit.exchange import BUCKET_BYTES, StripedExchange
from asrtrain.onebit.quantize import is_finite
from asrtrain.onebit.stripes import Stripe
from asrtrain.onebit.transport import ProcessGroupTransport, sum_over_workers

LEAST_SAVING = 2
"""A matrix travels as factors if they are that many times smaller (torch's default)."""

MEMORIES = ("error_dict", "p_memory_dict", "q_memory_dict")
"""What PowerSGDState remembers from step to step, by bucket."""


class PowerSgd:
    """Sums gradients over the processes of a group, one worker in each.

    `rank` is that of a matrix's approximation; gradients are like `parameters`. A matrix that it
    would not make half as small, and every vector, travels in float32.
    """

    def __init__(
        self, rank: int, parameters: Sequence[Tensor], group: dist.ProcessGroup | None = None
    ) -> None:
        # The hook's first steps are uncompressed because DDP changes its buckets then. No bucket
        # changes here, so that they count as done. The epsilon is for a gradient of zero.
        self._state = PowerSGDState(
            group,
            matrix_approximation_rank=rank,
            start_powerSGD_iter=2,
            orthogonalization_epsilon=1e-8,
            min_compression_rate=LEAST_SAVING,
        )
        self._state.iter = 2
        self._shapes = [each.shape for each in parameters]
        self._size, self._device = dist.get_world_size(group), parameters[0].device
        length = sum(each.numel() for each in parameters)
        self._state.error_dict[0] = torch.zeros(length, device=self._device)

    @property
    def owed(self) -> list[Tensor]:
        """What this process still owes of each gradient."""
        return _Bucket(self._state.error_dict[0], self._shapes).gradients()

    def reduce(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The sum over the processes of each gradient, approximately; a collective.

        Gradients must be finite; the results are float32 and the same bits in every process.
        """
        values = torch.cat([each.float().flatten() for each in gradients])
        bucket: Any = _Bucket(values, self._shapes)
        mean = powerSGD_hook(self._state, bucket).wait()
        sums = _Bucket(mean * self._size, self._shapes).gradients()
        return [total.view(each.shape) for total, each in zip(sums, gradients, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Copies of this process's memories and random state, as tensors and numbers."""
        _, keys, position, has_gauss, cached = self._state.rng.get_state(legacy=True)
        return {
            "iter": self._state.iter,
            "rng_keys": torch.from_numpy(np.asarray(keys).astype(np.int64)),
            "rng_rest": [int(position), int(has_gauss), float(cached)],
            **{name: _copies(getattr(self._state, name), self._device) for name in MEMORIES},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from what this process's `state_dict` gave, with as many processes."""
        self._state.iter = saved["iter"]
        keys = saved["rng_keys"].numpy().astype(np.uint32)
        self._state.rng.set_state(("MT19937", keys, *saved["rng_rest"]))
        for name in MEMORIES:
            setattr(self._state, name, _copies(saved[name], self._device))


@dataclass
class PowerSgdBucket(Bucket):
    """Some of the parameters, whose gradients are approximated together.

    Every process gets the whole sum, so that all take the same update and none need be sent.
    """

    rank: int = field(kw_only=True)
    group: dist.ProcessGroup | None = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        everything = [Stripe(place, 0, each.shape[0]) for place, each in enumerate(self.matrices)]
        self.stripes = [everything for _ in range(self.transport.size)]
        self.powersgd = PowerSgd(self.rank, self.matrices, self.group)
        self.residuals = [self.powersgd.owed]

    def exchange(
        self, gradients: Sequence[Sequence[Tensor]], frames: Sequence[int], update: Update
    ) -> EncodedUpdate:
        """Sum the gradients (R, C) of all processes' workers, one in each; a collective.

        One whose gradients hold a NaN or an infinity takes part with zeros and says so.
        """
        (own,), (count,) = gradients, frames
        finite = all(is_finite(each) for each in own)
        with timed(self.seconds, "exchange"):
            sums = self.powersgd.reduce(own if finite else [torch.zeros_like(e) for e in own])
            counts = [[count if finite else 0, not finite]]
            total, non_finite = map(round, sum_over_workers(counts, self.transport))
        self.residuals = [self.powersgd.owed]
        with timed(self.seconds, "update"):
            updates = [
                update(number, each, total) for number, each in zip(self.numbers, sums, strict=True)
            ]
            lost, rows = self._encoded_updates(updates)
        return EncodedUpdate(total, non_finite + lost, rows)

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from what `powersgd.state_dict` gave."""
        self.powersgd.load_state_dict(saved)
        self.residuals = [self.powersgd.owed]

    def wire_bytes(self, workers: int) -> int:
        """Bytes that an exchange puts on the wire between that many, summing round a ring."""
        return 8 * (workers - 1) * sum(_values(each.shape, self.rank) for each in self.matrices)


class PowerSgdExchange(StripedExchange):
    """Takes steps on `parameters` as StripedExchange does, with PowerSGD for the sum.

    One worker in each process of `transport`, which must be of a process group. Every process owns
    all rows. An update is what all processes compute alike, and does not travel.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rank: int,
        transport: ProcessGroupTransport,
        bucket_bytes: int = BUCKET_BYTES,
        overlap: bool = False,
    ) -> None:
        self._rank, self._group = rank, transport.group
        self._own: list[PowerSgdBucket] = []
        super().__init__(
            parameters, Float32Codec(), transport, transport.size, bucket_bytes, overlap
        )

    @property
    def form(self) -> str:
        """What travels, in words."""
        return f"factors of rank {self._rank}"

    def worker_state(self, worker: int) -> dict[str, Any]:
        """Copies of what belongs to this process's one worker."""
        return {"powersgd": [each.powersgd.state_dict() for each in self._own]}

    def load_worker_state(self, worker: int, state: dict[str, Any]) -> None:
        """Go back to what `worker_state` returned."""
        for bucket, saved in zip(self._own, state["powersgd"], strict=True):
            bucket.load_state_dict(saved)

    def _new_bucket(self, *parts: Any) -> Bucket:
        self._own.append(PowerSgdBucket(*parts, rank=self._rank, group=self._group))
        return self._own[-1]


class _Bucket:
    """All gradients in one vector: what `powerSGD_hook` reads of a torch GradBucket."""

    def __init__(self, values: Tensor, shapes: list[torch.Size]) -> None:
        self._values, self._shapes = values, shapes

    def buffer(self) -> Tensor:
        return self._values

    def gradients(self) -> list[Tensor]:
        parts = torch.split(self._values, [shape.numel() for shape in self._shapes])
        # The hook asks for a first dimension, which a scalar has not.
        return [part.view(shape or (1,)) for part, shape in zip(parts, self._shapes, strict=True)]

    def index(self) -> int:
        return 0

    def is_last(self) -> bool:
        return True


def _values(shape: torch.Size, rank: int) -> int:
    """How many numbers stand for a matrix of that shape."""
    rows, columns = shape
    factors = (rows + columns) * min(rows, columns, rank)
    return factors if factors * LEAST_SAVING < rows * columns else rows * columns


def _copies(memory: dict[int, Tensor], device: torch.device) -> dict[int, Tensor]:
    return {bucket: each.to(device, copy=True) for bucket, each in memory.items()}
