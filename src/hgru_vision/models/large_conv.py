"""Convolutions with large kernels, of the feedforward and the highway networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgru_vision.ops import horizontal_conv

__all__ = ["LargeConv2d"]


class LargeConv2d(nn.Module):
    """A convolution with large kernels, size unchanged, zeros beyond the border.

    It is computed by `hgru_vision.ops`, which takes the Fourier transform where that is faster.
    There a kernel has a centre: dilation puts zeros between the weights, and an even kernel gets a
    first row and column of zeros. Of the S - 1 zeros around the image the larger half then lies to
    the right and below, as in TensorFlow, which the authors used.

    Parameters
    ----------
    inputs, outputs
        Channels.
    kernel_size
        S, odd or even.
    generator
        For the starting values: Xavier-uniform weights, no bias.
    dilation
        Pixels from one weight to the next.

    Shape
    -----
    x : (B, inputs, H, W); output : (B, outputs, H, W)

    Examples
    --------
    >>> layer = LargeConv2d(25, 36, 10, torch.Generator().manual_seed(0))
    >>> layer(torch.ones(1, 25, 32, 32)).shape
    torch.Size([1, 36, 32, 32])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: int,
        generator: torch.Generator,
        *,
        dilation: int = 1,
    ) -> None:
        super().__init__()
        self.dilation = dilation
        self.weight = nn.Parameter(torch.empty(outputs, inputs, kernel_size, kernel_size))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve."""
        return horizontal_conv(x, self.centred()) + self.bias.view(-1, 1, 1)

    def centred(self) -> Tensor:
        """Give the kernel as one of odd size, with its zeros in place."""
        outputs, inputs, size, _ = self.weight.shape
        extent = (size - 1) * self.dilation + 1
        first = 1 - extent % 2
        kernel = self.weight.new_zeros(outputs, inputs, first + extent, first + extent)
        kernel[..., first :: self.dilation, first :: self.dilation] = self.weight
        return kernel

    def extra_repr(self) -> str:
        """Show what the layer was made with."""
        outputs, inputs, size, _ = self.weight.shape
        return f"{inputs}, {outputs}, kernel_size={size}, dilation={self.dilation}"
