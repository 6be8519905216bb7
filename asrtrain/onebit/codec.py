"""How a matrix's rows travel: as they are, as bfloat16, or at a few bits a value.

A codec turns the R rows of a matrix into R messages of equal length in 32-bit words, so that a
stripe's message is a slice of rows. Baseline and compressed exchange differ in the codec alone.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from asrtrain.onebit.config import BITS, TIES, ExchangeConfig
from asrtrain.onebit.kernels import kernels_for
from asrtrain.onebit.quantize import QuantizedMatrix, words_per_row


class Codec(Protocol):
    """Encodes matrices of shape (R, C) as (R, `row_words(C)`) int32."""

    @property
    def bits(self) -> int:
        """Bits a value on the wire."""

    @property
    def tie(self) -> str:
        """output: a row is a row of the parameter. input: a row is a column of it."""

    def row_words(self, columns: int) -> int:
        """Length of one row's message in 32-bit words."""

    def new_residual(self, shape: tuple[int, int], device: torch.device) -> Tensor:
        """The residual to start from: zeros, or an empty tensor if none is kept."""

    def encode(self, values: Tensor, residual: Tensor) -> Tensor:
        """Messages for the rows of `values + residual`; updates `residual` in place."""

    def decode_add_(self, messages: Tensor, out: Tensor) -> None:
        """Add the values that the messages of R rows stand for to `out`, (R, C) float32."""


@dataclass(frozen=True)
class Float32Codec:
    """No compression: the baseline."""

    bits: int = 32
    tie: str = "output"

    def row_words(self, columns: int) -> int:
        """One word a value."""
        return columns

    def new_residual(self, shape: tuple[int, int], device: torch.device) -> Tensor:
        """Empty: nothing is lost."""
        return torch.empty(0, device=device)

    def encode(self, values: Tensor, residual: Tensor) -> Tensor:
        """The values' own bits."""
        return values.contiguous().view(torch.int32)

    def decode_add_(self, messages: Tensor, out: Tensor) -> None:
        """Add the messages read as float32."""
        out.add_(messages.view(torch.float32))


@dataclass(frozen=True)
class BFloat16Codec:
    """Two values a word, rounded to bfloat16, without error feedback."""

    bits: int = 16
    tie: str = "output"

    def row_words(self, columns: int) -> int:
        """Half a word a value; an odd row is padded."""
        return -(-columns // 2)

    def new_residual(self, shape: tuple[int, int], device: torch.device) -> Tensor:
        """Empty: what rounding loses is not carried on."""
        return torch.empty(0, device=device)

    def encode(self, values: Tensor, residual: Tensor) -> Tensor:
        """Rounded to the nearest, ties to even."""
        rounded = pad(values.to(torch.bfloat16), (0, values.shape[1] % 2))
        return rounded.contiguous().view(torch.int32)

    def decode_add_(self, messages: Tensor, out: Tensor) -> None:
        """Add the messages read as bfloat16."""
        out.add_(messages.view(torch.bfloat16)[:, : out.shape[1]])


@dataclass(frozen=True)
class QuantizingCodec:
    """1, 2, 4 or 8 bits a value with error feedback: a row's two levels, then its packed codes."""

    bits: int = 1
    tie: str = "output"
    error_feedback: bool = True
    """False: the residual is cleared before every use, so that what quantization loses is lost."""

    def __post_init__(self) -> None:
        for key, value, choices in (("bits", self.bits, BITS), ("tie", self.tie, TIES)):
            if value not in choices:
                expected = ", ".join(map(str, choices))
                raise ValueError(f"{key}={value}: expected one of {expected}")

    def row_words(self, columns: int) -> int:
        """Two levels and the packed codes."""
        return 2 + words_per_row(columns, self.bits)

    def new_residual(self, shape: tuple[int, int], device: torch.device) -> Tensor:
        """Zeros of the matrix's shape."""
        return torch.zeros(shape, device=device)

    def encode(self, values: Tensor, residual: Tensor) -> Tensor:
        """Quantize; raises NonFiniteGradientError before the residual changes."""
        if not self.error_feedback:
            residual.zero_()
        quantized = kernels_for(values.device).quantize(values, residual, self.bits)
        return torch.cat((quantized.levels.view(torch.int32), quantized.words), dim=1)

    def decode_add_(self, messages: Tensor, out: Tensor) -> None:
        """Add the dequantized values."""
        levels = messages[:, :2].contiguous().view(torch.float32)
        quantized = QuantizedMatrix(messages[:, 2:], levels, out.shape[1], self.bits)
        kernels_for(out.device).dequantize_add_(quantized, out)


def codec_for(config: ExchangeConfig) -> Codec:
    """The codec that `config.method` names; float32 where it is not the codec that compresses."""
    if config.method == "onebit":
        return QuantizingCodec(config.bits, config.tie, config.error_feedback)
    return BFloat16Codec() if config.method == "bfloat16" else Float32Codec()
