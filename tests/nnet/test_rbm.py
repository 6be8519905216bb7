"""Restricted Boltzmann machines against all their states, listed and summed in float64.

Shapes: N frames, V = 4 visible units, H = 3 hidden units, 2^H or 2^V states.
"""

import itertools

import pytest
import torch
from torch import Tensor

from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import AcousticModel, new_model
from asrtrain.nnet.rbm import Rbm, copy_into, layer_inputs, rbm_stack_layer

VISIBLE, HIDDEN = 4, 3
BINARY_AND_GAUSSIAN = pytest.mark.parametrize("gaussian", [False, True])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_rbm(gaussian: bool, deviation: float = 1.0) -> Rbm:
    draws = generator(1)
    shapes = [(HIDDEN, VISIBLE), (HIDDEN,), (VISIBLE,)]
    tensors = [
        torch.randn(each, generator=draws, dtype=torch.float64) * deviation for each in shapes
    ]
    return Rbm(*tensors, gaussian=gaussian)


def states(units: int) -> Tensor:
    return torch.tensor(list(itertools.product([0, 1], repeat=units)), dtype=torch.float64)


def energies(rbm: Rbm, visible: Tensor, hidden: Tensor) -> Tensor:
    """E(v, h) of every frame with every state of the hidden units, (N, 2^H), term by term."""
    table = torch.zeros(len(visible), len(hidden), dtype=torch.float64)
    for (row, v), (column, h) in itertools.product(enumerate(visible), enumerate(hidden)):
        own = (
            ((v - rbm.visible_bias) ** 2).sum() / 2
            if rbm.gaussian
            else -(rbm.visible_bias * v).sum()
        )
        table[row, column] = (
            own - (rbm.hidden_bias * h).sum() - (torch.outer(h, v) * rbm.weight).sum()
        )
    return table


def log_partition(rbm: Rbm) -> Tensor:
    """log Z: over all binary states, or, for Gaussian units, integrated over v in closed form.

    E = |v - b - W'h|^2 / 2 - c'h - h'Wb - |W'h|^2 / 2, and the first term integrates to a constant.
    """
    hidden = states(HIDDEN)
    if not rbm.gaussian:
        return (-energies(rbm, states(VISIBLE), hidden)).logsumexp(dim=(0, 1))
    pull = hidden @ rbm.weight
    exponents = hidden @ rbm.hidden_bias + pull @ rbm.visible_bias + pull.square().sum(dim=1) / 2
    return exponents.logsumexp(dim=0) + VISIBLE / 2 * torch.log(torch.tensor(2 * torch.pi))


def log_likelihood(rbm: Rbm, visible: Tensor) -> float:
    """Mean log p(v) in nats a frame."""
    summed = (-energies(rbm, visible, states(HIDDEN))).logsumexp(dim=1)
    return float((summed - log_partition(rbm)).mean())


def some_frames(gaussian: bool) -> Tensor:
    if gaussian:
        return torch.randn(6, VISIBLE, generator=generator(2), dtype=torch.float64)
    return states(VISIBLE)[[0, 3, 5, 9, 14, 15]]


@BINARY_AND_GAUSSIAN
def test_free_energy_sums_the_hidden_units_out(gaussian: bool) -> None:
    rbm, visible = small_rbm(gaussian), some_frames(gaussian)
    wanted = -(-energies(rbm, visible, states(HIDDEN))).logsumexp(dim=1)
    torch.testing.assert_close(rbm.free_energy(visible), wanted)


@BINARY_AND_GAUSSIAN
def test_hidden_probabilities_are_those_of_the_states(gaussian: bool) -> None:
    rbm, visible, hidden = small_rbm(gaussian), some_frames(gaussian), states(HIDDEN)
    shares = torch.softmax(-energies(rbm, visible, hidden), dim=1)
    torch.testing.assert_close(rbm.hidden_probabilities(visible), shares @ hidden)


def test_visible_means_are_those_of_the_states() -> None:
    rbm, visible, hidden = small_rbm(gaussian=False), states(VISIBLE), states(HIDDEN)
    shares = torch.softmax(-energies(rbm, visible, hidden), dim=0)
    torch.testing.assert_close(rbm.visible_means(hidden), shares.T @ visible)


