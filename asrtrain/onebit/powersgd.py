"""PowerSGD, torch's own hook, as a peer for comparison: matrices travel as two factors of low rank.

After Vogels, Karimireddy, Jaggi: "PowerSGD: practical low-rank gradient compression for distributed
optimization", NeurIPS 2019. The hook is written for DDP's buckets; all that it asks of one is here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
    PowerSGDState,
    powerSGD_hook,
)

from asrtrain.onebit.quantize import is_finite

MEMORIES = ("error_dict", "p_memory_dict", "q_memory_dict")
"""What PowerSGDState remembers from step to step, by bucket."""


class PowerSgdExchange:
    """Sums gradients over the processes of a group, one worker in each.

    `rank` is that of a matrix's approximation. A matrix that it would not make half as small, and
    every vector, travels in float32.
    """

    def __init__(self, rank: int, group: dist.ProcessGroup | None = None) -> None:
        # The hook's first steps are uncompressed because DDP changes its buckets then. No bucket
        # changes here, so that they count as done. The epsilon is for a gradient of zero.
        self._state = PowerSGDState(
            group,
            matrix_approximation_rank=rank,
            start_powerSGD_iter=2,
            orthogonalization_epsilon=1e-8,
        )
        self._state.iter = 2
        self._size = dist.get_world_size(group)
        self.non_finite = 0
        """How often this process's own gradients held a NaN or an infinity and were left out."""

    def reduce(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The sum over the processes of each gradient, approximately; a collective.

        Gradients are of any shape, the results float32 and the same bits in every process. If one
        is not finite, this process takes part with zeros, so that no error memory is spoilt.
        """
        values = torch.cat([each.float().flatten() for each in gradients])
        if not is_finite(values):
            values.zero_()
            self.non_finite += 1
        bucket: Any = _Bucket(values, [each.shape for each in gradients])
        mean = powerSGD_hook(self._state, bucket).wait()
        sums = _Bucket(mean * self._size, bucket.shapes).gradients()
        return [total.view(each.shape) for total, each in zip(sums, gradients, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """This process's memories and random state, as tensors that are not copied and numbers."""
        _, keys, position, has_gauss, cached = self._state.rng.get_state(legacy=True)
        return {
            "size": self._size,
            "iter": self._state.iter,
            "non_finite": self.non_finite,
            "rng_keys": torch.from_numpy(np.asarray(keys).astype(np.int64)),
            "rng_rest": [int(position), int(has_gauss), float(cached)],
            **{name: dict(getattr(self._state, name)) for name in MEMORIES},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from what this process's `state_dict` gave.

        Raises ValueError if there were more processes or fewer.
        """
        if saved["size"] != self._size:
            raise ValueError(
                f"PowerSgdExchange was saved in {saved['size']} processes, but runs in {self._size}"
            )
        self._state.iter, self.non_finite = saved["iter"], saved["non_finite"]
        keys = saved["rng_keys"].numpy().astype(np.uint32)
        self._state.rng.set_state(("MT19937", keys, *saved["rng_rest"]))
        for name in MEMORIES:
            setattr(self._state, name, {key: each.clone() for key, each in saved[name].items()})


class _Bucket:
    """All gradients in one vector: what `powerSGD_hook` reads of a torch GradBucket."""

    def __init__(self, values: Tensor, shapes: list[torch.Size]) -> None:
        self._values, self.shapes = values, shapes

    def buffer(self) -> Tensor:
        return self._values

    def gradients(self) -> list[Tensor]:
        parts = torch.split(self._values, [shape.numel() for shape in self.shapes])
        # The hook asks for a first dimension, which a scalar has not.
        return [part.view(shape or (1,)) for part, shape in zip(parts, self.shapes, strict=True)]

    def index(self) -> int:
        return 0

    def is_last(self) -> bool:
        return True
