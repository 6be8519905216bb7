"""Weight matrices of a trained network replaced by two factors of low rank.

The paper's alternate model (Seide et al. 2014, section 5), after Xue, Li & Gong 2013,
"Restructuring of deep neural network acoustic models with singular value decomposition": train with
full matrices, factor, train on. What it loses at once, that last training wins back.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from asrtrain.io.settings import require
from asrtrain.nnet.dnn import new_network
from asrtrain.nnet.model_file import AcousticModel


def factored(model: AcousticModel, rank: int) -> AcousticModel:
    """A new model, each of whose matrices is the nearest of `rank` to that of `model`, as factors.

    Matrices that factors would not make smaller stay full; biases and priors stay. Raises UserError
    if `model` is factored already, or if no matrix would become smaller.
    """
    held = model.config.svd_rank
    require(
        held == 0,
        f"the model is factored already (model.svd_rank={held}): expected full matrices "
        "(model.svd_rank=0); factor the model that it was made from",
    )
    require(rank >= 1, f"model.svd_rank={rank}: expected a rank of at least 1 to factor with")
    config = replace(model.config, svd_rank=rank)
    network = new_network(config, model.dim, model.num_senones, torch.Generator())
    require(
        any(isinstance(each, nn.Sequential) for each in network),
        f"model.svd_rank={rank}: no matrix would become smaller, expected a rank below "
        "outputs * inputs / (outputs + inputs) of some layer; choose a lower one",
    )
    for full, new in zip(model.network[::2], network[::2], strict=True):
        pair = isinstance(new, nn.Sequential)
        new.load_state_dict(_factor_state(full, rank) if pair else full.state_dict())
    return AcousticModel(config, model.dim, network, model.log_priors)


def svd_factors(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """First (rank, in) and second (out, rank) factor of `matrix` (out, in).

    Their product, second @ first, is the matrix of this rank with the least squared error (Eckart &
    Young 1936). Each takes the square root of the singular values, so that both have one norm and
    training moves them alike. Computed in float64, returned in the matrix's type.
    """
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    roots = values[:rank].sqrt()
    first, second = roots[:, None] * right[:rank], left[:, :rank] * roots
    return first.to(matrix.dtype), second.to(matrix.dtype)


def _factor_state(full: nn.Module, rank: int) -> dict[str, Tensor]:
    """Parameters of the two layers that stand for `full`, by their names in the pair."""
    state = full.state_dict()
    first, second = svd_factors(state["weight"], rank)
    return {"0.weight": first, "1.weight": second, "1.bias": state["bias"]}
