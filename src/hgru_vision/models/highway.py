"""Highway networks of one, three and five layers (Supp., "Additional models")."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from hgru_vision.models.catalogue.highway import KERNEL_SIZE
from hgru_vision.models.large_conv import LargeConv2d
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import StandardNetwork
from hgru_vision.papers.linsley2018 import CHANNELS

__all__ = ["Highway", "highway_1", "highway_3", "highway_5"]


class Highway(nn.Module):
    """A convolutional highway layer: y = T relu(H * x) + (1 - T) x, T = sigmoid(U * x + b).

    Srivastava, Greff & Schmidhuber (2015), "Training very deep networks", Eq. 3: the transform gate
    T lets in what the layer computes, and the rest of the input is carried over. Both kernels have
    the same size.

    Parameters
    ----------
    channels, kernel_size
        Of the input, the output and both kernels.
    generator
        For the starting values: Xavier weights; the bias of the gate starts at -1, so that a new
        layer carries most of its input (their section 2.2).

    Shape
    -----
    x, output : (B, K, H, W)

    Examples
    --------
    >>> layer = Highway(4, 8, torch.Generator().manual_seed(0))
    >>> layer(torch.ones(1, 4, 32, 32)).shape
    torch.Size([1, 4, 32, 32])
    """

    def __init__(self, channels: int, kernel_size: int, generator: Generator) -> None:
        super().__init__()
        self.transform = LargeConv2d(channels, channels, kernel_size, generator)
        self.gate = LargeConv2d(channels, channels, kernel_size, generator)
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, x: Tensor) -> Tensor:
        """Transform a part of the input and carry the rest."""
        new = torch.relu(self.transform(x))
        # Under autocast on a CPU the input stage gives less precise numbers than this layer.
        return torch.lerp(x.to(new.dtype), new, torch.sigmoid(self.gate(x)))


def _highway(depth: int, generator: Generator, head: Head) -> nn.Module:
    layers = [Highway(CHANNELS, KERNEL_SIZE, generator) for _ in range(depth)]
    return StandardNetwork(nn.Sequential(*layers), CHANNELS, head, generator)


def highway_1(*, generator: Generator, head: Head) -> nn.Module:
    """Make a highway network of one layer."""
    return _highway(1, generator, head)


def highway_3(*, generator: Generator, head: Head) -> nn.Module:
    """Make a highway network of three layers."""
    return _highway(3, generator, head)


def highway_5(*, generator: Generator, head: Head) -> nn.Module:
    """Make a highway network of five layers."""
    return _highway(5, generator, head)
