"""Squared responses of a bank of filters: the input stage of every network of the study."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from hgru_vision.ops.dispatch import takes_kernels

__all__ = ["squared_responses"]

MOST_FILTERS = 128
MOST_TAPS = 256
"""Of a filter; a program of the kernels takes all of both at once."""


def squared_responses(images: Tensor, weight: Tensor) -> Tensor:
    """Filter images of one channel, 'same' zero padding, and square.

    On a GPU this is a kernel of our own (`response_kernels.py`, differentiable once, with respect
    to the filters); images that need a gradient, and all other cases, go through `conv2d`.

    Shape
    -----
    images : (B, 1, H, W); weight : (K, 1, S, S), S odd; output : (B, K, H, W)

    Examples
    --------
    >>> import torch
    >>> squared_responses(torch.ones(1, 1, 5, 5), torch.ones(2, 1, 3, 3))[0, :, 2, 2]
    tensor([81., 81.])
    """
    filters, channels, height, width = weight.shape
    ours = (
        takes_kernels(images, weight)
        and not images.requires_grad
        and images.shape[1] == channels == 1
        and height == width
        and height % 2 == 1
        and height * width <= MOST_TAPS
        and filters <= MOST_FILTERS
    )
    if not ours:
        return F.conv2d(images, weight, padding="same").square()
    from hgru_vision.ops.response_kernels import SquaredResponses

    return SquaredResponses.apply(images, weight)
