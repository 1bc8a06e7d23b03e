"""Crops, rotations and flips of a natural image and its target together."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from hgru_vision.papers.linsley2018 import BSDS_CROP, BSDS_ROTATION

__all__ = ["Augmentation"]


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
        if min(height, width) < self.crop:
            raise ValueError(f"an image of {height}x{width} has no square of {self.crop} pixels")
        draws = random.random(5)
        top, left = (
            int(draws[k] * (size - self.crop + 1)) for k, size in enumerate((height, width))
        )
        angle = np.deg2rad(self.rotation * (2 * draws[2] - 1))
        mirror = [-1.0 if self.flip and draw < 0.5 else 1.0 for draw in draws[3:]]
        # Each pixel of the square, from its middle, and where in the image it comes from.
        side = np.arange(self.crop) - (self.crop - 1) / 2
        y, x = np.meshgrid(mirror[0] * side, mirror[1] * side, indexing="ij")
        row = np.cos(angle) * y - np.sin(angle) * x + top - side[0]
        column = np.sin(angle) * y + np.cos(angle) * x + left - side[0]
        # torch counts from -1 to 1 between the outer edges of the image.
        grid = np.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], axis=-1)
        places = torch.from_numpy(grid.astype(np.float32))[None]  # (1, crop, crop, 2)
        return _sample(image, places, "bilinear"), _sample(target, places, "nearest")


def _sample(image: Tensor, places: Tensor, mode: str) -> Tensor:
    return grid_sample(
        image[None], places, mode=mode, padding_mode="reflection", align_corners=False
    )[0]