def test_gaussian_visible_means_have_the_least_energy() -> None:
    rbm, hidden = small_rbm(gaussian=True), states(HIDDEN)
    means = rbm.visible_means(hidden)
    least = energies(rbm, means, hidden).diagonal()
    for unit, shift in itertools.product(range(VISIBLE), (-0.01, 0.01)):
        moved = means.clone()
        moved[:, unit] += shift
        raised = energies(rbm, moved, hidden).diagonal()
        torch.testing.assert_close(raised - least, torch.full_like(least, shift**2 / 2))


def test_positive_phase_is_the_expectation_given_the_data() -> None:
    rbm, visible, hidden = small_rbm(gaussian=False), some_frames(False), states(HIDDEN)
    # Visible units that are all but never on make a reconstruction of zeros, which leaves the
    # statistics of the data alone in the weight and the visible bias.
    rbm.visible_bias.fill_(-200)
    weight, hidden_bias, visible_bias = rbm.cd1_gradients(visible, generator())
    shares = torch.softmax(-energies(rbm, visible, hidden), dim=1)
    wanted = sum(
        share * torch.outer(h, v)
        for v, row in zip(visible, shares, strict=True)
        for h, share in zip(hidden, row, strict=True)
    )
    torch.testing.assert_close(weight, -wanted)
    torch.testing.assert_close(visible_bias, -visible.sum(dim=0))
    off = 1 / (1 + torch.exp(-rbm.hidden_bias))
    torch.testing.assert_close(hidden_bias, len(visible) * off - (shares @ hidden).sum(dim=0))


@BINARY_AND_GAUSSIAN
def test_mean_of_many_draws_is_the_expected_step(gaussian: bool) -> None:
    rbm, hidden, copies = small_rbm(gaussian), states(HIDDEN), 40_000
    frame = some_frames(gaussian)[1:2]
    shares = torch.softmax(-energies(rbm, frame, hidden), dim=1)[0]
    wanted = [torch.zeros_like(each) for each in rbm.parameters]
    for h, share in zip(hidden, shares, strict=True):
        total = h @ rbm.weight + rbm.visible_bias
        seen = total if gaussian else 1 / (1 + torch.exp(-total))
        back = 1 / (1 + torch.exp(-(rbm.weight @ seen + rbm.hidden_bias)))
        wanted[0] += share * torch.outer(back, seen)
        wanted[1] += share * back
        wanted[2] += share * seen
    wanted[0] -= torch.outer(shares @ hidden, frame[0])
    wanted[1] -= shares @ hidden
    wanted[2] -= frame[0]
    means = [each / copies for each in rbm.cd1_gradients(frame.expand(copies, -1), generator())]
    # Four deviations of the mean of draws whose own deviation is below 2.
    torch.testing.assert_close(means, wanted, rtol=0, atol=4 * 2 / copies**0.5)


@BINARY_AND_GAUSSIAN
def test_descending_raises_the_exact_likelihood(gaussian: bool) -> None:
    """Two patterns, equally often: the best binary model gives each a half, -log 2 nats a frame."""
    rbm, draws = small_rbm(gaussian, deviation=0.1), generator(3)
    patterns = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=torch.float64).repeat(10, 1)
    if gaussian:
        noise = torch.randn(patterns.shape, generator=draws, dtype=torch.float64)
        patterns = 6 * patterns - 3 + noise
    before, error_before = log_likelihood(rbm, patterns), rbm.reconstruction_error(patterns)
    reached = [before]
    # Contrastive divergence is no exact gradient: near its end it may lose what draws cost.
    for _ in range(4):
        for _ in range(150):
            for own, gradient in zip(
                rbm.parameters, rbm.cd1_gradients(patterns, draws), strict=True
            ):
                own -= 0.01 * gradient
        reached.append(log_likelihood(rbm, patterns))
    assert all(after > earlier - 0.01 for earlier, after in itertools.pairwise(reached))
    # The noise alone costs V/2 log(2 pi e) nats on average.
    best = -0.6931 - (VISIBLE / 2 * 2.8379 if gaussian else 0)
    assert before < best - 1.5
    assert reached[-1] > best - 0.5
    assert rbm.reconstruction_error(patterns) < error_before / 2


