"""Networks that the paper does not have: what a reader of today would ask for beside its own.

A plain vision transformer (attention instead of horizontal connections), the recurrent block of
CORnet-S (another recurrent model of the visual cortex), the hGRU with untied weights (the same
depth without recurrence), and an hGRU small enough for a laptop.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.circuits import HGRU
from hgru_vision.circuits.start import chronos
from hgru_vision.models.catalogue.beyond import (
    CORNET_STEPS,
    CORNET_WIDENING,
    SMALL_KERNEL_SIZE,
    SMALL_ORIENTATIONS,
    SMALL_TIMESTEPS,
    VIT_DEPTH,
    VIT_HEADS,
    VIT_PATCH,
    VIT_WIDENING,
    VIT_WIDTH,
)
from hgru_vision.models.recurrent import DRIVE_GAIN, start_mostly_new, start_time_gain
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import (
    InputStage,
    Readout,
    StandardNetwork,
    check_images,
    xavier,
)
from hgru_vision.ops import Backend
from hgru_vision.papers.linsley2018 import (
    CHANNELS,
    GABOR_ORIENTATIONS,
    GABOR_PHASES,
    KERNEL_SIZE,
    TIMESTEPS,
)

__all__ = [
    "CORnetBlock",
    "SmallInput",
    "UntiedHGRU",
    "ViT",
    "cornet_block",
    "ff_unrolled",
    "hgru_small",
    "vit",
    "wave_positions",
]


class ViT(nn.Module):
    """Plain vision transformer of the size ViT-Ti (Dosovitskiy et al., 2021; Touvron et al., 2021).

    Positions are fixed sines and cosines and the tokens are averaged, as in Beyer et al. (2022,
    arXiv 2205.01580): so there is nothing to interpolate for another size of image. An image whose
    side is no multiple of the patch is filled up with zeros on the right and below.

    Parameters
    ----------
    head
        "classify", or "pixels": the classifier is then applied to every token and its logits are
        upsampled bilinearly, with the same parameters.
    patch
        Side of a token, pixels.
    generator
        For the starting values: variance 1 / inputs for the patches, Xavier-uniform for the rest,
        biases of zero.

    Shape
    -----
    images : (B, 1, H, W); output : (B, 2), or (B, 2, H, W) with the head "pixels"

    Examples
    --------
    >>> network = ViT(generator=torch.Generator().manual_seed(0))
    >>> network(torch.zeros(2, 1, 32, 45)).shape
    torch.Size([2, 2])
    """

    def __init__(
        self, *, generator: torch.Generator, head: Head = "classify", patch: int = VIT_PATCH
    ) -> None:
        super().__init__()
        if patch < 1:
            raise ValueError(f"patch is {patch}; it must be 1 pixel or more")
        self.head = head
        self.patch = patch
        self.embed = nn.utils.skip_init(nn.Conv2d, 1, VIT_WIDTH, patch, stride=patch)
        nn.init.kaiming_normal_(self.embed.weight, nonlinearity="linear", generator=generator)
        nn.init.zeros_(self.embed.bias)
        self.blocks = nn.Sequential(*(TransformerBlock(generator) for _ in range(VIT_DEPTH)))
        self.norm = nn.LayerNorm(VIT_WIDTH)
        self.classify = _linear(VIT_WIDTH, 2, generator)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits."""
        check_images(images, like=self)
        height, width = images.shape[-2:]
        padded = F.pad(images, (0, -width % self.patch, 0, -height % self.patch))
        x = self.embed(padded)  # (B, D, rows, columns)
        rows, columns = x.shape[-2:]
        tokens = x.flatten(2).mT + wave_positions(rows, columns, like=x)  # (B, N, D)
        tokens = self.norm(self.blocks(tokens))  # (B, N, D)
        if self.head == "pixels":
            logits = self.classify(tokens).mT.unflatten(2, (rows, columns))  # (B, 2, rows, columns)
            finer = F.interpolate(logits, padded.shape[-2:], mode="bilinear")
            return finer[..., :height, :width]
        return self.classify(tokens.mean(1))  # (B, 2)


