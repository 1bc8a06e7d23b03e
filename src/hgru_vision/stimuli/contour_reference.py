"""Synthetic contours drawn in plain numpy: what the compiled painting is judged against."""

import numpy as np
import numpy.typing as npt

from hgru_vision.stimuli._types import Array, Bytes, Floats
from hgru_vision.stimuli.contours import ContourConfig, scenes
from hgru_vision.stimuli.growth import COS, SIN, X, Y


def images_in_numpy(config: ContourConfig, seed: int, indices: npt.ArrayLike) -> Bytes:
    """Draw the images of `contours.images`, bit for bit, all paddles of an image at once.

    The layout is shared with the fast path, since it is a matter of random numbers; painting is
    not.

    Examples
    --------
    >>> from hgru_vision.stimuli.contours import images
    >>> config = ContourConfig(length=5)
    >>> np.array_equal(images_in_numpy(config, 0, range(2)), images(config, 0, range(2)))
    True
    """
    grown = scenes(config, seed, indices)
    return np.stack([_paint(config, paddles) for paddles in grown.paddles])


def _paint(config: ContourConfig, paddles: Array) -> Bytes:
    scale = config.pixels_per_degree
    half_length, half_thickness = scale * config.paddle_length / 2, scale * config.thickness / 2
    reach = int(np.ceil(np.hypot(half_length, half_thickness))) + 1
    window = np.arange(-reach, reach + 1)
    x, y, cosine, sine = (paddles[:, place, None, None] for place in (X, Y, COS, SIN))
    row = np.floor(y).astype(int) + window[:, None]  # (P, side, 1): the pixels around a paddle
    column = np.floor(x).astype(int) + window[None, :]  # (P, 1, side)
    dx, dy = column + 0.5 - x, row + 0.5 - y
    along = dx * cosine + dy * sine
    across = dy * cosine - dx * sine
    level = np.full(along.shape, 255 * config.contrast)
    if config.antialias:
        level = level * _coverage(along, half_length) * _coverage(across, half_thickness)
    else:
        level[(np.abs(along) > half_length) | (np.abs(across) > half_thickness)] = 0
    lit = (level + 0.5).astype(np.uint8)
    image = np.zeros((config.canvas, config.canvas), np.uint8)
    inside = (row >= 0) & (row < config.canvas) & (column >= 0) & (column < config.canvas)
    rows, columns = np.broadcast_arrays(row, column)
    np.maximum.at(image, (rows[inside], columns[inside]), lit[inside])
    return image


def _coverage(distance: Floats, half: float) -> Floats:
    """Overlap of unit intervals around distances with [-half, half]."""
    overlap = np.minimum(distance + 0.5, half) - np.maximum(distance - 0.5, -half)
    return np.maximum(overlap, 0)
