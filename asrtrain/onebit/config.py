"""Settings of the gradient exchange."""

from dataclasses import dataclass

METHODS = ("float32", "bfloat16", "onebit", "powersgd")
BITS = (1, 2, 4, 8)
TIES = ("output", "input")


@dataclass(frozen=True, kw_only=True)
class ExchangeConfig:
    """How sub-gradients and updates travel between workers."""

    method: str = "float32"
    """float32 or bfloat16: as such numbers. onebit: a few bits a value, two levels a row, with
    error feedback. powersgd: low-rank, torch's own hook, for comparison."""
    workers: int = 0
    """K: sub-gradients of a minibatch, each with a residual and a stripe of its own. It decides the
    result; any number of processes that divides it may run it. 0: as many as processes."""
    bits: int = 1
    """onebit: bits a value; 1, 2, 4 or 8."""
    tie: str = "output"
    """onebit: what shares two levels; output: the weights into one output unit (a row of a torch
    Linear's matrix). input: those out of one input (as CNTK does)."""
    error_feedback: bool = True
    """onebit: carry what quantization loses to the next minibatch. false: the paper's ablation."""
    double_buffer: bool = False
    """Cut minibatches in two halves; while one is computed, the other's gradient travels. The model
    lags by half a minibatch (section 2.2)."""
    warm_start_hours: float = 0.0
    """Hours of audio at the start (360,000 frames each) that are trained with float32 exchange and
    without double buffering, as on one node (section 5)."""
    bucket_mb: float = 25.0
    """Gradients are sent as soon as so many MB of them are there, last layer first."""
    overlap: bool = True
    """Send during back-propagation, in a thread of its own. Never changes the result."""
    powersgd_rank: int = 4
    """powersgd: rank of the approximation of a matrix."""

    def __post_init__(self) -> None:
        _require_choice("method", self.method, METHODS)
        _require_choice("bits", self.bits, BITS)
        _require_choice("tie", self.tie, TIES)
        for key, least in (("workers", 0), ("warm_start_hours", 0), ("powersgd_rank", 1)):
            value = getattr(self, key)
            if value < least:
                raise ValueError(f"exchange.{key}={value}: expected {least} or more")
        if self.bucket_mb <= 0:
            raise ValueError(f"exchange.bucket_mb={self.bucket_mb}: expected above 0")
        self._refuse_what_has_no_effect()

    def _refuse_what_has_no_effect(self) -> None:
        if self.method != "onebit":
            for key, default in (("bits", 1), ("tie", "output"), ("error_feedback", True)):
                value = getattr(self, key)
                if value != default:
                    raise ValueError(
                        f"exchange.{key}={value} belongs to exchange.method=onebit, "
                        f"but exchange.method={self.method}"
                    )
        if self.method == "powersgd" and self.double_buffer:
            raise ValueError(
                "exchange.double_buffer=true and exchange.method=powersgd cannot work together: "
                "torch's hook keeps one gradient at a time"
            )
        plain = self.method == "float32" and not self.double_buffer
        if self.warm_start_hours and (plain or self.method == "powersgd"):
            raise ValueError(
                f"exchange.warm_start_hours={self.warm_start_hours} and "
                f"exchange.method={self.method} cannot work together: a warm start is float32 "
                "before bfloat16, onebit or double buffering"
            )


def _require_choice(key: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        expected = ", ".join(map(str, choices))
        raise ValueError(f"exchange.{key}={value}: expected one of {expected}")
