"""Log-likelihoods are log posteriors less log priors, frame by frame."""

from pathlib import Path

import numpy as np
import pytest
import torch

from asrtrain.io.errors import UserError
from asrtrain.nnet.config import DnnConfig
from asrtrain.nnet.dnn import frame_scores
from asrtrain.nnet.model_file import log_priors_from_counts, new_model, save_model
from asrtrain.nnet.scorer import load_scorer


def test_scores_of_an_utterance(tmp_path: Path) -> None:
    priors = log_priors_from_counts(torch.tensor([1, 2, 5]))
    model = new_model(DnnConfig(hidden=[6], left_context=1, right_context=1), 2, priors, seed=1)
    torch.nn.init.normal_(model.network[-1].weight, generator=torch.Generator().manual_seed(1))
    save_model(model, tmp_path / "final.pt")
    features = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    scores = load_scorer(tmp_path)(features)
    for frame in range(4):
        context = [features[min(max(frame + offset, 0), 3)] for offset in (-1, 0, 1)]
        posterior = frame_scores(model.network, torch.from_numpy(np.concatenate(context)[None]))
        np.testing.assert_allclose(scores[frame], (posterior[0] - priors).numpy(), rtol=1e-5)


def test_features_of_other_dimensions_are_named(tmp_path: Path) -> None:
    model = new_model(DnnConfig(hidden=[6]), 2, torch.zeros(3), seed=1)
    save_model(model, tmp_path / "final.pt")
    with pytest.raises(UserError, match="3 dimensions, the network was trained on 2"):
        load_scorer(tmp_path)(np.zeros((4, 3), np.float32))
