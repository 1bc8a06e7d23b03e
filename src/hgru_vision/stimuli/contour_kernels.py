"""Inner loops of synthetic contours; `contours.py` tells what they make.

Cells are counted row by row in the grid before it is sheared and mirrored. There rows move to the
right by ``shear`` for each row down, those cells that leave the field come back on its other side,
and a contour runs down to the right. An image shows one of the mirror images of that.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from hgru_vision.stimuli._types import Array
from hgru_vision.stimuli.geometry import sine_cosine
from hgru_vision.stimuli.growth import ANGLE, COS, SIN, X, Y
from hgru_vision.stimuli.random import (
    SCENE,
    STREAM_SIZE,
    draw_word,
    integer,
    open_stream,
    uniform,
)
from hgru_vision.stimuli.raster import draw_bar

# What a paddle belongs to; also the number of its mask.
CONTOUR, SCATTERED, RANDOM = 0, 1, 2
EVERYTHING = -1


@njit(cache=True)
def mirrored(x: float, y: float, mirror: int) -> tuple[float, float]:
    """Exchange left and right (bit 0), then x and y (bit 1)."""
    if mirror & 1:
        x = -x
    if mirror & 2:
        return y, x
    return x, y


@njit(cache=True)
def _cell(place: Array, step: int, cells: int) -> int:
    """Return the number of the cell so many steps down a diagonal; rows wrap around."""
    return (place[1] + step) * cells + (place[0] + step) % cells


@njit(cache=True, nogil=True)
def lay_out(
    cells: int,
    length: int,
    shear: float,
    pitch: float,
    scattered: bool,
    places: Array,
    table: Array,
    seed: int,
    indices: Array,
    labels: Array,
    paddles: Array,
    kinds: Array,
    directions: Array,
) -> None:
    """Lay out images: where each paddle lies and points, what it belongs to, the contours' angles.

    ``places`` are the cells (column, row) at which a contour may begin, ``table`` the cosine, sine
    and angle of a contour in each of the mirror images, 2 or 4; the last three arrays are filled.
    """
    stream = np.empty(STREAM_SIZE, np.uint64)
    middle = cells / 2
    mirrors = np.uint64(len(table) - 1)
    for image in range(indices.size):
        open_stream(stream, seed, indices[image], SCENE)
        mirror: Any = np.int64(draw_word(stream) & mirrors)
        cosine, sine, direction = table[mirror]
        directions[image] = direction
        for row in range(cells):
            for column in range(cells):
                y = row + 0.5 - middle
                x = column + 0.5 - middle + shear * y
                x -= cells * math.floor((x + middle) / cells)  # out on one side, in on the other
                x, y = mirrored(x, y, mirror)
                paddle = paddles[image, row * cells + column]
                paddle[X], paddle[Y] = (x + middle) * pitch, (y + middle) * pitch
                paddle[ANGLE] = 2.0 * math.pi * uniform(stream)
                paddle[SIN], paddle[COS] = sine_cosine(paddle[ANGLE])
        contour = labels[image] == 1
        if not (contour or scattered):
            continue
        place = places[integer(stream, len(places))]
        for step in range(length):
            cell = _cell(place, step, cells)
            if not contour:
                # As a contour's paddle of this number would lie, but of another contour each time.
                while True:
                    cell = _cell(places[integer(stream, len(places))], step, cells)
                    if kinds[image, cell] == RANDOM:
                        break
            kinds[image, cell] = CONTOUR if contour else SCATTERED
            paddle = paddles[image, cell]
            paddle[ANGLE], paddle[COS], paddle[SIN] = direction, cosine, sine


@njit(cache=True, nogil=True)
def paint(
    paddles: Array,
    kinds: Array,
    only: int,
    half_length: float,
    half_thickness: float,
    value: float,
    antialias: bool,
    out: Array,
) -> None:
    """Paint the paddles of one kind, or of all, brightness ``value`` on black."""
    for image in range(out.shape[0]):
        out[image] = 0
        for index in range(kinds.shape[1]):
            if only == EVERYTHING or kinds[image, index] == only:
                x, y, _, cosine, sine = paddles[image, index]
                draw_bar(
                    out[image], x, y, cosine, sine, half_length, half_thickness, value, antialias
                )
