"""The networks in conf/train/model have the sizes that they are named after."""

from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.dnn import new_network

PRESETS = Path(__file__).parents[2] / "conf" / "train" / "model"


def preset(name: str) -> DnnConfig:
    return DnnConfig(**OmegaConf.to_container(OmegaConf.load(PRESETS / f"{name}.yaml")))


def parameters(name: str, dim: int, senones: int) -> int:
    """Of the network itself, built without memory for its values."""
    with torch.device("meta"):
        network = new_network(preset(name), dim, senones, torch.Generator())
    return sum(each.numel() for each in network.parameters())


@pytest.mark.parametrize("name", sorted(each.stem for each in PRESETS.glob("*.yaml")))
def test_every_preset_is_a_network(name: str) -> None:
    assert parameters(name, dim=13, senones=100) > 0


@pytest.mark.parametrize(
    ("name", "dim", "senones", "count"),
    [
        ("swbd_46m", 39, 9304, 45_122_648),
        ("prod_160m", 39, 9304, 119_230_464 + 4096 * 9304 + 9304),
        ("prod_160m", 39, 10_000, 119_230_464 + 4096 * 10_000 + 10_000),
        ("cntk_an4", 33, 132, 516_740),
        ("relu_3x256", 39, 100, 429 * 256 + 2 * 256**2 + 256 * 100 + 3 * 256 + 100),
        ("sigmoid_3x256", 39, 100, 429 * 256 + 2 * 256**2 + 256 * 100 + 3 * 256 + 100),
        ("svd_3x256", 39, 100, 64 * (429 + 256 + 4 * 256 + 256 + 100) + 3 * 256 + 100),
    ],
)
def test_parameters(name: str, dim: int, senones: int, count: int) -> None:
    assert parameters(name, dim, senones) == count


def test_sizes_are_those_in_the_paper() -> None:
    # 46 M and 160 M are its round figures.
    assert parameters("swbd_46m", 39, 9304) == pytest.approx(46e6, rel=0.02)
    assert parameters("prod_160m", 39, 9304) == pytest.approx(160e6, rel=0.02)


def test_the_factored_preset_differs_by_its_rank_alone() -> None:
    full, factored = preset("sigmoid_3x256"), preset("svd_3x256")
    assert (full.hidden, full.activation) == (factored.hidden, factored.activation)
    assert parameters("svd_3x256", 39, 100) < parameters("sigmoid_3x256", 39, 100) / 1.7
