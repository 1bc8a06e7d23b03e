"""Growing and drawing paths on whole pixels, as the authors' released generator does.

Everything here runs inside numba. A stroke is a row (row, column, direction, margin): where a
paddle's picture is pasted and which one of `stamps.Stamps` it is.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from hgru_vision.stimuli._types import Array
from hgru_vision.stimuli.random import MARGIN, SCENE, STREAM_SIZE, integer, open_stream, uniform
from hgru_vision.stimuli.raster import mean_reduce
from hgru_vision.stimuli.scenes import ALL_PATHS, NO_PATH
from hgru_vision.stimuli.stamps import DEGREES, Stamps

PADDLE_DRAWS = 3  # of a paddle, before its path is given up
DISTRACTOR_ATTEMPTS = 5  # at a distractor, before it is left out
# At the pair of targets; the released program goes on for ever. A single image may take many more
# than others of its configuration, but whether any can be grown is known sooner.
USUAL_ATTEMPTS, TARGET_ATTEMPTS = 4_000, 200_000
SEED_DRAWS = 20_000  # of a pixel for a seed; the released program lists all free ones

FULL = 255
SEED_BLOCKED = 76  # a mask above 0.3 blocks a seed
OVERLAP_BLOCKED = 459  # two masks that add up to 1.8 block a paddle


@njit(cache=True, nogil=True)
def draw_integers(seed: int, indices: Array, bound: int, out: Array) -> None:
    """Draw one whole number below ``bound`` for each image."""
    stream = np.empty(STREAM_SIZE, np.uint64)
    for row in range(indices.size):
        open_stream(stream, seed, indices[row], MARGIN)
        out[row] = integer(stream, bound)


@njit(cache=True)
def _seed_is_free(
    stamps: Stamps, mask: Array, row: int, column: int, angle: int, border: int
) -> bool:
    """Whether a seed may start at a pixel: its footprint free of paddles and of the border."""
    size = mask.shape[0]
    footprint = stamps.footprints[angle]
    reach = footprint.shape[0] // 2
    for i in range(footprint.shape[0]):
        for j in range(footprint.shape[1]):
            if footprint[i, j]:
                r, c = row + i - reach, column + j - reach
                if 0 <= r < size and 0 <= c < size:  # the rest of the footprint is not looked at
                    if min(r, c) < border or max(r, c) >= size - border:
                        return False
                    if mask[r, c] > SEED_BLOCKED:
                        return False
    return True


@njit(cache=True)
def _within(size: int, row: int, column: int) -> bool:
    return 0 <= row < size and 0 <= column < size


@njit(cache=True)
def _seed_on_canvas(stamps: Stamps, size: int, row: int, column: int, angle: int) -> bool:
    head, pivot = stamps.seed_heads[angle], stamps.seed_pivots[angle]
    return (
        _within(size, row, column)
        and _within(size, row + head[0], column + head[1])
        and _within(size, row + pivot[0], column + pivot[1])
    )


@njit(cache=True)
def _draw_seed(stamps: Stamps, stream: Array, mask: Array, border: int, stroke: Array) -> bool:
    """Draw a seed of random direction, uniformly over the pixels where it may start."""
    size = mask.shape[0]
    angle = integer(stream, DEGREES)
    for _ in range(SEED_DRAWS):
        row, column = integer(stream, size), integer(stream, size)
        if _seed_on_canvas(stamps, size, row, column, angle) and _seed_is_free(
            stamps, mask, row, column, angle, border
        ):
            stroke[0], stroke[1], stroke[2] = row, column, angle
            return True
    return False


@njit(cache=True)
def _has_room_for_seed(stamps: Stamps, mask: Array, border: int) -> bool:
    """Whether there is any pixel and any direction in which a seed may start."""
    size = mask.shape[0]
    for angle in range(DEGREES):
        for row in range(size):
            for column in range(size):
                if _seed_on_canvas(stamps, size, row, column, angle) and _seed_is_free(
                    stamps, mask, row, column, angle, border
                ):
                    return True
    return False


@njit(cache=True)
def _zone_fits(stamps: Stamps, mask: Array, row: int, column: int, angle: int) -> bool:
    """Whether a dilated paddle nowhere adds up to 1.8 with the mask."""
    size = mask.shape[0]
    zone = stamps.zones[angle]
    reach = zone.shape[0] // 2
    for i in range(max(0, reach - row), min(zone.shape[0], size + reach - row)):
        for j in range(max(0, reach - column), min(zone.shape[1], size + reach - column)):
            if (
                zone[i, j]
                and np.int64(mask[row + i - reach, column + j - reach]) + zone[i, j]
                >= OVERLAP_BLOCKED
            ):
                return False
    return True


@njit(cache=True)
def _paste(picture: Array, row: int, column: int, image: Array) -> None:
    """Paste a picture with its middle on a pixel; the brighter stays."""
    height, width = image.shape
    reach = picture.shape[0] // 2
    for i in range(max(0, reach - row), min(picture.shape[0], height + reach - row)):
        for j in range(max(0, reach - column), min(picture.shape[1], width + reach - column)):
            if picture[i, j]:
                r, c = row + i - reach, column + j - reach
                image[r, c] = max(image[r, c], picture[i, j])


@njit(cache=True)
def _copy_back(kept: Array, row: int, column: int, reach: int, mask: Array) -> None:
    """Restore a square of the mask."""
    top, left = max(0, row - reach), max(0, column - reach)
    mask[top : row + reach + 1, left : column + reach + 1] = kept[
        top : row + reach + 1, left : column + reach + 1
    ]


@njit(cache=True)
def _mask_near(stamps: Stamps, mask: Array, row: int, column: int) -> int:
    """Return the largest value of the mask within the margin of a pixel."""
    size = mask.shape[0]
    largest: Any = 0
    for offset in range(stamps.disc.shape[0]):
        r, c = row + stamps.disc[offset, 0], column + stamps.disc[offset, 1]
        if _within(size, r, c):
            largest = max(largest, np.int64(mask[r, c]))
    return largest


@njit(cache=True)
def _extend(
    stamps: Stamps, stream: Array, mask: Array, pivot: Array, stroke: Array, new: Array
) -> bool:
    """Draw the paddle that follows a stroke, and move the pivot on; a few draws."""
    size = mask.shape[0]
    last = stroke[2]
    row = pivot[0] + stamps.next_pivots[last, 0]
    column = pivot[1] + stamps.next_pivots[last, 1]
    circle = stamps.heads.shape[0]
    cumulative = np.zeros(circle)
    total = 0.0
    for j in range(circle):
        weight = stamps.weights[last, j]
        if weight > 1e-12:
            r, c = row + stamps.heads[j, 0], column + stamps.heads[j, 1]
            if _within(size, r, c):
                total += weight * (1.0 - _mask_near(stamps, mask, r, c) / FULL)
        cumulative[j] = total
    if total < 1e-4:
        return False
    for _ in range(PADDLE_DRAWS):
        threshold = uniform(stream) * total
        j = 0
        while cumulative[j] <= threshold:
            j += 1
        r, c = row + stamps.heads[j, 0], column + stamps.heads[j, 1]
        if _zone_fits(stamps, mask, r, c, DEGREES + j):
            new[0], new[1], new[2] = r, c, DEGREES + j
            pivot[0], pivot[1] = row, column
            return True
    return False


@njit(cache=True)
def _start_pivot(stamps: Stamps, stroke: Array, pivot: Array) -> None:
    pivot[0] = stroke[0] + stamps.seed_pivots[stroke[2], 0]
    pivot[1] = stroke[1] + stamps.seed_pivots[stroke[2], 1]


@njit(cache=True)
def _add_zone(stamps: Stamps, stroke: Array, mask: Array) -> None:
    _paste(stamps.zones[stroke[2]], stroke[0], stroke[1], mask)


@njit(cache=True)
def _grow_pair(
    stamps: Stamps, stream: Array, length: int, seed_distance: int, mask: Array, strokes: Array
) -> int:
    """Grow two target paths in alternation; return how long they became in this one attempt.

    A paddle enters the mask only when its successor is placed, so the newest paddle of one path is
    invisible to the other, and the last one of path 0 stays so for ever: paths may touch.
    """
    size = mask.shape[0]
    if not _draw_seed(stamps, stream, mask, 2 * seed_distance, strokes[0]):
        return 0
    for _ in range(PADDLE_DRAWS):
        angle = integer(stream, DEGREES)
        around = np.deg2rad(np.float64(integer(stream, DEGREES)))
        row = int(np.rint(strokes[0, 0] + seed_distance * math.sin(around)))
        column = int(np.rint(strokes[0, 1] + seed_distance * math.cos(around)))
        found = _seed_on_canvas(stamps, size, row, column, angle)
        if found:
            break
    if not found:
        return 0
    strokes[length, 0], strokes[length, 1], strokes[length, 2] = row, column, angle
    pivots = np.empty((2, 2), np.int64)
    for path in range(2):
        _start_pivot(stamps, strokes[path * length], pivots[path])
    for i in range(1, length):
        for path in range(2):
            last = path * length + i - 1
            if not _extend(stamps, stream, mask, pivots[path], strokes[last], strokes[last + 1]):
                return i
            _add_zone(stamps, strokes[last], mask)
    _add_zone(stamps, strokes[2 * length - 1], mask)
    return length


@njit(cache=True)
def _grow_distractor(
    stamps: Stamps, stream: Array, length: int, mask: Array, kept: Array, strokes: Array
) -> bool:
    """Grow one distractor, or leave the mask as it was; ``kept`` equals it before and after."""
    reach = stamps.zones.shape[1] // 2
    pivot = np.empty(2, np.int64)
    if not _draw_seed(stamps, stream, mask, 1, strokes[0]):
        return False
    _start_pivot(stamps, strokes[0], pivot)
    grown = True
    merged = 0
    for i in range(1, length):
        grown = _extend(stamps, stream, mask, pivot, strokes[i - 1], strokes[i])
        if not grown:
            break
        _add_zone(stamps, strokes[i - 1], mask)
        merged = i
    if grown:
        _add_zone(stamps, strokes[length - 1], mask)
        for i in range(length):
            _copy_back(mask, strokes[i, 0], strokes[i, 1], reach, kept)
    else:
        for i in range(merged):
            _copy_back(kept, strokes[i, 0], strokes[i, 1], reach, mask)
    return grown


@njit(cache=True, nogil=True)
def grow_scenes(
    stamps: Stamps,
    length: int,
    distractor_length: int,
    distractors: int,
    padding: int,
    seed_distance: int,
    attempts: int,
    seed: int,
    indices: Array,
    labels: Array,
    rows: Array,
    mask: Array,
    kept: Array,
    strokes: Array,
    paths: Array,
    tips: Array,
    turned: Array,
    marked: Array,
) -> bool:
    """Grow scenes; return whether one of them could not be."""
    stream = np.empty(STREAM_SIZE, np.uint64)
    size = mask.shape[0]
    for row in rows:
        open_stream(stream, seed, indices[row], SCENE)
        scene = strokes[row]
        grown = 0
        for attempt in range(attempts):
            mask[:] = FULL
            mask[padding : size - padding, padding : size - padding] = 0
            grown = _grow_pair(stamps, stream, length, seed_distance, mask, scene)
            if grown == length:
                break
            if attempt + grown == 0 and not _has_room_for_seed(stamps, mask, 2 * seed_distance):
                break
        if grown < length:
            return True
        paths[row, :length] = 0
        paths[row, length : 2 * length] = 1
        kept[:] = mask
        place = 2 * length
        path = 2
        for _ in range(distractors):
            for _ in range(DISTRACTOR_ATTEMPTS):
                strokes_here = scene[place : place + distractor_length]
                if _grow_distractor(stamps, stream, distractor_length, mask, kept, strokes_here):
                    paths[row, place : place + distractor_length] = path
                    path += 1
                    place += distractor_length
                    break
        origin = integer(stream, 2)
        end = origin if labels[row] == 1 else 1 - origin
        first, last = origin * length, end * length + length - 1
        for axis in range(2):
            tips[row, 0, axis] = scene[first, axis]
            tips[row, 1, axis] = scene[last, axis]
        if length == 1:  # a seed starts at its tail; its other tip is its head
            for axis in range(2):
                tips[row, 1, axis] += stamps.seed_heads[scene[last, 2], axis]
        turned[row, 0], turned[row, 1] = scene[first, 2], scene[last, 2]
        marked[row, 0], marked[row, 1] = origin, end
    return False


@njit(cache=True, nogil=True)
def paint_scenes(
    lines: Array,
    marker: Array,
    strokes: Array,
    paths: Array,
    only: Array,
    marked: Array,
    markers: int,
    rows: Array,
    reduce: int,
    mask_from: int,
    canvas: Array,
    out: Array,
) -> None:
    """Draw scenes and shrink them; ``mask_from``, if above 0, makes them 0/1 masks."""
    paddles = paths.shape[1]
    for row in rows:
        canvas[:] = 0
        first, second = only[row]
        for index in range(paddles):
            path = paths[row, index]
            if path != NO_PATH and (first == ALL_PATHS or path in (first, second)):
                stroke = strokes[row, index]
                _paste(lines[stroke[2]], stroke[0], stroke[1], canvas)
        for index in range(markers):
            path = marked[row, index]
            if first == ALL_PATHS or path in (first, second):
                stroke = strokes[row, paddles + index]
                _paste(marker, stroke[0], stroke[1], canvas)
        mean_reduce(canvas, reduce, out[row])
        if mask_from > 0:
            for i in range(out.shape[1]):
                for j in range(out.shape[2]):
                    out[row, i, j] = 1 if out[row, i, j] >= mask_from else 0
