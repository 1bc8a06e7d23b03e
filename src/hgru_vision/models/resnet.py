"""Residual networks: He et al. (2016), in the paper's section "Residual networks".

They stand alone, without the input and the readout stage (Supp., "Readout stage"). Parameters have
torchvision's names, so that its files load into a network of three input channels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.models.catalogue.entry import narrow
from hgru_vision.models.catalogue.resnet import (
    BLOCKS,
    BOTTLENECK,
    STAGE_CHANNELS,
    has_bottlenecks,
)
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import check_images
from hgru_vision.papers.linsley2018 import FRACTIONS

__all__ = [
    "ResNet",
    "resnet18",
    "resnet50",
    "resnet152",
    "resnet152_fifth",
    "resnet152_half",
    "resnet152_tenth",
]

_LEAST = 32  # pixels: five halvings leave one unit


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut around them.

    Parameters
    ----------
    inputs, inner
        Channels that come in, and of both convolutions.
    stride
        Of the first convolution and the shortcut.
    generator
        For the starting values.

    Shape
    -----
    x : (B, inputs, H, W); output : (B, inner, ceil(H / stride), ceil(W / stride))
    """

    def __init__(self, inputs: int, inner: int, stride: int, generator: torch.Generator) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, inner, 3, stride, generator)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = _conv(inner, inner, 3, 1, generator)
        self.bn2 = nn.BatchNorm2d(inner)
        self.downsample = _shortcut(inputs, inner, stride, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Add the change to the input."""
        change = F.relu(self.bn1(self.conv1(x)))
        change = self.bn2(self.conv2(change))
        return F.relu(change + self.downsample(x))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions, the last one four times as wide, and a shortcut around them.

    The stride is in the 3x3 convolution, as in torchvision; the article has it in the first.

    Parameters
    ----------
    inputs, inner
        Channels that come in, and of the first two convolutions.
    stride
        Of the 3x3 convolution and the shortcut.
    generator
        For the starting values.

    Shape
    -----
    x : (B, inputs, H, W); output : (B, 4 inner, ceil(H / stride), ceil(W / stride))
    """

    def __init__(self, inputs: int, inner: int, stride: int, generator: torch.Generator) -> None:
        super().__init__()
        outputs = inner * BOTTLENECK
        self.conv1 = _conv(inputs, inner, 1, 1, generator)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = _conv(inner, inner, 3, stride, generator)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = _conv(inner, outputs, 1, 1, generator)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = _shortcut(inputs, outputs, stride, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Add the change to the input."""
        change = F.relu(self.bn1(self.conv1(x)))
        change = F.relu(self.bn2(self.conv2(change)))
        change = self.bn3(self.conv3(change))
        return F.relu(change + self.downsample(x))


class ResNet(nn.Module):
    """Residual network of He et al. (2016).

    Parameters
    ----------
    depth
        Number of layers: 18, 50 or 152.
    fraction
        Of the parameters of the whole network that this one has: every layer is narrower by its
        square root.
    in_channels, classes
        Of the images, and of the output.
    head
        "classify", or "pixels": the classifier is then applied at every place of the last map and
        its logits are upsampled bilinearly, with the same parameters.
    generator
        For the starting values.

    Notes
    -----
    Starting values: kernels normal with the variance 2 / (outputs k^2) of He et al. (2015), batch
    norm the identity, the classifier normal with the variance 1 / inputs and a bias of zero.

    Shape
    -----
    images : (B, in_channels, H, W), H and W from 32
    output : (B, classes), or (B, classes, H, W) with the head "pixels"

    Examples
    --------
    >>> network = ResNet(18, generator=torch.Generator().manual_seed(0))
    >>> network(torch.zeros(2, 1, 32, 40)).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        depth: int,
        *,
        generator: torch.Generator,
        fraction: float = 1,
        in_channels: int = 1,
        classes: int = 2,
        head: Head = "classify",
    ) -> None:
        super().__init__()
        if depth not in BLOCKS:
            raise ValueError(f"depth is {depth}; choose one of {', '.join(map(str, BLOCKS))}")
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction is {fraction}; it must be above 0 and at most 1")
        self.in_channels = in_channels
        self.head = head
        width = [narrow(channels, fraction) for channels in STAGE_CHANNELS]
        self.conv1 = _conv(in_channels, width[0], 7, 2, generator)
        self.bn1 = nn.BatchNorm2d(width[0])

        block = Bottleneck if has_bottlenecks(depth) else BasicBlock
        growth = BOTTLENECK if has_bottlenecks(depth) else 1
        inputs = width[0]
        stages = []
        for stage, (inner, blocks) in enumerate(zip(width, BLOCKS[depth], strict=True)):
            layers = nn.Sequential()
            for place in range(blocks):
                stride = 2 if stage > 0 and place == 0 else 1
                layers.append(block(inputs, inner, stride, generator))
                inputs = inner * growth
            stages.append(layers)
        self.layer1, self.layer2, self.layer3, self.layer4 = stages

        self.fc = nn.utils.skip_init(nn.Linear, inputs, classes)
        nn.init.kaiming_normal_(self.fc.weight, nonlinearity="linear", generator=generator)
        nn.init.zeros_(self.fc.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits."""
        check_images(images, least=_LEAST, channels=self.in_channels, like=self)
        x = F.relu(self.bn1(self.conv1(images)))  # (B, 64, H/2, W/2)
        x = F.max_pool2d(x, kernel_size=3, stride=2, padding=1)  # (B, 64, H/4, W/4)
        x = self.layer2(self.layer1(x))  # (B, 512 or 128, H/8, W/8)
        x = self.layer4(self.layer3(x))  # (B, 2048 or 512, H/32, W/32)
        if self.head == "pixels":
            logits = self.fc(x.movedim(1, -1)).movedim(-1, 1)  # (B, classes, H/32, W/32)
            return F.interpolate(logits, images.shape[-2:], mode="bilinear")
        return self.fc(x.mean((-2, -1)))  # (B, classes)


def _conv(
    inputs: int, outputs: int, kernel_size: int, stride: int, generator: torch.Generator
) -> nn.Module:
    """Make a convolution without bias, by He et al. (2015)."""
    conv = nn.utils.skip_init(
        nn.Conv2d, inputs, outputs, kernel_size, stride, padding=kernel_size // 2, bias=False
    )
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu", generator=generator)
    return conv


def _shortcut(inputs: int, outputs: int, stride: int, generator: torch.Generator) -> nn.Module:
    """Make the identity, or a projection where the block changes the shape."""
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(_conv(inputs, outputs, 1, stride, generator), nn.BatchNorm2d(outputs))


def resnet18(*, generator: torch.Generator, head: Head, in_channels: int = 1) -> ResNet:
    """ResNet-18."""
    return ResNet(18, in_channels=in_channels, head=head, generator=generator)


def resnet50(*, generator: torch.Generator, head: Head, in_channels: int = 1) -> ResNet:
    """ResNet-50."""
    return ResNet(50, in_channels=in_channels, head=head, generator=generator)


def resnet152(*, generator: torch.Generator, head: Head, in_channels: int = 1) -> ResNet:
    """ResNet-152."""
    return ResNet(152, in_channels=in_channels, head=head, generator=generator)


def resnet152_half(*, generator: torch.Generator, head: Head, in_channels: int = 1) -> ResNet:
    """ResNet-152 with half of the parameters."""
    fraction = 1 / FRACTIONS["half"]
    return ResNet(152, fraction=fraction, in_channels=in_channels, head=head, generator=generator)


def resnet152_fifth(*, generator: torch.Generator, head: Head, in_channels: int = 1) -> ResNet:
    """ResNet-152 with a fifth of the parameters."""
    fraction = 1 / FRACTIONS["fifth"]
    return ResNet(152, fraction=fraction, in_channels=in_channels, head=head, generator=generator)


def resnet152_tenth(*, generator: torch.Generator, head: Head, in_channels: int = 1) -> ResNet:
    """ResNet-152 with a tenth of the parameters."""
    fraction = 1 / FRACTIONS["tenth"]
    return ResNet(152, fraction=fraction, in_channels=in_channels, head=head, generator=generator)
