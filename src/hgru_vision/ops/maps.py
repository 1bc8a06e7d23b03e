"""Two maps of many channels: the 1x1 convolution with which every readout begins."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from hgru_vision.ops.dispatch import takes_kernels

__all__ = ["two_maps"]

MOST_CHANNELS = 1024
"""That a program of the kernel takes at once."""


def two_maps(features: Tensor, weight: Tensor) -> Tensor:
    """Compute two maps of features, as `torch.nn.functional.conv2d` does.

    On a GPU, features whose channels lie side by side, as the hGRU's do, go through a kernel of our
    own (`map_kernels.py`, differentiable once); all others through `conv2d`.

    Shape
    -----
    features : (B, K, H, W); weight : (2, K, 1, 1); output : (B, 2, H, W)

    Examples
    --------
    >>> two_maps(torch.ones(1, 3, 4, 4), torch.ones(2, 3, 1, 1))[0, :, 0, 0]
    tensor([3., 3.])
    """
    ours = (
        takes_kernels(features, weight)
        and weight.shape == (2, features.shape[1], 1, 1)  # conv2d says what is wrong with others
        and 1 < features.shape[1] <= MOST_CHANNELS  # one lies side by side in any order
        and features.is_contiguous(memory_format=torch.channels_last)
    )
    if not ours:
        return F.conv2d(features, weight)
    from hgru_vision.ops.map_kernels import TwoMaps

    return TwoMaps.apply(features, weight[:, :, 0, 0])
