"""Settings of the optimizer."""

from dataclasses import dataclass, field

from asrtrain.io.settings import require, require_choice

ADAGRAD = ("none", "partial", "aggregate", "smoothed")


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """What becomes of a gradient before it is added to the model (section 3.1)."""

    momentum: float = 2000.0
    """Of what kind `momentum_unit` says; 0 for none."""
    momentum_unit: str = "frames"
    """frames: `momentum` is a time constant. minibatch: it is what remains after a minibatch, from
    0 to below 1; in half a minibatch its square root remains."""
    momentum_profile: list[float] = field(default_factory=list)
    """Momentum in each epoch, the last one stays; empty: `momentum` in all."""
    adagrad: str = "none"
    """Divide by the root mean square over time of a frame's gradient. partial: each worker's
    gradient, before it is quantized. aggregate: the sum. smoothed: after momentum."""
    adagrad_floor: float = 1e-4
    """Least root mean square of a frame's gradient that is divided by, above 0."""
    clip_value: float = 0.0
    """Bound of a frame's gradient in every parameter (times the frames of a sum); 0 for none."""
    weight_decay: float = 0.0
    """Share of a parameter that a frame's gradient is increased by, after AdaGrad; 0 or more."""

    def __post_init__(self) -> None:
        require_choice("optimizer.momentum_unit", self.momentum_unit, ("frames", "minibatch"))
        require_choice("optimizer.adagrad", self.adagrad, ADAGRAD)
        for value in self.momentum_profile or [self.momentum]:
            fits = value >= 0 and (self.momentum_unit == "frames" or value < 1)
            require(
                fits,
                f"optimizer.momentum={value} and optimizer.momentum_unit={self.momentum_unit} do "
                "not fit: expected 0 or more, and below 1 for minibatch",
            )
        require(
            self.adagrad_floor > 0,
            f"optimizer.adagrad_floor={self.adagrad_floor}: expected above 0",
        )
        for key in ("clip_value", "weight_decay"):
            value = getattr(self, key)
            require(value >= 0, f"optimizer.{key}={value}: expected 0 or more")
