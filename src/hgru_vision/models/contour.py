"""Networks that find contours in natural images: Supp., "Visualizing horizontal connections".

The first two blocks of VGG16, an hGRU of 8 steps on them, and two logits a pixel. The paper says no
more; what is added here is said where it stands. Two controls have no recurrence: one nothing in
the place of the hGRU, one a layer of convolution with as many parameters.
"""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from hgru_vision.circuits import HGRU
from hgru_vision.models.catalogue.contour import (
    BLOCKS,
    COLOURS,
    VGG_CHANNELS,
    feedforward_channels,
)
from hgru_vision.models.large_conv import LargeConv2d
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import Readout, check_images, enlarged, pixel_readout, xavier
from hgru_vision.ops import Backend
from hgru_vision.papers.linsley2018 import KERNEL_SIZE, TIMESTEPS

__all__ = [
    "ContourNetwork",
    "VGGBlocks",
    "contour_feedforward",
    "contour_hgru",
    "contour_vgg",
    "load_vgg16",
]

# Of the images that VGG16 was trained on, in RGB from 0 to 1, as torchvision's weights want them.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)

# The layers in the file of torchvision: features.0, features.2, features.5 and features.7.
TORCHVISION = {"conv1_1": 0, "conv1_2": 2, "conv2_1": 5, "conv2_2": 7}

MOMENTUM = 0.02  # of batch norm, as in the readout stage


class VGGBlocks(nn.Module):
    """conv1_1 to conv2_2 of VGG16 (Simonyan & Zisserman, 2014), each with its ReLU.

    Pooling between the blocks gives an odd side its last row or column, so that a pixel of the
    output always stands for the two by two below it.

    Parameters
    ----------
    generator
        For the starting values, Xavier-uniform; `load_vgg16` puts trained ones in their place.

    Shape
    -----
    images : (B, 3, H, W) in [0, 1]; output : (B, 128, H/2, W/2), halves rounded up
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        for name, (inputs, outputs) in BLOCKS.items():
            conv = nn.utils.skip_init(nn.Conv2d, inputs, outputs, 3, padding=1)
            xavier(conv, generator)
            self.add_module(name, conv)
        # Constants of the definition and no part of what is learnt or saved.
        self.register_buffer("mean", torch.tensor(MEAN).view(-1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Give the features of images."""
        x = (images - self.mean) / self.deviation
        for name in BLOCKS:
            if name == "conv2_1":
                x = F.max_pool2d(x, 2, ceil_mode=True)
            x = F.relu(self.get_submodule(name)(x))
        return x


