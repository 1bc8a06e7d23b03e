"""Growing the paths of a Pathfinder image: Supp., "Positioning target paths", "Growing a path".

Everything here runs inside numba. A scene is an array of paddles, one row (x, y, angle, cos, sin)
each, the two target paths first; positions are in pixels, x to the right and y down, and an angle
points from a paddle's tail to its head. A grid of cells, each wide enough that a paddle can only
be too close to those of the nine cells around it, makes a test of clearance cost a few neighbours.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from hgru_vision.stimuli._types import Array
from hgru_vision.stimuli.geometry import core_distance_squared, draw_turn, sine_cosine
from hgru_vision.stimuli.random import integer, uniform

X, Y, ANGLE, COS, SIN = range(5)
PADDLE_SIZE = 5
NOTHING = -1

# Bounds of the random search: a configuration that cannot be met ends in an error, not in a loop.
PADDLE_DRAWS = 8  # draws of a paddle before its path is given up
# Pairs of target paths. What is advised should take few; a single image may take many more than
# others of its configuration, but whether any can be met is known sooner.
ADVICE_ATTEMPTS, USUAL_ATTEMPTS, MOST_ATTEMPTS = 500, 4_000, 400_000
DISTRACTOR_ATTEMPTS = 4_000  # seeds of distractors, in a row, of which none grew to the end
SCENE_ATTEMPTS = 20  # scenes whose distractors did not fit

FITS, TARGETS_DO_NOT_FIT, DISTRACTORS_DO_NOT_FIT = 0, 1, 2


class Layout(NamedTuple):
    """What the growing of paths needs to know of a configuration, in pixels of the canvas."""

    length: int
    canvas: float
    half_length: float  # l / 2
    step: float  # from a paddle's head to the pivot and from there to the next tail: m
    largest_turn: float  # beyond which the corners of neighbours in a path come closer than m
    apart: float  # squared least distance of the cores of all other pairs
    far_apart: float  # squared distance of centres from which cores cannot be too close
    low: float  # the cores stay within [low, canvas - low]
    continuity: float
    squared: bool  # turns by the squared cosine
    seed_radius: float
    distractor_length: int
    paddles: int
    cells: int  # cells on a side, with one empty row around
    cells_per_pixel: float


class Workspace(NamedTuple):
    """Scratch memory of one thread."""

    heads: Array  # (cells, cells) the newest paddle of a cell, or NOTHING
    next: Array  # (paddles,) the one placed before it in the same cell
    ghost: Array  # (length, PADDLE_SIZE)
    shadow: Array  # (length, PADDLE_SIZE)
    turns: Array  # (length - 1,)
    left: Array  # (length - 1,)


def workspace(layout: Layout) -> Workspace:
    """Allocate the scratch memory that scenes of this layout need."""
    return Workspace(
        heads=np.empty((layout.cells, layout.cells), np.int32),
        next=np.empty(layout.paddles, np.int32),
        ghost=np.empty((layout.length, PADDLE_SIZE)),
        shadow=np.empty((layout.length, PADDLE_SIZE)),
        turns=np.empty(layout.length - 1),
        left=np.empty(layout.length - 1),
    )


@njit(cache=True)
def _set(path: Array, i: int, x: float, y: float, angle: float) -> None:
    sine, cosine = sine_cosine(angle)
    path[i, X], path[i, Y], path[i, ANGLE], path[i, COS], path[i, SIN] = x, y, angle, cosine, sine


@njit(cache=True)
def _opposite(angle: float) -> float:
    return angle - math.copysign(math.pi, angle)


@njit(cache=True)
def _random_angle(stream: Array) -> float:
    return math.pi * (2.0 * uniform(stream) - 1.0)


@njit(cache=True)
def _on_canvas(layout: Layout, path: Array, i: int) -> bool:
    x, y = path[i, X], path[i, Y]
    across = layout.half_length * abs(path[i, COS])
    down = layout.half_length * abs(path[i, SIN])
    low, high = layout.low, layout.canvas - layout.low
    return x - across >= low and x + across <= high and y - down >= low and y + down <= high


@njit(cache=True)
def _extend(layout: Layout, path: Array, i: int, turn: float) -> bool:
    """Set paddle i of a path: turned by an angle at a pivot m beyond the head of paddle i - 1.

    Its tail lies m beyond the pivot (Supp., figure of the generator, panel b). Returns whether it
    is on the canvas and its corners are not too close to those of paddle i - 1.
    """
    angle = path[i - 1, ANGLE] + turn
    if angle > math.pi:
        angle -= 2.0 * math.pi
    elif angle < -math.pi:
        angle += 2.0 * math.pi
    sine, cosine = sine_cosine(angle)
    reach = layout.half_length + layout.step
    path[i, X] = path[i - 1, X] + reach * (path[i - 1, COS] + cosine)
    path[i, Y] = path[i - 1, Y] + reach * (path[i - 1, SIN] + sine)
    path[i, ANGLE], path[i, COS], path[i, SIN] = angle, cosine, sine
    return abs(turn) <= layout.largest_turn and _on_canvas(layout, path, i)


@njit(cache=True)
def _too_close(layout: Layout, a: Array, i: int, b: Array, j: int) -> bool:
    """Whether paddles i of a and j of b, not neighbours in a path, break the clearance."""
    dx = b[j, X] - a[i, X]
    dy = b[j, Y] - a[i, Y]
    centres = dx * dx + dy * dy
    if centres >= layout.far_apart:
        return False
    if centres < layout.apart:
        return True
    return layout.apart > core_distance_squared(
        dx, dy, a[i, COS], a[i, SIN], b[j, COS], b[j, SIN], layout.half_length
    )


@njit(cache=True)
def _clear_of(layout: Layout, path: Array, i: int, others: Array, count: int) -> bool:
    """Whether paddle i of a path keeps its distance from the first ``count`` of others."""
    for j in range(count):  # noqa: SIM110  (numba compiles no generator expression)
        if _too_close(layout, path, i, others, j):
            return False
    return True


@njit(cache=True)
def _clear_of_scene(layout: Layout, work: Workspace, scene: Array, i: int, previous: int) -> bool:
    """Whether paddle i keeps its distance from all that were placed, its neighbour left out."""
    column = int(scene[i, X] * layout.cells_per_pixel)
    row = int(scene[i, Y] * layout.cells_per_pixel)
    for r in range(row, row + 3):
        for c in range(column, column + 3):
            j = work.heads[r, c]
            while j != NOTHING:
                if j != previous and _too_close(layout, scene, i, scene, j):
                    return False
                j = work.next[j]
    return True


@njit(cache=True)
def _place(layout: Layout, work: Workspace, scene: Array, i: int) -> None:
    row = int(scene[i, Y] * layout.cells_per_pixel) + 1
    column = int(scene[i, X] * layout.cells_per_pixel) + 1
    work.next[i] = work.heads[row, column]
    work.heads[row, column] = i


@njit(cache=True)
def _take_back(layout: Layout, work: Workspace, scene: Array, i: int) -> None:
    """Undo ``_place`` of the paddle that was placed last."""
    row = int(scene[i, Y] * layout.cells_per_pixel) + 1
    column = int(scene[i, X] * layout.cells_per_pixel) + 1
    work.heads[row, column] = work.next[i]


@njit(cache=True)
def _place_seed(
    layout: Layout, work: Workspace, scene: Array, i: int, x: float, y: float, angle: float
) -> bool:
    """Begin a path with paddle i, if there is room for it."""
    _set(scene, i, x, y, angle)
    if _on_canvas(layout, scene, i) and _clear_of_scene(layout, work, scene, i, NOTHING):
        _place(layout, work, scene, i)
        return True
    return False


@njit(cache=True)
def _place_next(layout: Layout, work: Workspace, stream: Array, scene: Array, i: int) -> bool:
    """Go on with paddle i from paddle i - 1, if one of a few draws has room."""
    for _ in range(PADDLE_DRAWS):
        turn = draw_turn(stream, layout.continuity, layout.squared)
        if _extend(layout, scene, i, turn) and _clear_of_scene(layout, work, scene, i, i - 1):
            _place(layout, work, scene, i)
            return True
    return False


@njit(cache=True)
def _grow_pair(layout: Layout, work: Workspace, stream: Array, scene: Array) -> bool:
    """Grow two target paths in alternation from the ends of a diameter (Supp.; one attempt)."""
    k = layout.length
    inner = layout.low + layout.seed_radius
    x = inner + (layout.canvas - 2.0 * inner) * uniform(stream)
    y = inner + (layout.canvas - 2.0 * inner) * uniform(stream)
    sine, cosine = sine_cosine(_random_angle(stream))
    dx, dy = layout.seed_radius * cosine, layout.seed_radius * sine
    if not (
        _place_seed(layout, work, scene, 0, x + dx, y + dy, _random_angle(stream))
        and _place_seed(layout, work, scene, k, x - dx, y - dy, _random_angle(stream))
    ):
        return False
    for i in range(1, k):
        if not (
            _place_next(layout, work, stream, scene, i)
            and _place_next(layout, work, stream, scene, k + i)
        ):
            return False
    return True


@njit(cache=True)
def _draw_turns(layout: Layout, stream: Array, turns: Array) -> None:
    for i in range(turns.size):
        turns[i] = draw_turn(stream, layout.continuity, layout.squared)


@njit(cache=True)
def _grow_alone(
    layout: Layout,
    stream: Array,
    turns: Array,
    left: Array,
    path: Array,
    avoided: Array,
    count: int,
) -> bool:
    """Grow a path from its first paddle by given turns, in random order and with random signs.

    It stays clear of itself and of ``count`` avoided paddles. ``left`` is scratch memory.
    """
    left[:] = turns
    for i in range(1, layout.length):
        for draw in range(PADDLE_DRAWS):
            choice = integer(stream, layout.length - i)
            turn = left[choice] if integer(stream, 2) else -left[choice]
            if (
                _extend(layout, path, i, turn)
                and _clear_of(layout, path, i, path, i - 1)
                and _clear_of(layout, path, i, avoided, count)
            ):
                left[choice] = left[layout.length - 1 - i]
                break
            if draw == PADDLE_DRAWS - 1:
                return False
    return True


@njit(cache=True)
def _grow_ghost(layout: Layout, work: Workspace, stream: Array, scene: Array) -> bool:
    """Grow two target paths whose marked ends carry no label (one attempt).

    Path 1 and a ghost are two independent continuations of one seed paddle. Path 2 starts at the
    ghost's end and grows back, clear of path 1; its shadow starts at path 1's end and grows back,
    clear of the ghost. All four are kept or none. So path 1 and the ghost can be exchanged, and
    with them path 2 and the shadow, without changing the probability of the whole: the end of
    path 1 and the end of the ghost (which is path 2's) have *exactly* the same distribution of
    position and direction. Ghost and shadow are not drawn.

    Path 1 and the ghost are made of the same turns in another order, and so are path 2 and the
    shadow. Else a marker distance that fits the curvature of the drawn paths would speak for a
    connection: a straight path reaches far.
    """
    k = layout.length
    path_1, path_2, ghost, shadow = scene[:k], scene[k : 2 * k], work.ghost, work.shadow
    turns, left = work.turns, work.left
    size = layout.canvas - 2.0 * layout.low
    x = layout.low + size * uniform(stream)
    y = layout.low + size * uniform(stream)
    angle = _random_angle(stream)
    _set(path_1, 0, x, y, angle)
    _set(ghost, 0, x, y, angle)
    _draw_turns(layout, stream, turns)
    if not (
        _on_canvas(layout, path_1, 0)
        and _grow_alone(layout, stream, turns, left, path_1, path_1, 0)
        and _grow_alone(layout, stream, turns, left, ghost, ghost, 0)
    ):
        return False
    last = k - 1
    _set(path_2, 0, ghost[last, X], ghost[last, Y], _opposite(ghost[last, ANGLE]))
    _set(shadow, 0, path_1[last, X], path_1[last, Y], _opposite(path_1[last, ANGLE]))
    _draw_turns(layout, stream, turns)
    if not (
        _clear_of(layout, path_2, 0, path_1, k)
        and _clear_of(layout, shadow, 0, ghost, k)
        and _grow_alone(layout, stream, turns, left, path_2, path_1, k)
        and _grow_alone(layout, stream, turns, left, shadow, ghost, k)
    ):
        return False
    for i in range(k):  # turn path 2 round, so that it too runs from its origin to its marked end
        shadow[i] = path_2[i]
    for i in range(k):
        j = last - i
        _set(path_2, i, shadow[j, X], shadow[j, Y], _opposite(shadow[j, ANGLE]))
    for i in range(2 * k):
        _place(layout, work, scene, i)
    return True


@njit(cache=True)
def _grow_distractors(layout: Layout, work: Workspace, stream: Array, scene: Array) -> int:
    """Fill the scene with distractors; return the number of paddles that it then has."""
    placed = 2 * layout.length
    failures = 0
    size = layout.canvas - 2.0 * layout.low
    while placed < layout.paddles and failures < DISTRACTOR_ATTEMPTS:
        end = min(placed + layout.distractor_length, layout.paddles)
        grown = placed
        x = layout.low + size * uniform(stream)
        y = layout.low + size * uniform(stream)
        if _place_seed(layout, work, scene, placed, x, y, _random_angle(stream)):
            grown += 1
            while grown < end and _place_next(layout, work, stream, scene, grown):
                grown += 1
        if grown == end:
            placed = end
            failures = 0
        else:
            failures += 1
            for i in range(grown - 1, placed - 1, -1):
                _take_back(layout, work, scene, i)
    return placed


@njit(cache=True)
def grow_scene(
    layout: Layout, work: Workspace, stream: Array, ghost: bool, attempts: int, scene: Array
) -> tuple[int, int]:
    """Grow a whole scene; return its status and the greatest number of paddles that fitted.

    A larger number of attempts changes no scene that a smaller one grows.
    """
    most = 0
    for _ in range(SCENE_ATTEMPTS):
        grown = False
        for _ in range(attempts):
            work.heads[:] = NOTHING
            if ghost:
                grown = _grow_ghost(layout, work, stream, scene)
            else:
                grown = _grow_pair(layout, work, stream, scene)
            if grown:
                break
        if not grown:
            return TARGETS_DO_NOT_FIT, most
        placed = _grow_distractors(layout, work, stream, scene)
        most = max(most, placed)
        if placed == layout.paddles:
            return FITS, most
    return DISTRACTORS_DO_NOT_FIT, most
