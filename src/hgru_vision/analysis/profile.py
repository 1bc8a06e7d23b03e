"""Accuracy against a property of the images, in bins that hold equally many of them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hgru_vision.intervals import wilson_interval

__all__ = ["Bin", "accuracy_by_quantile"]


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Accuracy on the images whose property is from `start` to `end`, with its 95 % interval."""

    start: float
    end: float
    accuracy: float
    low: float
    high: float
    n: int


def accuracy_by_quantile(
    values: npt.ArrayLike, right: npt.ArrayLike, bins: int = 8
) -> tuple[Bin, ...]:
    """Split images at the quantiles of a property, and give the accuracy in each part.

    Parameters
    ----------
    values
        The property of each image, (n,).
    right
        Whether each was right, (n,) of bool.
    bins
        How many parts; where many images share a value, or there are fewer images, there are fewer.

    Examples
    --------
    >>> parts = accuracy_by_quantile([1, 2, 3, 4], [True, True, True, False], bins=2)
    >>> [(part.start, part.end, part.accuracy) for part in parts]
    [(1.0, 2.5, 1.0), (2.5, 4.0, 0.5)]
    """
    values, right = np.asarray(values, np.float64), np.asarray(right)
    if values.ndim != 1 or right.shape != values.shape or right.dtype != np.bool_:
        raise ValueError(
            f"right must be bool of the shape of values, {values.shape}; got {right.dtype} of "
            f"shape {right.shape}"
        )
    if len(values) == 0:
        raise ValueError("there is no image to split")
    if bins < 1:
        raise ValueError(f"bins must be 1 or more; got {bins}")
    edges = np.unique(np.quantile(values, np.linspace(0, 1, min(bins, len(values)) + 1)))
    if len(edges) == 1:
        edges = np.repeat(edges, 2)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    parts = []
    for number, (start, end) in enumerate(pairwise(edges.tolist())):
        here = right[place == number]
        if len(here):
            low, high = wilson_interval(int(here.sum()), len(here))
            accuracy = float(here.mean())
            parts.append(
                Bin(start=start, end=end, accuracy=accuracy, low=low, high=high, n=len(here))
            )
    return tuple(parts)
