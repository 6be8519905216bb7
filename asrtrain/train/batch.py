"""From frame numbers to what the network takes."""

import torch
from torch import Tensor

from asrtrain.frames.shards import FrameSet, Indices
from asrtrain.nnet.model_file import AcousticModel


def spliced_batch(data: FrameSet, indices: Indices, model: AcousticModel) -> tuple[Tensor, Tensor]:
    """Spliced features (N, inputs) and labels (N,) of the frames, where the model's network is."""
    config = model.config
    features, labels = data.batch(indices, config.left_context, config.right_context)
    device = next(model.network.parameters()).device
    return torch.from_numpy(features).to(device), torch.from_numpy(labels).long().to(device)
