"""One-to-one correspondence of boundary pixels: the assignment behind the BSDS score.

Two pixels may correspond if they are within a radius of each other. Of all one-to-one
correspondences the one is taken that costs least: a pair costs its distance, a pixel that stays
alone 100 radii. So nearly always the number of pairs is the largest possible, and then the sum of
distances the smallest. The benchmark's own program leaves out a random part of the problem to save
time; here all of it is solved, and two calls give the same answer.

Shortest augmenting paths with prices (Jonker and Volgenant, 1987, Computing 38:325) on lists of
neighbours. Paths are short because boundaries are near each other or nowhere, so that a picture
takes milliseconds.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csr_array, diags_array, hstack
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from hgru_vision.stimuli._types import Array

__all__ = [
    "RADIUS",
    "Neighbourhood",
    "check_radius",
    "match",
    "match_places",
    "match_reference",
]

RADIUS = 0.0075  # of the picture's diagonal, the benchmark's own
ALONE = 100  # radii that a pixel without a partner costs, the benchmark's own
UNIT = 100  # steps a pixel: whole costs make sums exact, and are the benchmark's own

FAR = np.int64(1) << 40  # beyond every path
PLACE_BITS = 24  # a heap's entry is a cost and below it the number of a column
PLACE_MASK = (1 << PLACE_BITS) - 1


def check_radius(radius: float) -> None:
    """Refuse a radius that is no share of a picture's diagonal."""
    if not 0 < radius < 1:
        raise ValueError(f"radius must be between 0 and 1, a share of the diagonal; got {radius}")


class Neighbourhood(NamedTuple):
    """Where partners of a pixel may be, for pictures of one size.

    Pictures are flat and have an empty border of `border` pixels, so that no step leaves them.
    """

    border: int
    size: int  # pixels with the border
    steps: Array  # int64 (n,), the nearest first
    costs: Array  # int64 (n,)
    alone: int  # cost of a pixel without a partner

    @classmethod
    def of(cls, shape: tuple[int, int], radius: float = RADIUS) -> "Neighbourhood":
        """Make it for pictures of (H, W) and a radius as a share of their diagonal."""
        check_radius(radius)
        height, width = shape
        reach = radius * float(np.hypot(height, width))
        border = max(1, int(reach))
        rows, columns = np.mgrid[-border : border + 1, -border : border + 1].reshape(2, -1)
        distance = np.hypot(rows, columns)
        near = np.flatnonzero(distance <= reach)
        near = near[np.argsort(distance[near], kind="stable")]
        return cls(
            border=border,
            size=(height + 2 * border) * (width + 2 * border),
            steps=(rows * (width + 2 * border) + columns)[near],
            costs=np.rint(UNIT * distance[near]).astype(np.int64),
            alone=round(UNIT * ALONE * reach),
        )

    def places(self, mask: Array) -> Array:
        """Give the places of a mask's pixels in the flat picture with its border."""
        return np.flatnonzero(np.pad(np.asarray(mask, bool), self.border))


class Pairs(NamedTuple):
    """Possible pairs: those of row i are entries start[i] to start[i + 1], the cheapest first."""

    start: Array
    column: Array
    cost: Array


class State(NamedTuple):
    """A correspondence in the making, with the prices that prove each part of it cheapest.

    cost - row_price - column_price is never negative, and 0 where row and column are partners.
    """

    partner: Array  # column of a row, or -1
    owner: Array  # row of a column, or -1
    row_price: Array
    column_price: Array


class Search(NamedTuple):
    """What a search for a path needs to remember; clean again after each."""

    distance: Array  # of a column
    previous: Array  # row from which a column was reached
    settled: Array
    touched: Array


