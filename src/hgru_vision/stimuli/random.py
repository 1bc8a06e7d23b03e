"""Counter-based random numbers: draw n of image i is a pure function of (seed, i, n).

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the seed is
the key, the image index and the number of the draw are the counter. There is no state to carry
from one image to the next, so an image is the same whatever the process, batch or order, and two
images never share a draw.
"""

from typing import Any

import numpy as np
from numba import njit

from hgru_vision.stimuli._types import Array

MASK = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
ONE = np.uint64(1)
MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
WEYL_0 = np.uint64(0x9E3779B9)
WEYL_1 = np.uint64(0xBB67AE85)

# What a stream of draws is for; streams of one image with other purposes never meet.
SCENE, LABEL, MARGIN = np.uint64(0), np.uint64(1), np.uint64(2)

# Where a stream, an array of eleven uint64, keeps its parts.
_KEY, _PURPOSE, _INDEX, _BLOCK, _USED, _WORDS = 0, 2, 3, 5, 6, 7
STREAM_SIZE = 11


@njit(cache=True)
def philox(  # type: ignore[no-untyped-def]
    counter_0, counter_1, counter_2, counter_3, key_0, key_1
):
    """Four 32-bit words (as uint64) from a 128-bit counter and a 64-bit key, in ten rounds."""
    for _ in range(10):
        product_0 = MULTIPLIER_0 * counter_0
        product_1 = MULTIPLIER_1 * counter_2
        counter_0, counter_1, counter_2, counter_3 = (
            (product_1 >> SHIFT) ^ counter_1 ^ key_0,
            product_1 & MASK,
            (product_0 >> SHIFT) ^ counter_3 ^ key_1,
            product_0 & MASK,
        )
        key_0 = (key_0 + WEYL_0) & MASK
        key_1 = (key_1 + WEYL_1) & MASK
    return counter_0, counter_1, counter_2, counter_3


@njit(cache=True)
def open_stream(stream: Array, seed: int, index: int, purpose: np.uint64) -> None:
    """Point ``stream`` at the first draw of image ``index`` under ``seed``."""
    stream[_KEY] = np.uint64(seed) & MASK
    stream[_KEY + 1] = np.uint64(seed) >> SHIFT
    stream[_PURPOSE] = purpose
    stream[_INDEX] = np.uint64(index) & MASK
    stream[_INDEX + 1] = np.uint64(index) >> SHIFT
    stream[_BLOCK] = np.uint64(0)
    stream[_USED] = np.uint64(4)


@njit(cache=True)
def draw_word(stream: Array) -> np.uint64:
    """Return the next 32-bit word of the stream."""
    used: Any = np.int64(stream[_USED])
    if used == 4:
        words = philox(
            stream[_BLOCK],
            stream[_PURPOSE],
            stream[_INDEX],
            stream[_INDEX + 1],
            stream[_KEY],
            stream[_KEY + 1],
        )
        stream[_WORDS], stream[_WORDS + 1], stream[_WORDS + 2], stream[_WORDS + 3] = words
        stream[_BLOCK] += ONE
        used = 0
    stream[_USED] = np.uint64(used + 1)
    return stream[_WORDS + used]


@njit(cache=True)
def uniform(stream: Array) -> float:
    """Return a number in [0, 1), a multiple of 2**-32."""
    return np.float64(draw_word(stream)) * (1.0 / 4294967296.0)


@njit(cache=True)
def integer(stream: Array, bound: int) -> int:
    """Return a whole number in [0, bound); the bias, below bound / 2**32, is left in."""
    word = draw_word(stream) * np.uint64(bound)
    return np.int64(word >> SHIFT)  # type: ignore[return-value]  # int() would stay unsigned


@njit(cache=True)
def balanced_labels(seed: int, indices: Array, labels: Array) -> None:
    """Label images so that of 2j and 2j + 1 exactly one is positive, by a coin of pair j."""
    stream = np.empty(STREAM_SIZE, np.uint64)
    for row in range(indices.size):
        open_stream(stream, seed, indices[row] >> 1, LABEL)
        coin = np.int64(draw_word(stream) & ONE)
        labels[row] = coin ^ (indices[row] & 1)
