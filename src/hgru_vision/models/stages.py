"""The stages that the paper's own networks share (Supp., "Model architecture details").

Input stage, feature extraction, readout stage: recurrent, feedforward and highway networks differ
in the middle one alone.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.models.filters import gabor_bank
from hgru_vision.models.registry import Head
from hgru_vision.ops import squared_responses, two_maps

__all__ = [
    "InputStage",
    "PoolFirstReadout",
    "Readout",
    "StandardNetwork",
    "TwoMaps",
    "check_images",
    "enlarged",
    "pixel_readout",
    "xavier",
]


def check_images(
    images: Tensor, *, least: int = 1, channels: int = 1, like: nn.Module | None = None
) -> None:
    """Refuse what is not a batch of images, grey or of so many channels, or is too small.

    Parameters
    ----------
    images
        What the network was given.
    least
        The least height and width in pixels.
    channels
        That an image must have.
    like
        The network, whose dtype the images must have, but under autocast.

    Examples
    --------
    >>> check_images(torch.zeros(1, 1, 8, 40), least=32)
    Traceback (most recent call last):
    ValueError: images are 8 x 40 pixels; this network takes 32 x 32 or more
    """
    if not isinstance(images, Tensor):
        raise TypeError(f"images are {type(images).__name__}; this network takes a torch tensor")
    if images.ndim != 4 or images.shape[1] != channels or images.numel() == 0:
        raise ValueError(
            f"images have shape {tuple(images.shape)}; this network takes (B, {channels}, H, W), "
            "none of them 0"
        )
    if not images.is_floating_point():
        raise TypeError(
            f"images are {images.dtype}; this network takes floats from 0 to 1: "
            "images.float() / 255"
        )
    dtype = images.dtype if like is None else next(like.parameters()).dtype
    if images.dtype != dtype and not torch.is_autocast_enabled(images.device.type):
        raise TypeError(
            f"images are {images.dtype} and the network {dtype}; convert one of them: "
            f"images.to({dtype})"
        )
    height, width = images.shape[2:]
    if min(height, width) < least:
        raise ValueError(
            f"images are {height} x {width} pixels; this network takes {least} x {least} or more"
        )


def xavier(layer: nn.Conv2d | nn.ConvTranspose2d | nn.Linear, generator: torch.Generator) -> None:
    """Start a layer as the paper does: Xavier-uniform weights, no bias (Glorot & Bengio, 2010).

    Examples
    --------
    >>> layer = nn.utils.skip_init(nn.Linear, 2, 2)
    >>> xavier(layer, torch.Generator().manual_seed(0))
    >>> layer.bias.tolist()
    [0.0, 0.0]
    """
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class InputStage(nn.Module):
    """Gabors and a difference of Gaussians, trained on, then squared (Supp., "Input stage").

    Parameters
    ----------
    gain
        Positive factor on the output. It is not trained.
    bias
        Add one number a filter before the square, 0 at the start, as the authors' released code
        does. The output is not even in contrast then.

    Shape
    -----
    images : (B, 1, H, W); output : (B, 25, H, W)

    Examples
    --------
    >>> InputStage()(torch.ones(2, 1, 32, 48)).shape
    torch.Size([2, 25, 32, 48])
    """

    def __init__(self, gain: float = 1.0, *, bias: bool = False) -> None:
        super().__init__()
        if not 0 < gain < math.inf:
            raise ValueError(f"the gain of the drive is {gain}; it must be a positive number")
        self.gain = gain
        self.weight = nn.Parameter(self.chosen(gabor_bank()))
        self.bias = nn.Parameter(torch.zeros(len(self.weight))) if bias else None

    @staticmethod
    def chosen(bank: Tensor) -> Tensor:
        """Give the filters of a bank that this stage has."""
        return bank

    def start_from(self, bank: Tensor) -> None:
        """Start with the filters of another bank; see `hgru_vision.models.filters`."""
        self.weight = nn.Parameter(self.chosen(bank).to(self.weight))

    def forward(self, images: Tensor) -> Tensor:
        """Filter and square."""
        # The gain within the square saves a pass over the largest tensor of a small network.
        root = math.sqrt(self.gain)
        if self.bias is None:
            return squared_responses(images, root * self.weight)
        return F.conv2d(images, root * self.weight, root * self.bias, padding="same").square()

    def extra_repr(self) -> str:
        """Show what the stage was made with."""
        return f"gain={self.gain}"


class Readout(nn.Module):
    """Two maps, batch norm, global max pool, linear classifier (Supp., "Readout stage").

    Parameters
    ----------
    channels
        Of the feature extraction stage.
    generator
        For the starting values.

    Notes
    -----
    The 1x1 filter has no bias, since batch norm would take it out again.

    The classifier starts at zero, undecided about every image. The largest of thousands of
    normalised values is 4 to 8, and Xavier's weights on it start with a loss of up to 7. That is
    made smaller fastest by turning the maps round: their strongest pixels then lie in the
    background, no gradient reaches any other, and the network stays at chance (docs/stuck.md).

    The momentum of batch norm is 0.02. With the usual 0.1 the running statistics follow the last
    few batches of features that still move, and a network with a training loss of 0.2 was seen to
    test at 52 %.

    In training with `gives_maps` set the two maps come out beside the logits, before batch norm:
    what `Stage.mask_weight` of `hgru_vision.training` teaches.

    Shape
    -----
    features : (B, K, H, W); output : (B, 2) logits

    Examples
    --------
    >>> readout = Readout(25, torch.Generator().manual_seed(0))
    >>> readout(torch.ones(2, 25, 32, 32)).shape
    torch.Size([2, 2])
    """

    def __init__(self, channels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.maps = nn.utils.skip_init(TwoMaps, channels, 2, 1, bias=False)
        self.normalise = nn.BatchNorm2d(2, momentum=0.02)
        self.decide = nn.utils.skip_init(nn.Linear, 2, 2)
        xavier(self.maps, generator)
        nn.init.zeros_(self.decide.weight)
        nn.init.zeros_(self.decide.bias)
        self.gives_maps = False

    def forward(self, features: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Decide about each image."""
        maps = self.maps(features)
        logits = self.decide(self.strongest(maps))
        return (logits, maps) if self.gives_maps and self.training else logits

    def strongest(self, maps: Tensor) -> Tensor:
        """Give the largest normalised value of each map, (B, 2)."""
        return self.normalise(maps).amax(dim=(2, 3))


