"""How a matrix's rows travel: as they are, or at one bit a value.

A codec turns the R rows of a matrix into R messages of equal length in 32-bit words, so that a
stripe's message is a slice of rows. Baseline and compressed exchange differ in the codec alone.
"""

from typing import Protocol

import torch
from torch import Tensor

from asrtrain.onebit.config import ExchangeConfig
from asrtrain.onebit.kernels import kernels_for
from asrtrain.onebit.quantize import QuantizedMatrix, words_per_row


class Codec(Protocol):
    """Encodes matrices of shape (R, C) as (R, `row_words(C)`) int32."""

    bits: int
    """Bits a value on the wire."""

    def row_words(self, columns: int) -> int:
        """Length of one row's message in 32-bit words."""

    def new_residual(self, shape: tuple[int, int], device: torch.device) -> Tensor:
        """The residual to start from: zeros, or an empty tensor if the codec loses nothing."""

    def encode(self, values: Tensor, residual: Tensor) -> Tensor:
        """Messages for the rows of `values + residual`; updates `residual` in place."""

    def decode_add_(self, messages: Tensor, out: Tensor) -> None:
        """Add the values that the messages of R rows stand for to `out`, (R, C) float32."""


class Float32Codec:
    """No compression: the baseline."""

    bits = 32

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


class OneBitCodec:
    """One bit a value with error feedback: a row's two levels, then its packed bits."""

    bits = 1

    def row_words(self, columns: int) -> int:
        """Two levels and the packed bits."""
        return 2 + words_per_row(columns)

    def new_residual(self, shape: tuple[int, int], device: torch.device) -> Tensor:
        """Zeros of the matrix's shape."""
        return torch.zeros(shape, device=device)

    def encode(self, values: Tensor, residual: Tensor) -> Tensor:
        """Quantize; raises NonFiniteGradientError before the residual changes."""
        quantized = kernels_for(values.device).quantize(values, residual)
        return torch.cat((quantized.levels.view(torch.int32), quantized.words), dim=1)

    def decode_add_(self, messages: Tensor, out: Tensor) -> None:
        """Add the dequantized values."""
        levels = messages[:, :2].contiguous().view(torch.float32)
        quantized = QuantizedMatrix(messages[:, 2:], levels, out.shape[1])
        kernels_for(out.device).dequantize_add_(quantized, out)


def codec_for(config: ExchangeConfig) -> Codec:
    """The codec that `config.method` names."""
    codecs: dict[str, type[Codec]] = {"float32": Float32Codec, "onebit": OneBitCodec}
    return codecs[config.method]()