@njit(cache=True, nogil=True)
def _find_pairs(rows: Array, columns: Array, size: int, steps: Array, costs: Array) -> Pairs:
    number = np.full(size, -1, np.int32)
    for column in range(columns.size):
        number[columns[column]] = column
    start = np.zeros(rows.size + 1, np.int64)
    for row in range(rows.size):
        found = 0
        for step in steps:
            found += number[rows[row] + step] >= 0
        start[row + 1] = start[row] + found
    near = np.empty(start[-1], np.int32)
    cost = np.empty(start[-1], np.int32)
    entry = 0
    for row in range(rows.size):
        for k in range(steps.size):
            column = number[rows[row] + steps[k]]
            if column >= 0:
                near[entry] = column
                cost[entry] = costs[k]
                entry += 1
    return Pairs(start, near, cost)


@njit(cache=True, nogil=True)
def _match_nearest(pairs: Pairs, state: State) -> Array:
    """Pair rows with their nearest column while it is free; return the rows left over."""
    left = np.empty(state.partner.size, np.int64)
    count = 0
    for row in range(state.partner.size):
        first, last = pairs.start[row], pairs.start[row + 1]
        if first == last:
            continue
        state.row_price[row] = pairs.cost[first]
        for entry in range(first, last):
            if pairs.cost[entry] > pairs.cost[first]:
                break
            column = pairs.column[entry]
            if state.owner[column] < 0:
                state.owner[column] = row
                state.partner[row] = column
                break
        if state.partner[row] < 0:
            left[count] = row
            count += 1
    return left[:count]


@njit(cache=True, nogil=True)
def _insert(source: int, pairs: Pairs, state: State, search: Search, alone: int) -> None:
    """Find the cheapest way to take one more row in, and go it.

    The way ends at a free column or at a row, possibly the new one, that is left alone from then
    on: rows that come later can only take columns away from it.
    """
    row, distance = source, 0
    shortest = FAR  # known way to an end
    touched = 0
    last_row, last_column = -1, -1
    heap = [0 for _ in range(0)]  # empty, but of a kind that the compiler knows
    while True:
        if distance + alone - state.row_price[row] < shortest:
            shortest = distance + alone - state.row_price[row]
            last_row, last_column = row, -1
        for entry in range(pairs.start[row], pairs.start[row + 1]):
            column = pairs.column[entry]
            to = distance + pairs.cost[entry] - state.row_price[row] - state.column_price[column]
            if to < shortest and to < search.distance[column]:
                if search.distance[column] == FAR:
                    search.touched[touched] = column
                    touched += 1
                search.distance[column] = to
                search.previous[column] = row
                if state.owner[column] < 0:
                    shortest = to
                    last_row, last_column = -1, column
                else:
                    heappush(heap, (to << PLACE_BITS) | column)
        row = -1  # the next row to go on from: the owner of the nearest column
        while heap:
            smallest = heappop(heap)
            distance = smallest >> PLACE_BITS
            if distance >= shortest:
                break
            column = smallest & PLACE_MASK
            if not search.settled[column]:
                search.settled[column] = True
                row = state.owner[column]
                break
        if row < 0:
            break
    for k in range(touched):  # prices of what was passed, so that the way costs nothing more
        column = search.touched[k]
        if search.settled[column]:
            gain = shortest - search.distance[column]
            state.column_price[column] -= gain
            state.row_price[state.owner[column]] += gain
            search.settled[column] = False
        search.distance[column] = FAR
    state.row_price[source] += shortest
    if last_row == source:
        return
    if last_row >= 0:  # left alone; its column goes to another
        last_column = state.partner[last_row]
        state.partner[last_row] = -1
    column = last_column
    while True:
        row = search.previous[column]
        state.owner[column] = row
        state.partner[row], column = column, state.partner[row]
        if row == source:
            return


@njit(cache=True, nogil=True)
def _assign(
    rows: Array, columns: Array, size: int, steps: Array, costs: Array, alone: int
) -> Array:
    """Give the column of each row, or -1."""
    pairs = _find_pairs(rows, columns, size, steps, costs)
    state = State(
        np.full(rows.size, -1, np.int64),
        np.full(columns.size, -1, np.int64),
        np.zeros(rows.size, np.int64),
        np.zeros(columns.size, np.int64),
    )
    search = Search(
        np.full(columns.size, FAR, np.int64),
        np.empty(columns.size, np.int64),
        np.zeros(columns.size, np.bool_),
        np.empty(columns.size, np.int64),
    )
    for row in _match_nearest(pairs, state):
        _insert(row, pairs, state, search, alone)
    return state.partner