class ContourNetwork(nn.Module):
    """Two blocks of VGG16, a feature stage at half of the image's resolution, and a readout.

    Parameters
    ----------
    features
        (B, channels, H/2, W/2) -> (B, outputs, H/2, W/2).
    channels
        That `features` takes. If not the 128 of conv2_2, a 1x1 convolution makes them of these.
    outputs
        That `features` gives.
    head
        "pixels" for two logits a pixel: a 1x1 convolution, then interpolated to the image's size.
        "classify" for the readout stage of the other networks.
    train_vgg
        Train VGG's layers along, at the learning rate of the rest.
    generator
        For the starting values.

    Notes
    -----
    Batch norm stands before the feature stage; the paper says nothing of it. Features of conv2_2
    are positive and reach tens, and neighbours have much in common: beyond a tanh, and in sums over
    a 15x15 kernel, little of what they tell apart would be left. A mean of 0 and a deviation of 1
    are what the circuit's starting values are made for.

    Shape
    -----
    images : (B, 3, H, W), or (B, 1, H, W) for grey ones, whose value goes to all three colours
    output : (B, 2, H, W), or (B, 2) with the head "classify"
    """

    def __init__(
        self,
        features: nn.Module,
        channels: int,
        outputs: int,
        head: Head,
        *,
        train_vgg: bool,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.input = VGGBlocks(generator).requires_grad_(train_vgg)
        self.project: nn.Module = nn.Identity()
        if channels != VGG_CHANNELS:
            # Batch norm takes a bias out again.
            self.project = nn.utils.skip_init(nn.Conv2d, VGG_CHANNELS, channels, 1, bias=False)
            xavier(self.project, generator)  # type: ignore[arg-type]
        self.normalise = nn.BatchNorm2d(channels, momentum=MOMENTUM)
        self.features = features
        make = Readout if head == "classify" else pixel_readout
        self.readout = make(outputs, generator)
        self.head = head

    def drive(self, images: Tensor) -> Tensor:
        """Give what drives the feature stage, (B, K, H/2, W/2)."""
        return self.normalise(self.project(self.input(images)))

    def forward(self, images: Tensor) -> Tensor:
        """Give logits for images or pixels."""
        if images.ndim == 4 and images.shape[1] in (1, COLOURS):
            check_images(images, channels=images.shape[1], like=self)
        else:
            raise ValueError(
                f"images have shape {tuple(images.shape)}; this network takes (B, 1, H, W) or "
                f"(B, {COLOURS}, H, W), none of them 0"
            )
        logits = self.readout(self.features(self.drive(images)))
        return logits if self.head == "classify" else enlarged(logits, images.shape[2:])


def contour_hgru(
    *,
    generator: Generator,
    head: Head,
    channels: int = VGG_CHANNELS,
    kernel_size: int = KERNEL_SIZE,
    timesteps: int = TIMESTEPS,
    train_vgg: bool = True,
    backend: Backend = "auto",
) -> nn.Module:
    """Put an hGRU on two blocks of VGG16."""
    circuit = HGRU(channels, kernel_size, timesteps, backend=backend, generator=generator)
    return ContourNetwork(
        circuit, channels, channels, head, train_vgg=train_vgg, generator=generator
    )


def contour_vgg(
    *,
    generator: Generator,
    head: Head,
    channels: int = VGG_CHANNELS,
    train_vgg: bool = True,
) -> nn.Module:
    """Read the two blocks of VGG16 out as they are: the network without the hGRU."""
    return ContourNetwork(
        nn.Identity(), channels, channels, head, train_vgg=train_vgg, generator=generator
    )


def contour_feedforward(
    *,
    generator: Generator,
    head: Head,
    channels: int = VGG_CHANNELS,
    kernel_size: int = KERNEL_SIZE,
    train_vgg: bool = True,
) -> nn.Module:
    """Put one layer of the hGRU's kernel size, and as many parameters, in its place."""
    outputs = feedforward_channels(channels, kernel_size)
    layer = nn.Sequential(LargeConv2d(channels, outputs, kernel_size, generator), nn.ReLU())
    return ContourNetwork(layer, channels, outputs, head, train_vgg=train_vgg, generator=generator)


def load_vgg16(network: nn.Module, path: str | Path) -> None:
    """Put the trained layers of VGG16 into a network for contours.

    Parameters
    ----------
    network
        Of `create_model("contour_...")`.
    path
        A file of torchvision (``vgg16-397923af.pth``), or an .npz with ``conv1_1.weight``,
        ``conv1_1.bias`` and so on to ``conv2_2``, in PyTorch's layout.
    """
    if not isinstance(network, ContourNetwork):
        raise TypeError(f"{type(network).__name__} has no layers of VGG16 to load")
    arrays = _read_layers(Path(path))
    wanted = network.input.state_dict()
    for name, value in wanted.items():
        if name not in arrays:
            raise ValueError(f"{path} lacks {name} of VGG16")
        if arrays[name].shape != value.shape:
            raise ValueError(
                f"{path}: {name} is {tuple(arrays[name].shape)}, that of VGG16 is "
                f"{tuple(value.shape)}"
            )
    network.input.load_state_dict({name: arrays[name] for name in wanted})


def _read_layers(path: Path) -> dict[str, Tensor]:
    """Read the layers that a file has, by the names used here."""
    names = {
        f"{name}.{kind}": f"features.{number}.{kind}"
        for name, number in TORCHVISION.items()
        for kind in ("weight", "bias")
    }
    try:
        if path.suffix == ".npz":
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                return {name: torch.from_numpy(file[name]) for name in names if name in file}
        there = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(there, dict):
            raise ValueError(f"it holds one {type(there).__name__}")
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, RuntimeError, EOFError, KeyError, zipfile.BadZipFile,
            pickle.UnpicklingError) as error:  # fmt: skip
        first = str(error).partition("\n")[0]
        raise ValueError(f"{path} is neither an .npz nor a file of torchvision: {first}") from None
    return {ours: there[theirs] for ours, theirs in names.items() if theirs in there}
