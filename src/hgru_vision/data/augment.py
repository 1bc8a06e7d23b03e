"""Crops, rotations and flips of a natural image and its target together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.nn.functional import grid_sample

from hgru_vision.papers.linsley2018 import BSDS_CROP, BSDS_ROTATION
from hgru_vision.stimuli._types import Array

__all__ = ["Augmentation", "Placement"]

Step = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """A random square of an image, turned and mirrored; as it stands, the paper's.

    The square lies in the image before it is turned about its middle. Where a turned corner
    leaves the image, image and target go on mirrored. The image is interpolated; the target takes
    its nearest value, so that what was 0 or 1 stays it.

    Parameters
    ----------
    crop
        Pixels on a side.
    rotation
        Largest angle in degrees, to either side.
    flip
        Whether half of the squares are turned upside down, and half left to right.
    """

    crop: int = BSDS_CROP
    rotation: float = BSDS_ROTATION
    flip: bool = True

    def __post_init__(self) -> None:
        if self.crop < 1:
            raise ValueError(f"crop must be 1 pixel or more; got {self.crop}")
        if not 0 <= self.rotation <= 180:
            raise ValueError(f"rotation must be from 0 to 180 degrees; got {self.rotation}")

    def apply(
        self, image: Tensor, target: Tensor, random: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Take one square from an image and the same from its target.

        Parameters
        ----------
        image, target
            Of one size.
        random
            Where the draws come from: five, whatever the settings.

        Shape
        -----
        image : float32 (C, H, W), target : float32 (D, H, W); returns the same with H = W = crop

        Examples
        --------
        >>> ramp = torch.arange(100.0).reshape(1, 10, 10)
        >>> small = Augmentation(crop=4, rotation=0, flip=False)
        >>> image, target = small.apply(ramp, ramp, np.random.default_rng(0))
        >>> (target[0, 0] - target[0, 0, 0]).tolist(), torch.allclose(image, target, atol=1e-3)
        ([0.0, 1.0, 2.0, 3.0], True)
        """
        height, width = image.shape[1:]
        row, column = self.place(height, width, random).sources(self.crop)
        # torch counts from -1 to 1 between the outer edges of the image.
        grid = np.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], axis=-1)
        places = torch.from_numpy(grid.astype(np.float32))[None]  # (1, crop, crop, 2)
        return _sample(image, places, "bilinear"), _sample(target, places, "nearest")

    def place(self, height: int, width: int, random: np.random.Generator) -> Placement:
        """Draw where in an image a square lies, and how it is turned: five draws."""
        if min(height, width) < self.crop:
            raise ValueError(f"an image of {height}x{width} has no square of {self.crop} pixels")
        draws = random.random(5)
        top, left = (
            int(draws[k] * (size - self.crop + 1)) for k, size in enumerate((height, width))
        )
        angle = np.deg2rad(self.rotation * (2 * draws[2] - 1))
        down, right = (-1.0 if self.flip and draw < 0.5 else 1.0 for draw in draws[3:])
        middle = (self.crop - 1) / 2
        cosine, sine = np.cos(angle), np.sin(angle)
        return Placement(
            row=top + middle,
            column=left + middle,
            step_down=(cosine * down, sine * down),
            step_right=(-sine * right, cosine * right),
        )


class Placement(NamedTuple):
    """Where a square comes from: the place of its middle in the image, and of a step in it.

    Steps, down and to the right in the square, are in rows and columns of the image.
    """

    row: float
    column: float
    step_down: Step
    step_right: Step

    def sources(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the image that the pixels of a square come from, (size, size)."""
        side = np.arange(size) - (size - 1) / 2
        y, x = np.meshgrid(side, side, indexing="ij")
        return (
            self.step_down[0] * y + self.step_right[0] * x + self.row,
            self.step_down[1] * y + self.step_right[1] * x + self.column,
        )

    def sample_image(self, image: np.ndarray, size: int) -> np.ndarray:
        """Take the square from an image, interpolated; outside, the image goes on mirrored.

        Shape
        -----
        image : uint8 (H, W, 3); returns uint8 (3, size, size)
        """
        out = np.empty((3, size, size), np.uint8)
        _interpolate(image, self.row, self.column, self.step_down, self.step_right, out)
        return out

    def sample_target(self, target: np.ndarray, size: int) -> np.ndarray:
        """Take the square from a target, of each pixel the nearest value.

        Shape
        -----
        target : uint8 (H, W); returns uint8 (size, size)
        """
        out = np.empty((size, size), np.uint8)
        _take_nearest(target, self.row, self.column, self.step_down, self.step_right, out)
        return out


def _sample(image: Tensor, places: Tensor, mode: str) -> Tensor:
    return grid_sample(
        image[None], places, mode=mode, padding_mode="reflection", align_corners=False
    )[0]


@njit(cache=True, nogil=True, inline="always")
def _mirrored(place: float, size: int) -> float:
    """Bring a place back into an image that goes on mirrored at its outer edges."""
    place = abs(place + 0.5) % (2 * size)
    return min(place, 2 * size - place) - 0.5


@njit(cache=True, nogil=True, inline="always")
def _source(
    y: float, x: float, row: float, column: float, down: Step, right: Step, height: int, width: int
) -> Step:
    """Find where in an image a pixel comes from, given its place from the square's middle."""
    return (
        _mirrored(down[0] * y + right[0] * x + row, height),
        _mirrored(down[1] * y + right[1] * x + column, width),
    )


@njit(cache=True, nogil=True)
def _interpolate(
    image: Array, row: float, column: float, down: Step, right: Step, out: Array
) -> None:
    height, width = image.shape[:2]
    size = out.shape[1]
    middle = (size - 1) / 2
    for i in range(size):
        for j in range(size):
            y, x = _source(i - middle, j - middle, row, column, down, right, height, width)
            y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
            top, left = int(y), int(x)
            below, beside = min(top + 1, height - 1), min(left + 1, width - 1)
            # In 256ths: whole numbers are faster, and finer than a byte can tell.
            low, far = int((y - top) * 256 + 0.5), int((x - left) * 256 + 0.5)
            for k in range(3):
                upper = image[top, left, k] * (256 - far) + image[top, beside, k] * far
                lower = image[below, left, k] * (256 - far) + image[below, beside, k] * far
                out[k, i, j] = (upper * (256 - low) + lower * low + 32768) >> 16


@njit(cache=True, nogil=True)
def _take_nearest(
    target: Array, row: float, column: float, down: Step, right: Step, out: Array
) -> None:
    height, width = target.shape
    size = out.shape[0]
    middle = (size - 1) / 2
    for i in range(size):
        for j in range(size):
            y, x = _source(i - middle, j - middle, row, column, down, right, height, width)
            top, left = int(y + 0.5), int(x + 0.5)
            out[i, j] = target[min(top, height - 1), min(left, width - 1)]