def match_places(detected: Array, annotated: Array, near: Neighbourhood) -> tuple[Array, Array]:
    """Tell which pixels have a partner in the other picture.

    Parameters
    ----------
    detected, annotated
        Their places, as `Neighbourhood.places` gives them.
    near
        Where partners may be.

    Shape
    -----
    detected : int64 (n,); annotated : int64 (m,); returns bool (n,) and bool (m,)
    """
    if len(detected) > len(annotated):  # a row that finds no column searches longest
        second, first = match_places(annotated, detected, near)
        return first, second
    partner = _assign(detected, annotated, near.size, near.steps, near.costs, near.alone)
    found = partner >= 0
    second = np.zeros(len(annotated), bool)
    second[partner[found]] = True
    return found, second


def match(detected: Array, annotated: Array, radius: float = RADIUS) -> tuple[Array, Array]:
    """Tell which boundary pixels of two pictures correspond, one to one.

    Parameters
    ----------
    detected, annotated
        Boundary maps; what is not 0 is boundary.
    radius
        Largest distance of partners, as a share of the picture's diagonal.

    Returns
    -------
    detected_found, annotated_found
        The pixels of each that have a partner in the other.

    Shape
    -----
    detected, annotated : (H, W); returns bool (H, W) twice

    Examples
    --------
    >>> detected, annotated = np.zeros((2, 60, 80), bool)
    >>> detected[10, 20:30] = annotated[10, 25:40] = True
    >>> [int(found.sum()) for found in match(detected, annotated, radius=0.01)]
    [6, 6]
    >>> [int(found.sum()) for found in match(detected, annotated, radius=0.05)]
    [10, 10]
    """
    return _match_maps(detected, annotated, radius, match_places)


def match_reference(
    detected: Array, annotated: Array, radius: float = RADIUS
) -> tuple[Array, Array]:
    """Do as `match` does, by scipy's solver: for comparison, some twenty times slower.

    Each detected pixel gets a column of its own for staying alone. Of equally cheap
    correspondences it may take another.
    """
    return _match_maps(detected, annotated, radius, _match_by_scipy)


def _match_by_scipy(detected: Array, annotated: Array, near: Neighbourhood) -> tuple[Array, Array]:
    number = np.full(near.size, -1)
    number[annotated] = np.arange(len(annotated))
    columns = number[detected[:, None] + near.steps]
    rows, steps = np.nonzero(columns >= 0)
    shape = len(detected), len(annotated)
    # The solver takes a cost of 0 for no pair at all; one more for every row changes nothing.
    pairs = csr_array((near.costs[steps] + 1.0, (rows, columns[rows, steps])), shape=shape)
    staying_alone = diags_array(np.full(len(detected), near.alone + 1.0))
    _, partner = min_weight_full_bipartite_matching(hstack([pairs, staying_alone], format="csr"))
    found = partner < len(annotated)
    second = np.zeros(len(annotated), bool)
    second[partner[found]] = True
    return found, second


def _match_maps(
    detected: Array,
    annotated: Array,
    radius: float,
    solve: Callable[[Array, Array, Neighbourhood], tuple[Array, Array]],
) -> tuple[Array, Array]:
    maps = [np.asarray(each) != 0 for each in (detected, annotated)]
    if maps[0].ndim != 2 or maps[0].shape != maps[1].shape:
        raise ValueError(
            f"boundary maps must be two pictures of one size (H, W); got shapes {maps[0].shape} "
            f"and {maps[1].shape}"
        )
    near = Neighbourhood.of(maps[0].shape, radius)
    found = solve(near.places(maps[0]), near.places(maps[1]), near)
    for each, right in zip(maps, found, strict=True):
        each[each] = right  # both in the order of the pixels
    return maps[0], maps[1]
