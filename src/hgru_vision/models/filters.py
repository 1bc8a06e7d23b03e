"""The filters with which the input stage starts (Supp., "Input stage").

The paper says Gabors at 12 orientations and two phases and a difference of Gaussians, all 7 x 7,
and gives none of their other sizes. `gabor_bank` is ours; `released_bank` is that of the authors'
code.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hgru_vision.papers.linsley2018 import (
    GABOR_ORIENTATIONS,
    GABOR_PHASES,
    INPUT_KERNEL_SIZE,
    RELEASED_GABOR_ASPECT,
    RELEASED_GABOR_ENVELOPE,
    RELEASED_GABOR_PHASE,
    RELEASED_GABOR_WAVELENGTH,
)

__all__ = ["gabor_bank", "gabor_orientations", "released_bank"]

# These fit 7 x 7 pixels: the envelope falls to a seventh at the border.
_WAVELENGTH = 4.0  # pixels
_ENVELOPE = 1.5  # standard deviation of the Gaussian, pixels

_CENTRE, _SURROUND = 0.75, 1.5  # standard deviations of the difference of Gaussians

_RADIUS = INPUT_KERNEL_SIZE // 2


def gabor_orientations() -> Tensor:
    """Give the orientation of each Gabor of a bank, in radians from 0 to pi.

    The direction along its bars, counted as the angle of a paddle is: from the x axis (to the
    right) towards the y axis (down).

    Shape
    -----
    output : (24,)

    Examples
    --------
    >>> torch.rad2deg(gabor_orientations())[:6].round()
    tensor([ 0.,  0., 15., 15., 30., 30.])
    """
    steps = torch.arange(GABOR_ORIENTATIONS).repeat_interleave(GABOR_PHASES)
    return steps * (math.pi / GABOR_ORIENTATIONS)


def gabor_bank() -> Tensor:
    """Make the filters of this package.

    Gabors at 12 orientations, each in cosine and sine phase (channels 2i and 2i + 1; see
    `gabor_orientations`), and a radially symmetric difference of Gaussians, bright in its centre
    (the last channel). Each kernel has zero mean, so that it is blind to uniform light, and unit
    norm.

    Shape
    -----
    output : (25, 1, 7, 7)

    Examples
    --------
    >>> gabor_bank().shape
    torch.Size([25, 1, 7, 7])
    """
    y, x = _pixels()
    across, _ = _turned(y, x)
    waves = _waves(across, _WAVELENGTH, math.pi / 2)
    window = _gaussian(y, x, _ENVELOPE)
    # The mean is taken out within the envelope: a constant would show at the border.
    gabors = window * (waves - (window * waves).sum(dim=(1, 2), keepdim=True))
    blob = _gaussian(y, x, _CENTRE) - _gaussian(y, x, _SURROUND)
    return _of_unit_norm(torch.cat([gabors, blob.unsqueeze(0)]))


def released_bank() -> Tensor:
    """Make the filters of the authors' released code.

    Their file, `gabors_for_contours_7.npy` of github.com/serre-lab/hgru_share, is known here from
    pictures of it (`gabor_filter_generator.ipynb` of github.com/sauravgarg540/hGRU). To the pixel
    these show the Gabors of Serre et al. (2007) for 7 x 7, within a disc of 3 pixels; the second
    phase is 90 radians, which for a wave is 116.6 degrees; and the last filter, the difference of
    Gaussians of the paper, is the disc itself. A picture has no offset and no scale: zero mean over
    the kernel and unit norm are those of Serre et al.

    In the order of `gabor_bank`; theirs has all Gabors of the first phase before the second's.

    Shape
    -----
    output : (25, 1, 7, 7)

    Examples
    --------
    >>> disc = released_bank()[-1, 0]
    >>> (disc > 0).int()[:2]
    tensor([[0, 0, 0, 1, 0, 0, 0],
            [0, 1, 1, 1, 1, 1, 0]], dtype=torch.int32)
    """
    y, x = _pixels()
    across, along = _turned(y, x)
    waves = _waves(across, RELEASED_GABOR_WAVELENGTH, RELEASED_GABOR_PHASE)
    distance = across.square() + (RELEASED_GABOR_ASPECT * along).square()
    window = torch.exp(-distance / (2 * RELEASED_GABOR_ENVELOPE**2))  # (24, 7, 7)
    disc = (y.square() + x.square() <= _RADIUS**2).double()
    kernels = torch.cat([disc * window * waves, disc.unsqueeze(0)])
    return _of_unit_norm(kernels - kernels.mean(dim=(1, 2), keepdim=True))


def _pixels() -> tuple[Tensor, Tensor]:
    """Give y and x of each pixel of a kernel, from its centre, (7, 7) each."""
    offsets = torch.arange(-_RADIUS, _RADIUS + 1, dtype=torch.float64)
    y, x = torch.meshgrid(offsets, offsets, indexing="ij")
    return y, x


def _turned(y: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Give the distance from the central bar, and that along it, (24, 7, 7) each."""
    angle = gabor_orientations().double().view(-1, 1, 1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    return y * cos - x * sin, x * cos + y * sin


def _waves(across: Tensor, wavelength: float, second_phase: float) -> Tensor:
    """Make the waves of all Gabors, (24, 7, 7): one of phase 0 and one of the second in turn."""
    phase = torch.arange(GABOR_PHASES).repeat(GABOR_ORIENTATIONS).view(-1, 1, 1) * second_phase
    return torch.cos(2 * math.pi / wavelength * across - phase)


def _gaussian(y: Tensor, x: Tensor, deviation: float) -> Tensor:
    """Give a Gaussian with sum 1."""
    bell = torch.exp(-(x.square() + y.square()) / (2 * deviation**2))
    return bell / bell.sum()


def _of_unit_norm(kernels: Tensor) -> Tensor:
    """Scale kernels, (25, 7, 7), to unit norm and give them as those of a convolution."""
    norm = kernels.square().sum(dim=(1, 2), keepdim=True).sqrt()
    return (kernels / norm).unsqueeze(1).to(torch.get_default_dtype())