def test_reconstruction_error_is_summed_by_hand() -> None:
    rbm = Rbm(torch.zeros(1, 2), torch.zeros(1), torch.tensor([0.0, 2.0]), gaussian=True)
    # Without weights the reconstruction is the visible bias: 1 + 1 and 4 + 0.
    assert rbm.reconstruction_error(torch.tensor([[1.0, 3.0], [-2.0, 2.0]])) == 6


def test_gradients_depend_on_the_generator_alone() -> None:
    rbm, visible = small_rbm(gaussian=False), some_frames(False)
    torch.manual_seed(1)
    first = rbm.cd1_gradients(visible, generator(5))
    torch.manual_seed(2)
    second, third = (rbm.cd1_gradients(visible, generator(seed)) for seed in (5, 6))
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))
    assert not torch.equal(first[0], third[0])


def test_no_frames_give_zeros() -> None:
    rbm = small_rbm(gaussian=True)
    gradients = rbm.cd1_gradients(torch.zeros(0, VISIBLE, dtype=torch.float64), generator())
    for gradient, parameter in zip(gradients, rbm.parameters, strict=True):
        assert torch.equal(gradient, torch.zeros_like(parameter))


def sigmoid_model(**settings: object) -> AcousticModel:
    shape = {"hidden": [5, 3], "activation": "sigmoid", "left_context": 0, "right_context": 0}
    return new_model(DnnConfig(**shape | settings), 4, torch.zeros(6), seed=1)


def test_a_stack_becomes_the_hidden_layers() -> None:
    model, inputs = sigmoid_model(), torch.randn(7, 4, generator=generator())
    output = model.network[-1].weight.detach().clone()
    first = rbm_stack_layer(model, 0, generator(2))
    assert (first.gaussian, first.weight.shape) == (True, (5, 4))
    first.hidden_bias.copy_(torch.arange(5.0))
    copy_into(model.network, 0, first)
    seen = layer_inputs(model.network, 1, inputs)
    torch.testing.assert_close(seen, first.hidden_probabilities(inputs))
    assert not seen.requires_grad

    second = rbm_stack_layer(model, 1, generator(3), visible_mean=seen.mean(dim=0))
    assert (second.gaussian, second.weight.shape) == (False, (3, 5))
    torch.testing.assert_close(second.visible_bias.sigmoid(), seen.mean(dim=0))
    copy_into(model.network, 1, second)
    torch.testing.assert_close(
        model.network[:-1](inputs), second.hidden_probabilities(first.hidden_probabilities(inputs))
    )
    assert torch.equal(model.network[-1].weight, output)


def test_training_on_does_not_change_the_network() -> None:
    model = sigmoid_model()
    rbm = rbm_stack_layer(model, 0, generator(2))
    copy_into(model.network, 0, rbm)
    before = model.network[0].weight.detach().clone()
    rbm.weight.zero_()
    assert torch.equal(model.network[0].weight, before)


def test_units_that_are_always_on_keep_a_finite_bias() -> None:
    rbm = rbm_stack_layer(
        sigmoid_model(), 1, generator(), visible_mean=torch.tensor([0, 1, 0.5, 0.2, 1])
    )
    assert rbm.visible_bias.isfinite().all()


def test_the_first_layer_starts_at_the_mean_of_the_features() -> None:
    mean = torch.tensor([0.5, -0.5, 2, 0])
    rbm = rbm_stack_layer(sigmoid_model(), 0, generator(), visible_mean=mean)
    assert torch.equal(rbm.visible_bias, mean)


def test_the_output_layer_is_no_hidden_layer() -> None:
    with pytest.raises(IndexError):
        rbm_stack_layer(sigmoid_model(), 2, generator())


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"activation": "relu"}, r"pretrain\.method=rbm with model\.activation=relu: expected sig"),
        ({"svd_rank": 2}, r"pretrain\.method=rbm with model\.svd_rank=2: expected 0"),
    ],
)
def test_networks_that_an_rbm_does_not_fit_are_named(settings: dict, named: str) -> None:
    with pytest.raises(UserError, match=named):
        rbm_stack_layer(sigmoid_model(**settings), 0, generator())
