"""The striped exchange as a communication hook of torch's DistributedDataParallel.

Each rank is one worker. It quantizes its gradient, the owner of a stripe averages what the ranks
sent and quantizes the mean, and every rank, the owner too, takes the decoded mean for its gradient.
So the optimizer runs on all ranks alike, and its state is not split up as in `exchange`.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from asrtrain.onebit.bucket import Bucket, as_matrix
from asrtrain.onebit.codec import Codec, QuantizingCodec
from asrtrain.onebit.transport import ProcessGroupTransport


class OneBitState:
    """What a rank still owes of its gradients and of the means that it owns, for `ddp_hook`.

    `model` is the bare module, on its device, before DistributedDataParallel wraps it; `group` the
    process group that DistributedDataParallel uses. `codec` must be the same on all ranks. A
    parameter of more than one dimension is a matrix of its first dimension by the rest; a vector is
    one row.

    Residuals belong to parameters, not to DDP's buckets, which change after the first step.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        codec: Codec | None = None,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self.codec = codec or QuantizingCodec()
        self.transport = ProcessGroupTransport(group)
        self.seconds = dict.fromkeys(("quantize", "exchange", "update"), 0.0)
        self.non_finite = 0
        """Buckets' gradients, over all ranks, that held a NaN or an infinity and were left out."""
        trained = [(n, each) for n, each in model.named_parameters() if each.requires_grad]
        self._names = [name for name, _ in trained]
        self._numbers: dict[Tensor, int] = {
            parameter: number for number, (_, parameter) in enumerate(trained)
        }
        matrices = [as_matrix(each.detach().contiguous(), self.codec.tie) for _, each in trained]
        numbers = list(range(len(trained)))
        whole = Bucket(numbers, matrices, self.codec, self.transport, 1, self.seconds)
        self.residuals = whole.residuals[0]
        """What this rank owes of its gradient, by parameter."""
        self.update_residuals = whole.update_residuals
        """What this rank owes of the mean of the rows that it owns, by parameter."""

    def average_(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Replace this rank's `gradients` by the decoded mean over the ranks; a collective.

        Gradients are contiguous, of any floating-point type; they travel as float32. A rank whose
        gradients hold a NaN or an infinity takes part with zeros, and is counted.

        Raises ValueError for a parameter that the model lacks, PeerLostError if a rank is gone.
        """
        try:
            numbers = [self._numbers[each] for each in parameters]
        except KeyError:
            raise ValueError("a gradient of a parameter that OneBitState's model lacks") from None
        matrices = [as_matrix(each, self.codec.tie) for each in gradients]
        bucket = Bucket(
            numbers,
            matrices,
            self.codec,
            self.transport,
            workers=1,
            seconds=self.seconds,
            residuals=[[self.residuals[number] for number in numbers]],
            update_residuals=[self.update_residuals[number] for number in numbers],
        )
        mean = bucket.exchange([[each.float() for each in matrices]], [1], self._mean)
        self.non_finite += mean.non_finite
        for matrix, rows in zip(matrices, mean.rows, strict=True):
            decoded = torch.zeros_like(matrix, dtype=torch.float32)
            self.codec.decode_add_(rows, decoded)
            matrix.copy_(decoded)

    def state_dict(self) -> dict[str, Any]:
        """This rank's residuals by parameter name, not copied; each rank has its own to save."""
        return {
            **self._layout(),
            "non_finite": self.non_finite,
            "residuals": dict(zip(self._names, self.residuals, strict=True)),
            "update_residuals": dict(zip(self._names, self.update_residuals, strict=True)),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from what this rank's `state_dict` gave.

        Raises ValueError if it is of another rank, number of ranks, codec or model.
        """
        for key, own in self._layout().items():
            if saved[key] != own:
                raise ValueError(f"OneBitState was saved with {key}={saved[key]}, not {own}")
        self.non_finite = saved["non_finite"]
        for kind in ("residuals", "update_residuals"):
            for name, residual in zip(self._names, getattr(self, kind), strict=True):
                residual.copy_(saved[kind][name])

    def _layout(self) -> dict[str, Any]:
        """What must be the same for residuals to fit."""
        return {
            "rank": self.transport.rank,
            "world_size": self.transport.size,
            "codec": repr(self.codec),
            "shapes": {
                name: list(parameter.shape)
                for name, parameter in zip(self._names, self._numbers, strict=True)
            },
        }

    def _mean(self, number: int, total: Tensor, ranks: int) -> Tensor:
        return total / self.transport.size


def ddp_hook(
    state: OneBitState,
    bucket: dist.GradBucket,  # type: ignore[name-defined]  # DDP insists on this annotation
) -> torch.futures.Future[Tensor]:
    """Average DDP's bucket at a few bits a value: `model.register_comm_hook(state, ddp_hook)`.

    The future is complete when the hook returns: buckets travel one after the other.
    """
    state.average_(bucket.parameters(), bucket.gradients())
    future: torch.futures.Future[Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future
