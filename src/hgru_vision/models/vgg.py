"""The encoder of VGG16: Simonyan & Zisserman (2014), trained from scratch in the paper.

Parameters have torchvision's names, ``features.N``, so that its files load into an encoder of three
input channels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.models.catalogue.dense import BLOCKS
from hgru_vision.models.catalogue.entry import narrow
from hgru_vision.models.stages import xavier

__all__ = ["Encoding", "VGG16Encoder"]


class Encoding(NamedTuple):
    """What the encoder gives of an image: five blocks at H/1 to H/16, and their poolings."""

    activities: tuple[Tensor, ...]
    """Of the last convolution of each block, conv1_2, conv2_2, conv3_3, conv4_3 and conv5_3."""

    indices: tuple[Tensor, ...]
    """Place of each pooled value in its block's map, as `F.max_unpool2d` takes it."""

    pooled: Tensor
    """The last block after its pooling: what torchvision's ``features`` gives."""


class VGG16Encoder(nn.Module):
    """The thirteen convolutions of VGG16 in five blocks, each ended by 2x2 max pooling.

    An odd side loses its last row or column in the pooling: 150 pixels become 75, 37, 18, 9 and 4.

    Parameters
    ----------
    in_channels
        Of the images.
    fraction
        Of the parameters of the whole encoder that this one has: every layer is narrower by its
        square root.
    batch_norm
        Put batch norm after each convolution, as in torchvision's ``vgg16_bn``.
    generator
        For the starting values: Xavier-uniform kernels, biases of zero. Without batch norm each
        ReLU halves the power of such a network's activity, as it did in the paper's.

    Attributes
    ----------
    channels : tuple of int
        Of the five blocks.

    Shape
    -----
    images : (B, in_channels, H, W), H and W from 32
    activities : (B, 64, H, W), (B, 128, H/2, W/2), (B, 256, H/4, W/4), (B, 512, H/8, W/8),
        (B, 512, H/16, W/16)
    indices : the channels of `activities` at half their H and W
    pooled : (B, 512, H/32, W/32)

    Examples
    --------
    >>> encoder = VGG16Encoder(generator=torch.Generator().manual_seed(0))
    >>> encoding = encoder(torch.zeros(1, 1, 50, 50))
    >>> [tuple(block.shape[1:]) for block in encoding.activities]
    [(64, 50, 50), (128, 25, 25), (256, 12, 12), (512, 6, 6), (512, 3, 3)]
    >>> encoding.pooled.shape
    torch.Size([1, 512, 1, 1])
    """

    def __init__(
        self,
        *,
        generator: torch.Generator,
        in_channels: int = 1,
        fraction: float = 1,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction is {fraction}; it must be above 0 and at most 1")
        self.channels = tuple(narrow(channels, fraction) for channels, _ in BLOCKS)
        self.features = nn.Sequential()
        inputs = in_channels
        for channels, (_, layers) in zip(self.channels, BLOCKS, strict=True):
            for _ in range(layers):
                conv = nn.utils.skip_init(nn.Conv2d, inputs, channels, 3, padding=1)
                xavier(conv, generator)
                normalise = [nn.BatchNorm2d(channels)] if batch_norm else []
                self.features.extend([conv, *normalise, nn.ReLU()])
                inputs = channels
            self.features.append(nn.MaxPool2d(2))

    def forward(self, images: Tensor) -> Encoding:
        """Encode images, and keep what decoders use."""
        activities, indices = [], []
        x = images
        for layer in self.features:
            if isinstance(layer, nn.MaxPool2d):
                activities.append(x)
                x, places = F.max_pool2d(x, layer.kernel_size, return_indices=True)
                indices.append(places)
            else:
                x = layer(x)
        return Encoding(tuple(activities), tuple(indices), x)
