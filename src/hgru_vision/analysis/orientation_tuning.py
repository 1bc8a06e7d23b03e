"""Which orientation a channel prefers, measured by gratings.

Filters are trained, so that their orientation is not what they started with. An orientation is the
direction along the bars, in radians from 0 to pi, counted as the angle of a paddle is: from the x
axis (to the right) towards the y axis (down).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from hgru_vision.stimuli._types import Floats

__all__ = ["Tuning", "filter_tuning", "gratings", "measure_tuning"]

ORIENTATIONS = 36  # of the gratings: every 5 degrees
FREQUENCIES = np.arange(1, 8) / 16  # cycles a pixel, evenly up to Nyquist's limit of one half
PHASES = 4  # three would do for a squared filter


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning:
    """Response of each channel to gratings by their orientation.

    Parameters
    ----------
    angles
        Orientations of the gratings, evenly from 0 to below pi.
    response
        What a grating adds to the response to a uniform image; the mean over phases and spatial
        frequencies. Never negative: a channel that gratings silence has no preference.

    Shape
    -----
    angles : float64 (A,); response : float64 (K, A)
    """

    angles: Floats
    response: Floats

    @property
    def preferred(self) -> Floats:
        """Orientation of each channel, (K,) from 0 to pi: the direction of the vector sum."""
        return np.angle(self._vector) / 2 % np.pi

    @property
    def selectivity(self) -> Floats:
        """Orientation selectivity index of each channel, (K,) from 0 to 1.

        Length of the vector sum by the sum of the lengths, or one minus the circular variance:
        0 if all orientations are answered alike, 1 if only one is.
        """
        total = self.response.sum(axis=1)
        return np.divide(abs(self._vector), total, out=np.zeros_like(total), where=total > 0)

    @property
    def strength(self) -> Floats:
        """Largest response of each channel, (K,)."""
        return self.response.max(axis=1)

    def oriented(self, least_selectivity: float) -> Floats:
        """Give the preferred orientations, (K,), and nan for channels that are less selective.

        Examples
        --------
        >>> tuning = Tuning(angles=np.array([0, np.pi / 2]), response=np.array([[0, 4], [1, 1.2]]))
        >>> np.rad2deg(tuning.oriented(0.5)).tolist()
        [90.0, nan]
        """
        return np.where(self.selectivity >= least_selectivity, self.preferred, np.nan)

    @property
    def _vector(self) -> npt.NDArray[np.complex128]:
        vector: npt.NDArray[np.complex128] = self.response @ np.exp(2j * self.angles)
        return vector


def gratings(size: int, angles: Floats) -> Tensor:
    """Draw sine gratings of full contrast about one half.

    Parameters
    ----------
    size
        Side of an image in pixels.
    angles
        Orientations of their bars.

    Shape
    -----
    output : float64 (A, frequencies * phases, size, size)

    Examples
    --------
    >>> horizontal = gratings(8, np.array([0.0]))[0, 0]
    >>> bool((horizontal[:, :1] == horizontal).all())  # bars along x: a row has one value
    True
    """
    places = np.arange(size) - size // 2  # the pixel whose response is read is the origin
    across = places[:, None] * np.cos(angles)[:, None, None]  # y cos - x sin
    across = across - places * np.sin(angles)[:, None, None]  # (A, size, size)
    cycles = FREQUENCIES[:, None, None, None] * across[:, None, None]  # (A, F, 1, size, size)
    shifts = np.arange(PHASES)[:, None, None] / PHASES
    waves = 0.5 + 0.5 * np.cos(2 * np.pi * (cycles - shifts))
    return torch.from_numpy(waves).flatten(1, 2)


@torch.no_grad()
def measure_tuning(
    stage: Callable[[Tensor], Tensor], *, size: int = 33, channels: int = 1
) -> Tuning:
    """Show gratings to whatever drives a circuit, and read the response at the centre.

    Parameters
    ----------
    stage
        From images with values in [0, 1] to what the circuit gets: an input stage, or the first
        blocks of VGG16 with what prepares their images.
    size
        Of the images; larger than what a unit sees.
    channels
        Of the images; all are given the same grating.

    Shape
    -----
    stage : float32 (B, channels, size, size) -> (B, K, height, width)

    Examples
    --------
    >>> from hgru_vision.models.stages import InputStage
    >>> tuning = measure_tuning(InputStage())
    >>> np.rad2deg(tuning.preferred[:6]).round().astype(int).tolist()
    [0, 0, 15, 15, 30, 30]
    """
    angles: Floats = np.arange(ORIENTATIONS, dtype=np.float64) * (np.pi / ORIENTATIONS)
    blank = _centre(stage, torch.full((1, 1, size, size), 0.5), channels)
    response = np.stack(
        [_centre(stage, images[:, None], channels) - blank for images in gratings(size, angles)]
    )  # (A, K)
    if not np.isfinite(response).all():
        raise ValueError("the response to a grating is not a finite number; check the weights")
    return Tuning(angles=angles, response=np.maximum(response.T, 0))


def filter_tuning(filters: npt.ArrayLike | Tensor) -> Tuning:
    """Measure the tuning of plain filters, squared as in the input stage.

    Parameters
    ----------
    filters
        Filters of a cross-correlation, as `torch.nn.functional.conv2d` takes them.

    Shape
    -----
    filters : (K, channels, height, width)
    """
    weight = torch.as_tensor(filters).detach().cpu().float()
    if weight.ndim != 4 or weight.numel() == 0:
        raise ValueError(
            f"filters have shape {tuple(weight.shape)}; they must be (K, channels, height, width)"
        )
    return measure_tuning(
        lambda images: F.conv2d(images, weight).square(),
        size=max(weight.shape[2:]),
        channels=weight.shape[1],
    )


def _centre(stage: Callable[[Tensor], Tensor], images: Tensor, channels: int) -> Floats:
    """Mean over images of the response at the centre, (K,)."""
    features = stage(images.float().expand(-1, channels, -1, -1))
    height, width = features.shape[2:]
    middle: Floats = features[:, :, height // 2, width // 2].double().mean(dim=0).cpu().numpy()
    return middle
