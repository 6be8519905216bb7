"""Laws of the quantizer, against sums in float64 and bits set by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from asrtrain.onebit.kernels import Kernels, NumbaKernels, TorchKernels, kernels_for
from asrtrain.onebit.quantize import (
    NonFiniteGradientError,
    QuantizedMatrix,
    dequantize,
    pack,
    unpack,
    words_per_row,
)

both_kernels = pytest.mark.parametrize("kernels", [TorchKernels(), NumbaKernels()])
values = st.floats(-1e3, 1e3, width=32) | st.sampled_from([0.0, -0.0, 1e-42, -1e-42])
matrices = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=70), elements=values
)


@both_kernels
@given(matrices, st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_dequantized_plus_residual_is_gradient_plus_old_residual(
    kernels: Kernels, array: np.ndarray, seed: int
) -> None:
    gradient = torch.from_numpy(array)
    residual = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(seed))
    wanted = gradient.double() + residual.double()
    quantized = kernels.quantize(gradient, residual)
    got = dequantize(quantized).double() + residual.double()
    scale = wanted.abs().max().clamp(min=1)
    torch.testing.assert_close(got / scale, wanted / scale, rtol=0, atol=1e-6)


@both_kernels
@given(matrices)
@settings(max_examples=100)
def test_a_bit_is_the_sign_and_a_level_the_mean_of_its_side(
    kernels: Kernels, array: np.ndarray
) -> None:
    quantized = kernels.quantize(torch.from_numpy(array), torch.zeros(array.shape))
    bits = unpack(quantized.words, array.shape[1]).numpy()
    np.testing.assert_array_equal(bits, array >= 0)
    for row, levels in zip(array.astype(np.float64), quantized.levels.numpy(), strict=True):
        for level, side in zip(levels, (row[row < 0], row[row >= 0]), strict=True):
            wanted = side.mean() if len(side) else 0.0
            assert level == pytest.approx(wanted, rel=1e-5, abs=1e-40)


@both_kernels
def test_levels_make_the_squared_error_least(kernels: Kernels) -> None:
    gradient = torch.randn(3, 100, generator=torch.Generator().manual_seed(0))
    residual = torch.zeros(3, 100)
    quantized = kernels.quantize(gradient, residual)
    least = residual.double().square().sum()
    for change in (0.01, -0.01):
        for side in (0, 1):
            levels = quantized.levels.clone()
            levels[:, side] += change
            other = dequantize(QuantizedMatrix(quantized.words, levels, 100))
            assert (gradient - other).double().square().sum() > least


@given(matrices, st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_the_compiled_loops_agree_with_the_definition(array: np.ndarray, seed: int) -> None:
    gradient = torch.from_numpy(array)
    residual = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(seed))
    other_residual = residual.clone()
    wanted = TorchKernels().quantize(gradient, residual)
    got = NumbaKernels().quantize(gradient, other_residual)
    assert torch.equal(got.words, wanted.words)
    torch.testing.assert_close(got.levels, wanted.levels, rtol=2e-6, atol=1e-40)
    out, other_out = torch.ones(array.shape), torch.ones(array.shape)
    TorchKernels().dequantize_add_(wanted, out)
    NumbaKernels().dequantize_add_(wanted, other_out)
    assert torch.equal(out, other_out)


@both_kernels
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (4, 40)])
def test_a_value_that_is_not_finite_changes_no_residual(
    kernels: Kernels, bad: float, place: tuple[int, int]
) -> None:
    gradient, residual = torch.ones(5, 41), torch.full((5, 41), 0.25)
    gradient[place] = bad
    with pytest.raises(NonFiniteGradientError):
        kernels.quantize(gradient, residual)
    assert torch.equal(residual, torch.full((5, 41), 0.25))


@both_kernels
def test_non_contiguous_input(kernels: Kernels) -> None:
    gradient = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)).t()
    residual, other = torch.zeros(6, 40), torch.zeros(40, 6).t()
    wanted = kernels.quantize(gradient.contiguous(), residual)
    got = kernels.quantize(gradient, other)
    assert torch.equal(got.words, wanted.words)
    torch.testing.assert_close(other, residual, rtol=0, atol=1e-6)


@both_kernels
def test_over_time_what_is_sent_is_the_gradient(kernels: Kernels) -> None:
    """With error feedback the mean of what is sent tends to the mean gradient as 1 / steps."""
    gradient = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    residual, sent, steps = torch.zeros(4, 50), torch.zeros(4, 50), 1000
    for _ in range(steps):
        kernels.dequantize_add_(kernels.quantize(gradient, residual), sent)
    difference = (sent / steps - gradient).abs().max()
    assert difference <= residual.abs().max() / steps + 1e-4
    assert difference < 0.1


def test_bit_k_of_word_w_is_column_k_times_the_words_plus_w() -> None:
    bits = torch.zeros(1, 70, dtype=torch.bool)
    assert words_per_row(70) == 3
    bits[0, [0, 4, 69]] = True  # 4 = 1 * 3 + 1; 69 = 23 * 3 + 0
    assert pack(bits).tolist() == [[1 | 1 << 23, 1 << 1, 0]]


def test_the_last_bit_of_a_word_is_its_sign() -> None:
    bits = torch.zeros(1, 32, dtype=torch.bool)
    bits[0, 31] = True
    assert pack(bits).tolist() == [[-(2**31)]]


@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=100)))
def test_unpack_inverts_pack(array: np.ndarray) -> None:
    bits = torch.from_numpy(array)
    assert torch.equal(unpack(pack(bits), bits.shape[1]), bits)


def test_the_cpu_gets_the_compiled_loops() -> None:
    assert isinstance(kernels_for(torch.device("cpu")), NumbaKernels)
    assert isinstance(kernels_for(torch.device("meta")), TorchKernels)
