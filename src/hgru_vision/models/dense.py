"""Per-pixel prediction networks on a VGG16 encoder: FCN, U-Net and SegNet.

Main, "Per-pixel prediction models". A decoder brings the encoder's activity back to the size of the
image, and the readout stage follows. All weights start from scratch, by Xavier.

The encoder's poolings drop the last row or column of an odd side. Each decoder gives back the size
of the map that its step undoes, so that images may have any size from 32 pixels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.models.catalogue.dense import BLOCKS, MAPS, UPSAMPLING_KERNEL
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import Readout, check_images, pixel_readout, xavier
from hgru_vision.models.vgg import Encoding, VGG16Encoder
from hgru_vision.papers.linsley2018 import FRACTIONS

__all__ = [
    "FCNDecoder",
    "SegNetDecoder",
    "UNetDecoder",
    "bilinear_kernel",
    "fcn",
    "segnet",
    "unet",
    "unet_fifth",
    "unet_half",
    "unet_tenth",
]

_LEAST = 32  # pixels: five poolings leave one unit


class DenseNetwork(nn.Module):
    """Encoder, decoder and readout stage.

    Parameters
    ----------
    encoder
        Of the images.
    decoder
        Takes an `Encoding` and gives (B, K, H, W).
    channels
        K.
    head
        "classify" for the readout stage, "pixels" for two logits a pixel.
    generator
        For the starting values of the readout.

    Shape
    -----
    images : (B, 1, H, W), H and W from 32
    output : (B, 2), or (B, 2, H, W) with the head "pixels"
    """

    def __init__(
        self,
        encoder: VGG16Encoder,
        decoder: nn.Module,
        channels: int,
        head: Head,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        make = Readout if head == "classify" else pixel_readout
        self.readout = make(channels, generator)

    def forward(self, images: Tensor) -> Tensor:
        """Give logits for images or pixels."""
        check_images(images, least=_LEAST, like=self)
        return self.readout(self.decoder(self.encoder(images)))


class FCNDecoder(nn.Module):
    """Sum of what each block says, brought to the size of the image (Long et al., 2015).

    A 1x1 convolution takes two maps from the last layer of each block, and a transposed convolution
    with stride 2, 4, 8 or 16 upsamples those of the second to fifth block. The transposed
    convolutions start as bilinear interpolation of each map, and are learnt.

    Within half a stride of a border the upsampled maps fade towards zero. So they do in the rows
    and columns that a pooling dropped, and are zero where no kernel reaches.

    Parameters
    ----------
    channels
        Of the encoder's blocks.
    generator
        For the starting values.

    Shape
    -----
    encoding : see `VGG16Encoder`; output : (B, 2, H, W)
    """

    def __init__(self, channels: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        self.maps = nn.ModuleList()
        self.upsample = nn.ModuleList()
        for block, inputs in enumerate(channels):
            maps = nn.utils.skip_init(nn.Conv2d, inputs, MAPS, 1)
            xavier(maps, generator)
            self.maps.append(maps)
            if block > 0:
                self.upsample.append(_bilinear(2**block))

    def forward(self, encoding: Encoding) -> Tensor:
        """Decode."""
        first, *coarser = [
            maps(activity) for maps, activity in zip(self.maps, encoding.activities, strict=True)
        ]
        size = first.shape[-2:]
        finer = [
            upsample(x, output_size=size)
            for upsample, x in zip(self.upsample, coarser, strict=True)
        ]
        return sum(finer, start=first)


def bilinear_kernel(factor: int) -> Tensor:
    """Make the kernel with which a transposed convolution interpolates bilinearly.

    Parameters
    ----------
    factor
        Stride of the transposed convolution, even; its padding is half of this.

    Shape
    -----
    output : (2 factor, 2 factor)

    Examples
    --------
    >>> bilinear_kernel(2)[0]
    tensor([0.0625, 0.1875, 0.1875, 0.0625])
    """
    centre = factor - 0.5
    side = 1 - (torch.arange(2 * factor) - centre).abs() / factor
    return torch.outer(side, side)


def _bilinear(factor: int) -> nn.ConvTranspose2d:
    upsample = nn.utils.skip_init(
        nn.ConvTranspose2d, MAPS, MAPS, 2 * factor, factor, padding=factor // 2, bias=False
    )
    with torch.no_grad():
        upsample.weight.copy_(torch.eye(MAPS)[:, :, None, None] * bilinear_kernel(factor))
    return upsample


class UNetDecoder(nn.Module):
    """Five learned upsamplings, with the encoder's activity added to each (Ronneberger, 2015).

    The first takes the pooled fifth block back to the size of conv5_3 and adds conv5_3, the second
    adds conv4_3, the last conv1_2. Each is a 4x4 transposed convolution with stride 2; a ReLU
    follows the sum.

    Parameters
    ----------
    channels
        Of the encoder's blocks.
    generator
        For the starting values.

    Shape
    -----
    encoding : see `VGG16Encoder`; output : (B, channels[0], H, W)
    """

    def __init__(self, channels: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        self.upsample = nn.ModuleList()
        inputs = channels[-1]
        for outputs in reversed(channels):
            upsample = nn.utils.skip_init(
                nn.ConvTranspose2d, inputs, outputs, UPSAMPLING_KERNEL, stride=2, padding=1
            )
            xavier(upsample, generator)
            self.upsample.append(upsample)
            inputs = outputs

    def forward(self, encoding: Encoding) -> Tensor:
        """Decode."""
        x = encoding.pooled
        for upsample, skip in zip(self.upsample, reversed(encoding.activities), strict=True):
            x = F.relu(upsample(x, output_size=skip.shape[-2:]) + skip)
        return x


class SegNetDecoder(nn.Module):
    """The encoder mirrored, each pooling undone by its indices (Badrinarayanan et al., 2017).

    Unpooling puts each value where the maximum was that the encoder's pooling took, and zero
    elsewhere. The 3x3 convolutions of the block follow, each with a ReLU; the last one of a block
    leads to the channels of the next. The mirror of conv1_1 gives 64 maps, as in SegNet, and not
    one. Badrinarayanan et al. have batch norm after each convolution.

    Parameters
    ----------
    channels
        Of the encoder's blocks.
    generator
        For the starting values.
    batch_norm
        As they have. Without it the output is weak at the start, a standard deviation of 3e-7 on
        Pathfinder images, and such a network was not seen to learn (docs/stuck.md).

    Shape
    -----
    encoding : see `VGG16Encoder`; output : (B, channels[0], H, W)
    """

    def __init__(
        self, channels: tuple[int, ...], generator: torch.Generator, *, batch_norm: bool = False
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList()
        above = channels[0], *channels[:-1]
        depths = [layers for _, layers in BLOCKS]
        for inputs, outputs, layers in reversed(list(zip(channels, above, depths, strict=True))):
            block = nn.Sequential()
            for layer in range(layers):
                maps = outputs if layer == layers - 1 else inputs
                conv = nn.utils.skip_init(nn.Conv2d, inputs, maps, 3, padding=1)
                xavier(conv, generator)
                normalise = [nn.BatchNorm2d(maps)] if batch_norm else []
                block.extend([conv, *normalise, nn.ReLU()])
            self.blocks.append(block)

    def forward(self, encoding: Encoding) -> Tensor:
        """Decode."""
        x = encoding.pooled
        indices, activities = reversed(encoding.indices), reversed(encoding.activities)
        for block, places, activity in zip(self.blocks, indices, activities, strict=True):
            x = F.max_unpool2d(x, places, (2, 2), output_size=activity.shape[-2:])
            x = block(x)
        return x


def fcn(*, generator: torch.Generator, head: Head) -> DenseNetwork:
    """Fully convolutional network: 1x1 convolutions from all five blocks of VGG16, summed."""
    encoder = VGG16Encoder(generator=generator)
    return DenseNetwork(encoder, FCNDecoder(encoder.channels, generator), MAPS, head, generator)


def segnet(*, generator: torch.Generator, head: Head, batch_norm: bool = False) -> DenseNetwork:
    """SegNet: VGG16 mirrored, with unpooling by its indices.

    `batch_norm` follows each convolution in the SegNet of Badrinarayanan et al. (2017). The paper
    mentions none, and gives the encoder as plain VGG16.
    """
    encoder = VGG16Encoder(generator=generator, batch_norm=batch_norm)
    decoder = SegNetDecoder(encoder.channels, generator, batch_norm=batch_norm)
    return DenseNetwork(encoder, decoder, encoder.channels[0], head, generator)


def unet(*, generator: torch.Generator, head: Head) -> DenseNetwork:
    """U-Net: VGG16 and five learned upsamplings with additive skips."""
    return _unet(1, generator, head)


def unet_half(*, generator: torch.Generator, head: Head) -> DenseNetwork:
    """U-Net with half of the parameters."""
    return _unet(FRACTIONS["half"], generator, head)


def unet_fifth(*, generator: torch.Generator, head: Head) -> DenseNetwork:
    """U-Net with a fifth of the parameters."""
    return _unet(FRACTIONS["fifth"], generator, head)


def unet_tenth(*, generator: torch.Generator, head: Head) -> DenseNetwork:
    """U-Net with a tenth of the parameters."""
    return _unet(FRACTIONS["tenth"], generator, head)


def _unet(parts: int, generator: torch.Generator, head: Head) -> DenseNetwork:
    """Make a U-Net with one part in so many of the parameters."""
    encoder = VGG16Encoder(fraction=1 / parts, generator=generator)
    decoder = UNetDecoder(encoder.channels, generator)
    return DenseNetwork(encoder, decoder, encoder.channels[0], head, generator)
