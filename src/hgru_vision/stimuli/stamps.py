"""Tables of the released generator: what a paddle of each direction looks like on its pixel grid.

The released program draws a paddle as a line of whole pixels at a multiple of the resolution,
shrinks it by Lanczos interpolation, and pastes it with its starting point on a pixel of the
canvas. Paddles can have 360 directions (seeds, whole degrees) or point from a pivot to one of
about fifty pixels on a circle around it (all others), so every picture of a paddle, and everything
that depends on its direction, is made once, here. Coordinates are (row, column).
"""

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image, ImageDraw

from hgru_vision.stimuli._types import Array, Bytes

DEGREES = 360  # directions of seeds: -180 to 179 degrees
MASK_FROM = 96  # of a paddle's brightness after shrinking, unless some paddle stays below it
ON_GRID = 1024  # any pixel: steps are rounded after adding them to a whole coordinate


class Stamps(NamedTuple):
    """Tables over directions: first the 360 of seeds, then one for each pixel of the circle."""

    angles: Array  # (D,) radians
    lines: Bytes  # (D, 2r+1, 2r+1) the paddle; its starting point is the middle
    zones: Bytes  # (D, 2r+1, 2r+1) the paddle dilated by the margin
    footprints: Array  # (360, 2s+1, 2s+1) bool, what a seed needs free, around its starting point
    heads: Array  # (circle, 2) from the pivot to the head of the paddle there
    next_pivots: Array  # (D, 2) from a pivot to the next one, after a paddle of that direction
    seed_pivots: Array  # (360, 2) from a seed's starting point to its pivot, behind it
    seed_heads: Array  # (360, 2)
    weights: Array  # (D, circle) density of the next paddle's direction
    disc: Array  # (pixels, 2) offsets of a disc of the margin's radius
    marker: Bytes  # (2R+1, 2R+1)
    mask_from: int  # brightness in the image from which on a pixel is in a mask


@lru_cache(maxsize=16)
def make_stamps(
    length: int,
    thickness: float,
    margin: int,
    continuity: float,
    marker_radius: float,
    supersampling: int,
    reduce: int,
) -> Stamps:
    """Make the tables of one kind of paddle."""
    heads = _circle(length + margin)
    angles = np.concatenate(
        [np.deg2rad(np.arange(-180, 180)), np.arctan2(heads[:, 0], heads[:, 1])]
    )
    # A seed is drawn from its tail forward, every other paddle from its head backward.
    drawn = angles.copy()
    drawn[DEGREES:] += np.where(drawn[DEGREES:] < 0, np.pi, -np.pi)
    pictures = [_paddle(angle, length, thickness, margin, supersampling) for angle in drawn]
    lines, zones = (np.stack(each) for each in zip(*pictures, strict=True))
    behind = angles[:DEGREES] + np.where(angles[:DEGREES] < 0, np.pi, -np.pi)
    seed_heads = _steps(angles[:DEGREES], length)
    turn = np.abs(angles[:, None] - angles[None, DEGREES:])
    turn = continuity * np.minimum(turn, 2 * np.pi - turn)
    return Stamps(
        angles=angles,
        lines=lines,
        zones=zones,
        footprints=_footprints(zones[:DEGREES], length + margin),
        heads=heads,
        next_pivots=_steps(angles, length + 2 * margin),
        seed_pivots=seed_heads + _steps(behind, length + margin),
        seed_heads=seed_heads,
        weights=np.cos(np.minimum(turn, np.pi / 2)) ** 2,
        disc=np.argwhere(_disc(margin)) - margin,
        marker=_marker(marker_radius, supersampling),
        mask_from=max(1, min(MASK_FROM, _faintest(lines, reduce))),
    )


def _steps(angles: Array, distance: float) -> Array:
    """Whole steps in some directions, rounded up in both coordinates."""
    exact = distance * np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return np.ceil(ON_GRID + exact).astype(np.int64) - ON_GRID


def _circle(radius: int) -> Array:
    """Pixels, rounded down, under points spaced by one pixel along a circle."""
    angles = np.deg2rad(np.arange(0, 360, 360 / (2 * radius * math.pi)))
    points = radius * np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return np.unique(np.floor(ON_GRID + points).astype(np.int64) - ON_GRID, axis=0)


def _disc(radius: int) -> Array:
    row, column = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return row**2 + column**2 <= radius**2


def _shrink(picture: Bytes, size: int) -> Bytes:
    return np.asarray(Image.fromarray(picture).resize((size, size), Image.Resampling.LANCZOS))


def _paddle(
    angle: float, length: int, thickness: float, margin: int, supersampling: int
) -> tuple[Bytes, Bytes]:
    """Draw a paddle, and the paddle dilated by the margin, from the middle of a small picture."""
    reach = length + math.ceil(thickness) + margin
    middle = reach * supersampling
    end = middle + _steps(np.array(angle), length * supersampling)
    canvas = Image.new("L", (2 * middle + 1, 2 * middle + 1))
    ImageDraw.Draw(canvas).line(
        [(middle, middle), (int(end[1]), int(end[0]))],
        fill=255,
        width=round(thickness * supersampling),
    )
    fine = np.asarray(canvas)
    radius = margin * supersampling
    zone = np.zeros_like(fine)
    for row, column in np.argwhere(fine):
        top, left = row - radius, column - radius
        window = zone[max(top, 0) : row + radius + 1, max(left, 0) : column + radius + 1]
        disc = _disc(radius)[max(-top, 0) :, max(-left, 0) :]
        window |= (255 * disc[: window.shape[0], : window.shape[1]]).astype(np.uint8)
    return _shrink(fine, 2 * reach + 1), _shrink(zone, 2 * reach + 1)


def _faintest(lines: Bytes, reduce: int) -> int:
    """Return the brightness that every paddle reaches somewhere, wherever it is shrunk."""
    sums = np.pad(lines.astype(np.int64), ((0, 0), *[(reduce - 1, reduce - 1)] * 2))
    for axis in (1, 2):
        sums = sliding_window_view(sums, reduce, axis=axis).sum(axis=-1)
    means = (sums + reduce**2 // 2) // reduce**2  # of the square that starts at each pixel
    grids = product(range(reduce), repeat=2)
    return min(int(means[:, i::reduce, j::reduce].max(axis=(1, 2)).min()) for i, j in grids)


def _footprints(zones: Bytes, reach: int) -> Array:
    """Pixels that must be free for a seed: where its zone is full, moved one pixel down and right.

    The shift, and the cutting off of what lies further than ``reach - 1`` ahead, are the released
    program's: it draws the zone off the middle of its dilation kernel.
    """
    middle = zones.shape[1] // 2
    start = middle - reach - 1
    window = slice(start, start + 2 * reach + 1)
    return zones[:, window, window] == 255


def _marker(radius: float, supersampling: int) -> Bytes:
    """Draw a disc whose middle is the corner that the middle pixel shares with the one before."""
    reach = math.ceil(radius) + 4  # beyond the reach of the interpolation
    size, middle = (2 * reach + 1) * supersampling, reach * supersampling
    row, column = np.ogrid[-middle : size - middle, -middle : size - middle]
    disc = row**2 + column**2 <= (radius * supersampling) ** 2
    return _shrink((255 * disc).astype(np.uint8), 2 * reach + 1)
