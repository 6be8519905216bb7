"""Settings of the network."""

from dataclasses import dataclass, field

from asrtrain.io.settings import require, require_choice

ACTIVATIONS = ("sigmoid", "relu")


@dataclass(frozen=True, kw_only=True)
class DnnConfig:
    """Shape of the network."""

    hidden: list[int] = field(default_factory=lambda: [512, 512, 512])
    """Units of each hidden layer, from the input up."""
    activation: str = "relu"
    """Of the hidden layers: sigmoid or relu."""
    left_context: int = 5
    """Frames before the one classified that the network sees, 0 or more."""
    right_context: int = 5
    """Frames after it, 0 or more."""
    svd_rank: int = 0
    """Rank r of the two factors that stand for each weight matrix that they make smaller, that is,
    where r * (outputs + inputs) < outputs * inputs; 0 for full matrices."""

    def __post_init__(self) -> None:
        require_choice("model.activation", self.activation, ACTIVATIONS)
        require(
            all(units >= 1 for units in self.hidden),
            f"model.hidden={self.hidden}: expected at least 1 unit in each layer",
        )
        require(
            self.left_context >= 0 and self.right_context >= 0,
            f"model.left_context={self.left_context} model.right_context={self.right_context}: "
            "expected 0 or more frames",
        )
        require(
            self.svd_rank >= 0,
            f"model.svd_rank={self.svd_rank}: expected 0 (full matrices) or a rank",
        )


def require_rbm_can_pretrain(config: DnnConfig) -> None:
    """Raise UserError unless restricted Boltzmann machines can give `config` its first weights.

    Their hidden units are sigmoids, and their matrices are full.
    """
    way_out = "or pre-train otherwise (pretrain.method)"
    require(
        config.activation == "sigmoid",
        f"pretrain.method=rbm with model.activation={config.activation}: expected sigmoid, as an "
        f"RBM's units are; set model.activation=sigmoid, {way_out}",
    )
    require(
        config.svd_rank == 0,
        f"pretrain.method=rbm with model.svd_rank={config.svd_rank}: expected 0, as an RBM's "
        f"weights are full matrices; set model.svd_rank=0 and factor after training, {way_out}",
    )