class PoolFirstReadout(Readout):
    """The readout of the authors' released code: the maximum first, then batch norm.

    "A batch-normalized global max pool" can be read either way. Here what is normalised is the
    maxima of the images of a batch, which the classifier then sees around 0, in units of how much
    they differ. It starts from Xavier's values, as the paper says: the reason for the zeros of
    `Readout` does not hold here, and from zeros such a network was seen to stay at chance
    (docs/stuck.md). A batch in training needs two images or more.

    Shape
    -----
    features : (B, K, H, W); output : (B, 2) logits

    Examples
    --------
    >>> readout = PoolFirstReadout(25, torch.Generator().manual_seed(0))
    >>> readout(torch.rand(4, 25, 32, 32)).mean(dim=0).abs().max() < 1e-3  # over a batch
    tensor(True)
    """

    def __init__(self, channels: int, generator: torch.Generator) -> None:
        super().__init__(channels, generator)
        xavier(self.decide, generator)

    @classmethod
    def of(cls, readout: Readout, generator: torch.Generator) -> PoolFirstReadout:
        """Make one with the maps of another readout."""
        made = cls(readout.maps.in_channels, torch.Generator())
        made.maps = readout.maps
        xavier(made.decide, generator)
        return made

    def strongest(self, maps: Tensor) -> Tensor:
        """Give the largest value of each map, normalised over images, (B, 2)."""
        if self.training and len(maps) < 2:
            raise ValueError(
                "a batch of 1 image; a readout that pools first normalises over the images of a "
                "batch, so training needs 2 or more"
            )
        return self.normalise(maps.amax(dim=(2, 3), keepdim=True)).flatten(1)


class TwoMaps(nn.Conv2d):
    """A 1x1 convolution to two maps, without bias; see `hgru_vision.ops.two_maps`."""

    def forward(self, input: Tensor) -> Tensor:
        """Compute the maps."""
        return two_maps(input, self.weight)


def enlarged(maps: Tensor, size: torch.Size) -> Tensor:
    """Bring maps of which a place stands for several pixels, the same both ways, to images' size.

    Enlarged by that number exactly, and cut where the last places reach beyond the image, as
    pooling that rounds up leaves them: no pixel is displaced.

    >>> enlarged(torch.tensor([[[[0.0, 2.0]]]]), torch.Size((1, 3)))
    tensor([[[[0.0000, 0.5000, 1.5000]]]])
    """
    height, width = size
    scale = max(-(-height // maps.shape[2]), -(-width // maps.shape[3]))
    if scale > 1:
        maps = F.interpolate(maps, scale_factor=scale, mode="bilinear", align_corners=False)
    return maps[..., :height, :width]


def pixel_readout(channels: int, generator: torch.Generator) -> nn.Conv2d:
    """Make the 1x1 map to two logits a pixel: all of the readout that a segmentation needs.

    Shape
    -----
    features : (B, K, H, W); output : (B, 2, H, W)

    Examples
    --------
    >>> pixel_readout(25, torch.Generator().manual_seed(0))(torch.ones(2, 25, 8, 8)).shape
    torch.Size([2, 2, 8, 8])
    """
    maps = nn.utils.skip_init(nn.Conv2d, channels, 2, 1)
    xavier(maps, generator)
    return maps


class StandardNetwork(nn.Module):
    """The paper's standard architecture: input, feature extraction and readout stage.

    Parameters
    ----------
    features
        The feature extraction stage, (B, 25, H, W) -> (B, K, H, W).
    channels
        K.
    head
        "classify" for the readout stage, "pixels" for two logits a pixel.
    generator
        For the starting values of the readout.
    gain
        Factor on the output of the input stage.

    Shape
    -----
    images : (B, 1, H, W); output : (B, 2), or (B, 2, H, W) with the head "pixels"

    Examples
    --------
    >>> network = StandardNetwork(nn.Identity(), 25, "classify", torch.Generator())
    >>> network(torch.ones(3, 1, 32, 32)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        features: nn.Module,
        channels: int,
        head: Head,
        generator: torch.Generator,
        *,
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.input = InputStage(gain)
        self.features = features
        make = Readout if head == "classify" else pixel_readout
        self.readout = make(channels, generator)

    def forward(self, images: Tensor) -> Tensor:
        """Give logits for images or pixels."""
        check_images(images, like=self)
        return self.readout(self.features(self.input(images)))
