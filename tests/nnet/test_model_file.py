"""Models survive saving; files that are no models are named; nothing in them is run."""

from pathlib import Path

import pytest
import torch

from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.model_file import load_model, log_priors_from_counts, new_model, save_model


def test_save_then_load(tmp_path: Path) -> None:
    priors = log_priors_from_counts(torch.tensor([1, 2, 3]))
    config = DnnConfig(hidden=[5, 4], activation="sigmoid", left_context=2, right_context=1)
    model = new_model(config, dim=3, log_priors=priors, seed=7)
    save_model(model, tmp_path / "final.pt")
    loaded = load_model(tmp_path / "final.pt")
    assert (loaded.config, loaded.dim, loaded.num_senones) == (model.config, 3, 3)
    assert torch.equal(loaded.log_priors, priors)
    for name, parameter in model.network.named_parameters():
        assert torch.equal(loaded.network.get_parameter(name), parameter)


def test_priors_are_shares_with_a_floor() -> None:
    priors = log_priors_from_counts(torch.tensor([0, 25, 75]), floor=1e-3).exp()
    torch.testing.assert_close(priors, torch.tensor([1e-3, 0.25, 0.75]))


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x80\x04K\x01."])
def test_a_file_that_is_no_model_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "final.pt").write_bytes(content)
    with pytest.raises(UserError, match=r"final\.pt: "):
        load_model(tmp_path / "final.pt")


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    torch.save({"format": "something else"}, tmp_path / "final.pt")
    with pytest.raises(UserError, match=r"final\.pt: not a model of this version"):
        load_model(tmp_path / "final.pt")


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file; expected a model that `asrtrain train`"):
        load_model(tmp_path / "final.pt")


def saved_with(path: Path, settings: dict) -> None:
    """Save a model of 3 senones whose settings in the file are changed by `settings`."""
    save_model(new_model(DnnConfig(hidden=[5]), 2, torch.zeros(3), seed=1), path)
    held = torch.load(path, weights_only=True)
    changed = held["config"] | settings
    held["config"] = {key: value for key, value in changed.items() if value is not None}
    torch.save(held, path)


def test_a_file_older_than_a_setting_takes_its_default(tmp_path: Path) -> None:
    saved_with(tmp_path / "final.pt", {"svd_rank": None})
    assert load_model(tmp_path / "final.pt").config == DnnConfig(hidden=[5])


def test_a_file_with_settings_of_the_future_is_named(tmp_path: Path) -> None:
    saved_with(tmp_path / "final.pt", {"skips": 2, "dropout": 0.1})
    message = r"final\.pt: written by a newer version .*: model\.dropout, model\.skips\); update"
    with pytest.raises(UserError, match=message):
        load_model(tmp_path / "final.pt")


class Trap:
    def __reduce__(self) -> tuple:
        return Path.touch, (Path("trap-was-run"),)


def test_code_in_a_file_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"format": Trap()}, tmp_path / "final.pt")
    with pytest.raises(UserError, match=r"final\.pt: cannot be read as a model"):
        load_model(tmp_path / "final.pt")
    assert not Path("trap-was-run").exists()
