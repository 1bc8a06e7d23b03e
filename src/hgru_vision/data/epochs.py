"""The order of items that come again and again."""

from functools import lru_cache

import numpy as np

__all__ = ["shuffled"]


def shuffled(position: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Give the items at positions of an endless sequence of epochs, each in an order of its own.

    Examples
    --------
    >>> sorted(shuffled(np.arange(3, 6), 3, seed=0).tolist())
    [0, 1, 2]
    """
    epochs, place = np.divmod(position, count)
    items = np.empty_like(position)
    for epoch in np.unique(epochs):
        here = epochs == epoch
        items[here] = _order(count, seed, int(epoch))[place[here]]
    return items


@lru_cache(maxsize=4)
def _order(count: int, seed: int, epoch: int) -> np.ndarray:
    # The bits of Philox are fixed for all time; the algorithm of numpy's `permutation` is not.
    bits = np.random.Philox(key=np.array([seed, epoch], np.uint64)).random_raw(count)
    return np.argsort(bits, kind="stable")
