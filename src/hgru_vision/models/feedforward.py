"""Feedforward networks of one, three and five layers (Main, "Feedforward models").

Each layer is a convolution with a bias and a ReLU. Kernels are small, medium or large; the dilated
and the non-local networks are medium ones with another first layer.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Generator, Tensor, nn

from hgru_vision.models.large_conv import LargeConv2d
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import StandardNetwork, xavier
from hgru_vision.papers.linsley2018 import CHANNELS, DILATION, FEEDFORWARD_KERNELS

__all__ = [
    "NonLocal",
    "ff_dilated_1",
    "ff_dilated_3",
    "ff_dilated_5",
    "ff_large_1",
    "ff_large_3",
    "ff_large_5",
    "ff_medium_1",
    "ff_medium_3",
    "ff_medium_5",
    "ff_nonlocal_1",
    "ff_nonlocal_3",
    "ff_nonlocal_5",
    "ff_small_1",
    "ff_small_3",
    "ff_small_5",
]


class NonLocal(nn.Module):
    """Every unit sees all others: z = x + W g(x) softmax, the embedded Gaussian form.

    Wang, Girshick, Gupta & He (2018), "Non-local neural networks", Eqs. 1 and 6: theta, phi and g
    are 1x1 maps to half of the channels, W maps back. As in their section 3.3, phi and g are
    max-pooled over 2x2 pixels, which leaves a fourth of the pairs. The matrix of all pairs, half a
    gigabyte for an image of 150x150, is never in memory.

    Parameters
    ----------
    channels
        K.
    generator
        For the starting values: Xavier, as all feedforward weights of the paper. (Wang et al. start
        W at zero.)

    Shape
    -----
    x, output : (B, K, H, W)

    Examples
    --------
    >>> import torch
    >>> block = NonLocal(16, torch.Generator().manual_seed(0))
    >>> block(torch.ones(1, 16, 32, 32)).shape
    torch.Size([1, 16, 32, 32])
    """

    def __init__(self, channels: int, generator: Generator) -> None:
        super().__init__()
        half = channels // 2
        self.theta = nn.utils.skip_init(nn.Conv2d, channels, half, 1)
        self.phi = nn.utils.skip_init(nn.Conv2d, channels, half, 1)
        self.g = nn.utils.skip_init(nn.Conv2d, channels, half, 1)
        self.w = nn.utils.skip_init(nn.Conv2d, half, channels, 1)
        for layer in (self.theta, self.phi, self.g, self.w):
            xavier(layer, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Add to each unit what it takes from all others."""
        query = _rows(self.theta(x))  # (B, 1, H W, K / 2)
        key = _rows(F.max_pool2d(self.phi(x), 2, ceil_mode=True))  # (B, 1, H W / 4, K / 2)
        value = _rows(F.max_pool2d(self.g(x), 2, ceil_mode=True))  # (B, 1, H W / 4, K / 2)
        seen = F.scaled_dot_product_attention(query, key, value, scale=1.0)  # (B, 1, H W, K / 2)
        return x + self.w(seen.squeeze(1).transpose(1, 2).unflatten(2, x.shape[2:]))


def _rows(maps: Tensor) -> Tensor:
    """Make a row of each pixel, for one attention head.

    Rows must be contiguous: else a form of attention is taken that keeps the matrix of all pairs.
    """
    return maps.flatten(2).transpose(1, 2).unsqueeze(1).contiguous()


def _stack(size: str, depth: int, generator: Generator, *, dilation: int = 1) -> nn.Sequential:
    """Stack layers of one kernel size; dilation is that of the first."""
    kernel_size, kernels = FEEDFORWARD_KERNELS[size]
    layers: list[nn.Module] = [
        LargeConv2d(CHANNELS, kernels, kernel_size, generator, dilation=dilation),
        nn.ReLU(),
    ]
    for _ in range(depth - 1):
        layers += [LargeConv2d(kernels, kernels, kernel_size, generator), nn.ReLU()]
    return nn.Sequential(*layers)


def _plain(size: str, depth: int, generator: Generator, head: Head) -> nn.Module:
    features = _stack(size, depth, generator)
    return StandardNetwork(features, FEEDFORWARD_KERNELS[size][1], head, generator)


def _dilated(depth: int, generator: Generator, head: Head) -> nn.Module:
    features = _stack("medium", depth, generator, dilation=DILATION)
    return StandardNetwork(features, FEEDFORWARD_KERNELS["medium"][1], head, generator)


def _nonlocal(depth: int, generator: Generator, head: Head) -> nn.Module:
    kernels = FEEDFORWARD_KERNELS["medium"][1]
    features = _stack("medium", depth, generator)
    features.insert(2, NonLocal(kernels, generator))  # behind the first layer and its ReLU
    return StandardNetwork(features, kernels, head, generator)


def ff_small_1(*, generator: Generator, head: Head) -> nn.Module:
    """Make one layer of 10x10 kernels."""
    return _plain("small", 1, generator, head)


def ff_small_3(*, generator: Generator, head: Head) -> nn.Module:
    """Make three layers of 10x10 kernels."""
    return _plain("small", 3, generator, head)


def ff_small_5(*, generator: Generator, head: Head) -> nn.Module:
    """Make five layers of 10x10 kernels."""
    return _plain("small", 5, generator, head)


def ff_medium_1(*, generator: Generator, head: Head) -> nn.Module:
    """Make one layer of 15x15 kernels."""
    return _plain("medium", 1, generator, head)


def ff_medium_3(*, generator: Generator, head: Head) -> nn.Module:
    """Make three layers of 15x15 kernels."""
    return _plain("medium", 3, generator, head)


def ff_medium_5(*, generator: Generator, head: Head) -> nn.Module:
    """Make five layers of 15x15 kernels."""
    return _plain("medium", 5, generator, head)


def ff_large_1(*, generator: Generator, head: Head) -> nn.Module:
    """Make one layer of 20x20 kernels."""
    return _plain("large", 1, generator, head)


def ff_large_3(*, generator: Generator, head: Head) -> nn.Module:
    """Make three layers of 20x20 kernels."""
    return _plain("large", 3, generator, head)


def ff_large_5(*, generator: Generator, head: Head) -> nn.Module:
    """Make five layers of 20x20 kernels."""
    return _plain("large", 5, generator, head)


def ff_dilated_1(*, generator: Generator, head: Head) -> nn.Module:
    """Make one layer of dilated 15x15 kernels."""
    return _dilated(1, generator, head)


def ff_dilated_3(*, generator: Generator, head: Head) -> nn.Module:
    """Make three layers of 15x15 kernels, dilated in the first."""
    return _dilated(3, generator, head)


def ff_dilated_5(*, generator: Generator, head: Head) -> nn.Module:
    """Make five layers of 15x15 kernels, dilated in the first."""
    return _dilated(5, generator, head)


def ff_nonlocal_1(*, generator: Generator, head: Head) -> nn.Module:
    """Make one layer of 15x15 kernels, with a non-local block."""
    return _nonlocal(1, generator, head)


def ff_nonlocal_3(*, generator: Generator, head: Head) -> nn.Module:
    """Make three layers of 15x15 kernels, with a non-local block in the first."""
    return _nonlocal(3, generator, head)


def ff_nonlocal_5(*, generator: Generator, head: Head) -> nn.Module:
    """Make five layers of 15x15 kernels, with a non-local block in the first."""
    return _nonlocal(5, generator, head)
