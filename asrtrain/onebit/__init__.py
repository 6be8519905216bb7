"""Data-parallel SGD whose gradients travel as one bit a value, with error feedback.

After Seide, Fu, Droppo, Li, Yu: "1-bit stochastic gradient descent and its application to
data-parallel distributed training of speech DNNs", Interspeech 2014. Needs torch only and serves
any PyTorch model.
"""

from asrtrain.onebit.codec import Codec, Float32Codec, OneBitCodec, codec_for
from asrtrain.onebit.config import ExchangeConfig
from asrtrain.onebit.exchange import StepReport, StripedExchange
from asrtrain.onebit.quantize import (
    NonFiniteGradientError,
    QuantizedMatrix,
    dequantize,
    dequantize_add_,
    quantize,
)
from asrtrain.onebit.replicas import ReplicasDifferError, check_replicas, digest
from asrtrain.onebit.stripes import Stripe, stripes_of
from asrtrain.onebit.transport import (
    LocalTransport,
    ProcessGroupTransport,
    Transport,
    sum_over_workers,
)

__all__ = [
    "Codec",
    "ExchangeConfig",
    "Float32Codec",
    "LocalTransport",
    "NonFiniteGradientError",
    "OneBitCodec",
    "ProcessGroupTransport",
    "QuantizedMatrix",
    "ReplicasDifferError",
    "StepReport",
    "Stripe",
    "StripedExchange",
    "Transport",
    "check_replicas",
    "codec_for",
    "dequantize",
    "dequantize_add_",
    "digest",
    "quantize",
    "stripes_of",
    "sum_over_workers",
]
