"""Drawing bars and discs into 8-bit images.

The centre of pixel (row i, column j) lies at y = i + 0.5, x = j + 0.5. Binary drawing lights a
pixel whose centre is inside the shape; anti-aliased drawing gives it, nearly, the fraction of its
area that the shape covers. Where shapes meet the brighter one stays.
"""

import math

import numpy as np
from numba import njit

from hgru_vision.stimuli._types import Array


@njit(cache=True)
def _coverage(distance: float, half: float) -> float:
    """Overlap of the unit interval around ``distance`` with [-half, half]."""
    return max(0.0, min(distance + 0.5, half) - max(distance - 0.5, -half))


@njit(cache=True)
def draw_bar(
    image: Array,
    x: float,
    y: float,
    cosine: float,
    sine: float,
    half_length: float,
    half_thickness: float,
    value: float,
    antialias: bool,
) -> None:
    """Draw a bar around (x, y)."""
    height, width = image.shape
    border = 0.75 if antialias else 0.0  # a pixel further away than this is not touched
    across = half_length * abs(cosine) + half_thickness * abs(sine) + border
    down = half_length * abs(sine) + half_thickness * abs(cosine) + border
    left, right = max(0, int(x - across)), min(width, int(x + across) + 1)
    full = np.uint8(value + 0.5)
    for i in range(max(0, int(y - down)), min(height, int(y + down) + 1)):
        dy = i + 0.5 - y
        for j in range(left, right):
            dx = j + 0.5 - x
            u = dx * cosine + dy * sine
            v = dy * cosine - dx * sine
            if antialias:
                level = value * _coverage(u, half_length) * _coverage(v, half_thickness)
                image[i, j] = max(image[i, j], np.uint8(level + 0.5))
            elif abs(u) <= half_length and abs(v) <= half_thickness:
                image[i, j] = max(image[i, j], full)


@njit(cache=True)
def draw_disc(
    image: Array, x: float, y: float, radius: float, value: float, antialias: bool
) -> None:
    """Draw a filled disc around (x, y)."""
    height, width = image.shape
    reach = radius + 0.75
    for i in range(max(0, int(y - reach)), min(height, int(y + reach) + 1)):
        for j in range(max(0, int(x - reach)), min(width, int(x + reach) + 1)):
            distance = math.sqrt((j + 0.5 - x) ** 2 + (i + 0.5 - y) ** 2)
            if antialias:
                level = value * min(1.0, max(0.0, radius + 0.5 - distance))
            elif distance <= radius:
                level = value
            else:
                continue
            image[i, j] = max(image[i, j], np.uint8(level + 0.5))


@njit(cache=True)
def mean_reduce(image: Array, factor: int, out: Array) -> None:
    """Shrink an image by the mean of squares of ``factor`` x ``factor`` pixels, rounded."""
    area = factor * factor
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = area // 2
            for di in range(factor):
                for dj in range(factor):
                    total += image[i * factor + di, j * factor + dj]
            out[i, j] = np.uint8(total // area)