class TransformerBlock(nn.Module):
    """Self-attention and a perceptron, each after a layer norm and beside a shortcut.

    Parameters
    ----------
    generator
        For the starting values.

    Shape
    -----
    tokens, output : (B, N, D)
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(VIT_WIDTH)
        self.query_key_value = _linear(VIT_WIDTH, 3 * VIT_WIDTH, generator)
        self.project = _linear(VIT_WIDTH, VIT_WIDTH, generator)
        self.norm2 = nn.LayerNorm(VIT_WIDTH)
        self.perceptron = nn.Sequential(
            _linear(VIT_WIDTH, VIT_WIDENING * VIT_WIDTH, generator),
            nn.GELU(),
            _linear(VIT_WIDENING * VIT_WIDTH, VIT_WIDTH, generator),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Let the tokens look at each other, then think each for itself."""
        parts = self.query_key_value(self.norm1(tokens)).unflatten(2, (3, VIT_HEADS, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # each (B, heads, N, D / heads)
        seen = F.scaled_dot_product_attention(query, key, value)  # (B, heads, N, D / heads)
        tokens = tokens + self.project(seen.transpose(1, 2).flatten(2))
        return tokens + self.perceptron(self.norm2(tokens))


def wave_positions(rows: int, columns: int, *, like: Tensor) -> Tensor:
    """Encode the places of a grid by sines and cosines of y and of x, a quarter of D each.

    Wavelengths go from 2 pi to 20,000 pi tokens, as in Vaswani et al. (2017).

    Parameters
    ----------
    rows, columns
        Of the grid.
    like
        Tensor with the device and dtype to use.

    Shape
    -----
    output : (rows columns, D)

    Examples
    --------
    >>> wave_positions(3, 2, like=torch.zeros(1)).shape
    torch.Size([6, 192])
    """
    octaves = torch.arange(VIT_WIDTH // 4, device=like.device) / (VIT_WIDTH // 4)
    frequency = 10_000.0**-octaves  # (D/4,)
    y = torch.arange(rows, device=like.device).repeat_interleave(columns)  # (N,)
    x = torch.arange(columns, device=like.device).repeat(rows)  # (N,)
    angles = torch.cat([torch.outer(y, frequency), torch.outer(x, frequency)], dim=1)  # (N, D/2)
    return torch.cat([angles.sin(), angles.cos()], dim=1).to(like.dtype)


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    xavier(layer, generator)
    return layer


class CORnetBlock(nn.Module):
    """An area of CORnet-S (Kubilius et al., 2019): one bottleneck block, run for a few steps.

    The block is 1x1, 3x3 and 1x1 convolutions, the inner ones four times as wide, beside a
    shortcut. Its convolutions are the same at every step, its batch norms each step's own. The
    first step halves the size, as in the published areas.

    Each further step reaches two pixels further to every side. What an output sees is 4 T - 1
    pixels wide (15 for four steps, 21 with the input stage), far less than a path of 14 paddles.

    Parameters
    ----------
    channels
        Of the input and the output.
    timesteps
        Steps T.
    generator
        For the starting values: kernels normal with variance 2 / (outputs k^2), as published.

    Shape
    -----
    x : (B, channels, H, W); output : (B, channels, ceil(H / 2), ceil(W / 2))

    Examples
    --------
    >>> area = CORnetBlock(25, generator=torch.Generator().manual_seed(0))
    >>> area(torch.zeros(2, 25, 15, 8)).shape
    torch.Size([2, 25, 8, 4])
    """

    def __init__(
        self, channels: int, timesteps: int = CORNET_STEPS, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        if timesteps < 1:
            raise ValueError(f"timesteps is {timesteps}; it must be 1 or more")
        inner = CORNET_WIDENING * channels
        self.timesteps = timesteps
        self.conv_input = _he_conv(channels, channels, 1, generator)
        self.skip = _he_conv(channels, channels, 1, generator)
        self.norm_skip = nn.BatchNorm2d(channels)
        self.conv1 = _he_conv(channels, inner, 1, generator)
        self.conv2 = _he_conv(inner, inner, 3, generator)
        self.conv3 = _he_conv(inner, channels, 1, generator)
        self.norm1 = nn.ModuleList(nn.BatchNorm2d(inner) for _ in range(timesteps))
        self.norm2 = nn.ModuleList(nn.BatchNorm2d(inner) for _ in range(timesteps))
        self.norm3 = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(timesteps))

    def forward(self, x: Tensor) -> Tensor:
        """Run all steps."""
        x = self.conv_input(x)  # (B, K, H, W)
        for t in range(self.timesteps):
            stride = 2 if t == 0 else 1
            shortcut = self.norm_skip(self.skip(x[..., ::2, ::2])) if t == 0 else x
            change = F.relu(self.norm1[t](self.conv1(x)))
            change = F.conv2d(change, self.conv2.weight, stride=stride, padding=1)
            change = F.relu(self.norm2[t](change))
            change = self.norm3[t](self.conv3(change))
            x = F.relu(change + shortcut)  # (B, K, H/2, W/2)
        return x


def _he_conv(inputs: int, outputs: int, kernel_size: int, generator: torch.Generator) -> nn.Conv2d:
    conv = nn.utils.skip_init(nn.Conv2d, inputs, outputs, kernel_size, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu", generator=generator)
    return conv


class CoarseNetwork(StandardNetwork):
    """A standard network whose features are coarser than the image: pixel logits are upsampled."""

    def forward(self, images: Tensor) -> Tensor:
        """Give logits for images or pixels."""
        logits = super().forward(images)
        if isinstance(self.readout, Readout):
            return logits
        return F.interpolate(logits, images.shape[-2:], mode="bilinear")


class UntiedHGRU(nn.Module):
    """The hGRU unrolled into a feedforward network: each step has parameters of its own.

    A control for depth. Unrolled, an hGRU of 8 steps is 16 horizontal convolutions deep, 15x15 of
    25 channels, with the drive at every step and gated shortcuts that let gradients through. Here
    all of that stays, with the same starting values; the one thing taken away is that the steps
    share their weights, which is the recurrence. A stack of 16 plain convolutions would lack the
    shortcuts and products as well, and a difference in accuracy could come from those.

    H2[0] is zero, so that the first step has nothing to inhibit: its alpha, mu, U1 and b1 (700
    numbers of 596,408) stay as they start.

    Parameters
    ----------
    channels, kernel_size, timesteps
        K, S (odd) and T of the paper.
    generator
        For the starting values.

    Shape
    -----
    x, output : (B, K, H, W)

    Examples
    --------
    >>> layer = UntiedHGRU(4, 5, 3, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.ones(1, 4, 20, 20)).shape
    torch.Size([1, 4, 20, 20])
    """

    def __init__(
        self,
        channels: int = CHANNELS,
        kernel_size: int = KERNEL_SIZE,
        timesteps: int = TIMESTEPS,
        *,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if timesteps < 1:
            raise ValueError(f"timesteps is {timesteps}; it must be 1 or more")
        self.steps = nn.ModuleList()
        for _ in range(timesteps):
            step = HGRU(channels, kernel_size, timesteps=1, generator=generator)
            # A circuit of one step has no time to remember; this step is one of T.
            with torch.no_grad():
                step.b1.copy_(chronos(channels, timesteps, generator))
                step.b2.copy_(chronos(channels, timesteps, generator))
            self.steps.append(step)

    def forward(self, x: Tensor) -> Tensor:
        """Run all steps."""
        h2 = torch.zeros_like(x)  # (B, K, H, W)
        for step in self.steps:
            h2 = step(x, state=h2)
        return h2


class SmallInput(InputStage):
    """The input stage with Gabors at four orientations alone.

    Parameters
    ----------
    gain
        Positive factor on the output. It is not trained.

    Shape
    -----
    images : (B, 1, H, W); output : (B, 8, H, W)

    Examples
    --------
    >>> SmallInput()(torch.ones(2, 1, 32, 48)).shape
    torch.Size([2, 8, 32, 48])
    """

    @staticmethod
    def chosen(bank: Tensor) -> Tensor:
        """Give every third orientation, and no difference of Gaussians."""
        step = GABOR_ORIENTATIONS // SMALL_ORIENTATIONS
        gabors = bank[: GABOR_ORIENTATIONS * GABOR_PHASES]
        few = gabors.unflatten(0, (GABOR_ORIENTATIONS, GABOR_PHASES))[::step]
        return few.flatten(0, 1).clone()


def vit(*, generator: torch.Generator, head: Head, patch: int = VIT_PATCH) -> ViT:
    """Plain vision transformer, ViT-Ti with patches of 10 pixels."""
    return ViT(patch=patch, head=head, generator=generator)


def cornet_block(
    *, generator: torch.Generator, head: Head, timesteps: int = CORNET_STEPS
) -> CoarseNetwork:
    """Input stage, one area of CORnet-S, readout stage."""
    area = CORnetBlock(CHANNELS, timesteps, generator=generator)
    return CoarseNetwork(area, CHANNELS, head, generator)


def ff_unrolled(
    *, generator: torch.Generator, head: Head, drive_gain: float = DRIVE_GAIN
) -> StandardNetwork:
    """Input stage, the hGRU unrolled with untied weights, readout stage."""
    return StandardNetwork(
        UntiedHGRU(generator=generator), CHANNELS, head, generator, gain=drive_gain
    )


def hgru_small(
    *,
    generator: torch.Generator,
    head: Head,
    timesteps: int = SMALL_TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    least_time_gain: float = 1.0,
    most_time_gain: float = 1.0,
    mostly_new: bool = False,
    backend: Backend = "auto",
) -> StandardNetwork:
    """Make the hGRU network of 8 channels and 7x7 horizontal kernels; it starts as `hgru` does."""
    channels = SMALL_ORIENTATIONS * GABOR_PHASES
    circuit = HGRU(channels, SMALL_KERNEL_SIZE, timesteps, backend=backend, generator=generator)
    start_time_gain(circuit, least_time_gain, most_time_gain, generator)
    if mostly_new:
        start_mostly_new(circuit)
    network = StandardNetwork(circuit, channels, head, generator, gain=drive_gain)
    network.input = SmallInput(drive_gain)
    return network
