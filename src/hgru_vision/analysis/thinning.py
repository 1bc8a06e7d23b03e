"""Thinning of a binary picture to lines one pixel wide, as MATLAB's ``bwmorph(..., 'thin', Inf)``.

Guo and Hall (1989, Comm. ACM 32:359), the variant of Lam, Lee and Suen (1992, IEEE Trans. PAMI
14:869): two kinds of passes take turns, each of which removes at once all pixels that its rule
allows, until neither removes any. The number of objects and of holes stays.
"""

import numpy as np
from numba import njit

from hgru_vision.stimuli._types import Array

__all__ = ["thin"]

# The eight neighbours x1 to x8 of the rule, (row, column): east first, then against the clock.
NEIGHBOURS = ((0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1))


def _removable() -> Array:
    """Tell for each of two passes and 256 neighbourhoods whether the middle pixel goes.

    Bit k - 1 of a neighbourhood's number is the neighbour xk.
    """
    table = np.zeros((2, 256), np.bool_)
    for number in range(256):
        x1, x2, x3, x4, x5, x6, x7, x8 = (bool(number >> bit & 1) for bit in range(8))
        crossings = (
            (not x1 and (x2 or x3))
            + (not x3 and (x4 or x5))
            + (not x5 and (x6 or x7))
            + (not x7 and (x8 or x1))
        )
        pairs = (x1 or x2) + (x3 or x4) + (x5 or x6) + (x7 or x8)
        other_pairs = (x2 or x3) + (x4 or x5) + (x6 or x7) + (x8 or x1)
        if crossings == 1 and 2 <= min(pairs, other_pairs) <= 3:
            table[0, number] = not ((x2 or x3 or not x8) and x1)
            table[1, number] = not ((x6 or x7 or not x4) and x5)
    return table


REMOVABLE = _removable()


@njit(cache=True, nogil=True)
def _thin_flat(mask: Array, neighbours: Array, removable: Array) -> None:
    """Thin a flat picture of 0 and 1 with an empty border, in place.

    `neighbours` are the steps to x1, ..., x8. A pixel is looked at again only where a neighbour
    has gone since: the passes remove the same pixels as if they went over the whole picture.
    """
    capacity = 0
    for place in range(mask.size):
        capacity += mask[place]
    waiting = np.empty((2, capacity), np.int64)  # pixels that each pass has to look at
    is_waiting = np.zeros((2, mask.size), np.bool_)
    count = np.zeros(2, np.int64)
    for place in range(mask.size):
        if mask[place]:
            for kind in range(2):
                waiting[kind, count[kind]] = place
                is_waiting[kind, place] = True
                count[kind] += 1
    gone = np.empty(capacity, np.int64)
    kind = 0
    while count[0] or count[1]:
        removed = 0
        for entry in range(count[kind]):
            place = waiting[kind, entry]
            is_waiting[kind, place] = False
            if mask[place]:
                number = 0
                for bit in range(8):
                    number |= mask[place + neighbours[bit]] << bit
                if removable[kind, number]:
                    gone[removed] = place
                    removed += 1
        count[kind] = 0
        for entry in range(removed):
            mask[gone[entry]] = 0
        for entry in range(removed):
            for bit in range(8):
                place = gone[entry] + neighbours[bit]
                if mask[place]:
                    for each in range(2):
                        if not is_waiting[each, place]:
                            is_waiting[each, place] = True
                            waiting[each, count[each]] = place
                            count[each] += 1
        kind = 1 - kind


def thin(mask: Array) -> Array:
    """Thin a binary picture to lines one pixel wide.

    Parameters
    ----------
    mask
        Any picture; what is not 0 counts as set.

    Shape
    -----
    mask : (H, W); returns bool (H, W)

    Examples
    --------
    >>> thin(np.ones((3, 6)))[1].astype(int).tolist()
    [0, 1, 1, 1, 1, 0]
    """
    mask = np.asarray(mask)
    if mask.ndim != 2:
        raise ValueError(f"mask must be a picture (H, W), got shape {mask.shape}")
    padded = np.pad(mask.astype(bool), 1).astype(np.uint8)
    steps = [row * padded.shape[1] + column for row, column in NEIGHBOURS]
    _thin_flat(padded.reshape(-1), np.array(steps), REMOVABLE)
    return padded[1:-1, 1:-1].astype(bool)
