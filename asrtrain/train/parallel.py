"""Model parallelism: every weight matrix split by rows over P processes (Seide et al. 2014, 5.5).

W processes are a grid of W / P by P. The processes of a row of the grid hold the shards of one
replica and compute the same frames; those of a column hold the same shard, and exchange its
gradients between the workers. A shard is whole rows, and biases are held whole, so that what is
quantized together does not depend on P.
"""

from dataclasses import dataclass
from datetime import timedelta

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor

from asrtrain.nnet.model_file import AcousticModel, new_model
from asrtrain.onebit.transport import (
    LocalTransport,
    ProcessGroupTransport,
    Transport,
    sum_over_workers,
)
from asrtrain.train.config import LaunchConfig


@dataclass(frozen=True)
class Grid:
    """Who this process exchanges what with."""

    world: Transport
    """All processes."""
    workers: Transport
    """Those that hold the same shard of the model, over which the K workers are spread."""
    shards: Transport
    """Those that hold the shards of this replica."""
    mesh: DeviceMesh | None = None
    """The same ones, as the split layers know them; None if the model is not split."""

    def barrier(self) -> None:
        """Wait for all processes."""
        sum_over_workers([[0.0]], self.world)

    def leader_says(self, answer: bool) -> bool:
        """Process 0's answer, which the others' do not count for; a collective of all."""
        vote = float(answer and self.world.rank == 0)
        return sum_over_workers([[vote]], self.world)[0] > 0


def grid_of(world: Transport, model_parallel: int, config: LaunchConfig) -> Grid:
    """The grid with `model_parallel` shards, a divisor of the number of processes."""
    if model_parallel == 1:
        return Grid(world, world, LocalTransport())
    ranks = range(world.size)
    rows = [list(ranks[begin : begin + model_parallel]) for begin in ranks[::model_parallel]]
    columns = [list(ranks[shard::model_parallel]) for shard in range(model_parallel)]
    patience = timedelta(seconds=config.timeout_s)  # a group does not inherit it
    row, _ = dist.new_subgroups_by_enumeration(rows, timeout=patience)
    column, _ = dist.new_subgroups_by_enumeration(columns, timeout=patience)
    shards, workers = ProcessGroupTransport(row), ProcessGroupTransport(column)
    return Grid(world, workers, shards, DeviceMesh.from_group(row, config.device))


def split_(network: nn.Module, mesh: DeviceMesh) -> None:
    """Leave each process of `mesh` with its shard of every weight matrix of `network`, in place.

    Every process must hold the same network before. Layers then take whole activations and give
    whole ones, which the processes gather from each other; in back-propagation they sum what each
    has of the gradient with respect to a layer's input.
    """
    for layer in [each for each in network.modules() if isinstance(each, nn.Linear)]:
        distribute_module(layer, mesh, _split_linear, _replicated, _gathered)


def local_parameters(network: nn.Module) -> list[Tensor]:
    """The parameters as this process holds them, sharing memory with the network's."""
    return [_local(each.detach()) for each in network.parameters()]


def local_gradient(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of what this process holds of `parameter`."""
    if isinstance(gradient, DTensor) and isinstance(parameter, DTensor):
        return gradient.redistribute(placements=parameter.placements).to_local()
    return gradient


def whole_model(model: AcousticModel) -> AcousticModel:
    """The model gathered from its shards, itself if it is not split; a collective of its replica.

    An element is the same bits on every process that holds it, so all get the same model.
    """
    parameters = list(model.network.parameters())
    if not any(isinstance(each, DTensor) for each in parameters):
        return model
    gathered = new_model(model.config, model.dim, model.log_priors, seed=0)
    for to, each in zip(gathered.network.parameters(), parameters, strict=True):
        to.data.copy_(each.full_tensor() if isinstance(each, DTensor) else each)
    return gathered


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _split_linear(name: str, layer: nn.Module, mesh: DeviceMesh) -> None:
    placements = {"weight": [Shard(0)], "bias": [Replicate()]}
    for key, parameter in list(layer.named_parameters(recurse=False)):
        # Every process has drawn the same values: nothing need be sent.
        shard = distribute_tensor(parameter.detach(), mesh, placements[key], src_data_rank=None)
        layer.register_parameter(key, nn.Parameter(shard))


def _replicated(layer: nn.Module, inputs: tuple[Tensor], mesh: DeviceMesh) -> tuple[Tensor]:
    return (DTensor.from_local(inputs[0], mesh, [Replicate()], run_check=False),)


def _gathered(layer: nn.Module, outputs: DTensor, mesh: DeviceMesh) -> Tensor:
    return outputs.redistribute(placements=[Replicate()]).to_local()
