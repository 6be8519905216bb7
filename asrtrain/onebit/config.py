"""Settings of the gradient exchange."""

from dataclasses import dataclass

METHODS = ("float32", "onebit")


@dataclass(frozen=True, kw_only=True)
class ExchangeConfig:
    """How sub-gradients and updates travel between workers."""

    method: str = "float32"
    """float32: as they are. onebit: one bit a value, two levels a row, with error feedback."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"exchange.method={self.method}: expected one of {', '.join(METHODS)}")
