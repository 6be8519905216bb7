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
    quantize,
    unpack,
    words_per_row,
)

both_kernels = pytest.mark.parametrize("kernels", [TorchKernels(), NumbaKernels()])
all_bits = pytest.mark.parametrize("bits", [1, 2, 4, 8])
values = st.floats(-1e3, 1e3, width=32) | st.sampled_from([0.0, -0.0, 1e-42, -1e-42])
matrices = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=70), elements=values
)


@both_kernels
@all_bits
@given(matrices, st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_dequantized_plus_residual_is_gradient_plus_old_residual(
    kernels: Kernels, bits: int, array: np.ndarray, seed: int
) -> None:
    gradient = torch.from_numpy(array)
    residual = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(seed))
    wanted = gradient.double() + residual.double()
    quantized = kernels.quantize(gradient, residual, bits)
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


@given(matrices, st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=400)
def test_the_compiled_loops_agree_with_the_definition(
    array: np.ndarray, seed: int, bits: int
) -> None:
    gradient = torch.from_numpy(array)
    residual = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(seed))
    other_residual = residual.clone()
    wanted = TorchKernels().quantize(gradient, residual, bits)
    got = NumbaKernels().quantize(gradient, other_residual, bits)
    assert torch.equal(got.words, wanted.words)
    torch.testing.assert_close(got.levels, wanted.levels, rtol=1e-6, atol=1e-44)
    out, other_out = torch.ones(array.shape), torch.ones(array.shape)
    TorchKernels().dequantize_add_(wanted, out)
    NumbaKernels().dequantize_add_(wanted, other_out)
    assert torch.equal(out, other_out)


@both_kernels
@all_bits
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (4, 40)])
def test_a_value_that_is_not_finite_changes_no_residual(
    kernels: Kernels, bits: int, bad: float, place: tuple[int, int]
) -> None:
    gradient, residual = torch.ones(5, 41), torch.full((5, 41), 0.25)
    gradient[place] = bad
    with pytest.raises(NonFiniteGradientError):
        kernels.quantize(gradient, residual, bits)
    assert torch.equal(residual, torch.full((5, 41), 0.25))


@both_kernels
@all_bits
def test_non_contiguous_input(kernels: Kernels, bits: int) -> None:
    gradient = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)).t()
    residual, other = torch.zeros(6, 40), torch.zeros(40, 6).t()
    wanted = kernels.quantize(gradient.contiguous(), residual, bits)
    got = kernels.quantize(gradient, other, bits)
    assert torch.equal(got.words, wanted.words)
    torch.testing.assert_close(other, residual, rtol=0, atol=1e-6)


@both_kernels
@all_bits
def test_over_time_what_is_sent_is_the_gradient(kernels: Kernels, bits: int) -> None:
    """With error feedback the mean of what is sent tends to the mean gradient as 1 / steps."""
    gradient = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    residual, sent, steps = torch.zeros(4, 50), torch.zeros(4, 50), 1000
    for _ in range(steps):
        kernels.dequantize_add_(kernels.quantize(gradient, residual, bits), sent)
    difference = (sent / steps - gradient).abs().max()
    assert difference <= residual.abs().max() / steps + 1e-4
    assert difference < 0.1


def test_bit_k_of_word_w_is_column_k_times_the_words_plus_w() -> None:
    codes = torch.zeros(1, 70, dtype=torch.int32)
    assert words_per_row(70) == 3
    codes[0, [0, 4, 69]] = 1  # 4 = 1 * 3 + 1; 69 = 23 * 3 + 0
    assert pack(codes).tolist() == [[1 | 1 << 23, 1 << 1, 0]]


def test_slot_k_of_word_w_is_column_k_times_the_words_plus_w() -> None:
    codes = torch.zeros(1, 12, dtype=torch.int32)
    assert words_per_row(12, bits=4) == 2
    codes[0, 5] = 13  # 5 = 2 * 2 + 1: third slot of the second word
    assert pack(codes, bits=4).tolist() == [[0, 13 << 8]]


def test_the_last_bit_of_a_word_is_its_sign() -> None:
    codes = torch.zeros(1, 32, dtype=torch.int32)
    codes[0, 31] = 1
    assert pack(codes).tolist() == [[-(2**31)]]


@given(st.sampled_from([1, 2, 4, 8]), st.data())
def test_unpack_inverts_pack(bits: int, data: st.DataObject) -> None:
    shape = hnp.array_shapes(min_dims=2, max_dims=2, max_side=100)
    codes = torch.from_numpy(
        data.draw(hnp.arrays(np.int32, shape, elements=st.integers(0, 2**bits - 1)))
    )
    assert torch.equal(unpack(pack(codes, bits), codes.shape[1], bits), codes)


def test_more_bits_lose_less() -> None:
    gradient = torch.randn(20, 500, generator=torch.Generator().manual_seed(0))
    lost = []
    for bits in (1, 2, 4, 8):
        residual = torch.zeros_like(gradient)
        NumbaKernels().quantize(gradient, residual, bits)
        lost.append(float(residual.square().mean()))
    assert lost == sorted(lost, reverse=True)
    # 1 - 2 / pi of a normal variable's variance is lost with one bit.
    assert lost[0] == pytest.approx(1 - 2 / np.pi, abs=0.02)
    assert lost[3] < 1e-3


@all_bits
def test_levels_per_column_are_levels_per_row_of_the_transpose(bits: int) -> None:
    gradient = torch.randn(7, 40, generator=torch.Generator().manual_seed(0))
    residual, turned = torch.zeros(7, 40), torch.zeros(40, 7)
    by_column = quantize(gradient, residual, bits, tie="input")
    by_row = quantize(gradient.t().contiguous(), turned, bits)
    assert torch.equal(by_column.words, by_row.words)
    assert torch.equal(residual, turned.t())
    assert torch.equal(dequantize(by_column), dequantize(by_row).t())


def test_the_cpu_gets_the_compiled_loops() -> None:
    assert isinstance(kernels_for(torch.device("cpu")), NumbaKernels)
    assert isinstance(kernels_for(torch.device("meta")), TorchKernels)
