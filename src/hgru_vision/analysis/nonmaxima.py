"""Suppression of non-maxima: of a broad response to an edge, its crest is kept."""

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from hgru_vision.stimuli._types import Array, Floats

__all__ = ["suppress_nonmaxima"]

SMOOTHING = 2.0  # pixels, of the map whose curvature tells the direction across an edge
TOLERANCE = 1.01  # a pixel may be so much below its neighbours and stay: a crest is seldom smooth


def suppress_nonmaxima(boundaries: Array) -> Floats:
    """Set a boundary map to 0 wherever it is larger one pixel further across the edge.

    The direction across an edge is that in which the smoothed map is curved most (an eigenvector
    of its Hessian). The two neighbours are interpolated.

    Parameters
    ----------
    boundaries
        Probabilities of a boundary.

    Shape
    -----
    boundaries, output : (H, W)

    Examples
    --------
    >>> broad = np.exp(-((np.arange(9.0) - 4) ** 2) / 8) * np.ones((9, 1))
    >>> np.flatnonzero(suppress_nonmaxima(broad)[4]).tolist()
    [4]
    """
    values = np.asarray(boundaries, np.float64)
    down, across, both = (
        gaussian_filter(values, SMOOTHING, order, mode="nearest")
        for order in ((2, 0), (0, 2), (1, 1))
    )
    # Half the angle of (f_xx - f_yy, 2 f_xy) points along the larger eigenvalue, which has the
    # larger size where their sum is positive: on the flanks of a crest. On the crest it is the
    # other, at right angles.
    angle = 0.5 * np.arctan2(2 * both, across - down)
    angle += np.where(across + down < 0, np.pi / 2, 0)
    row, column = np.indices(values.shape)
    steps = np.sin(angle), np.cos(angle)
    neighbours = (
        map_coordinates(
            values, [row + side * steps[0], column + side * steps[1]], order=1, mode="nearest"
        )
        for side in (-1, 1)
    )
    crest = np.logical_and.reduce([values * TOLERANCE >= each for each in neighbours])
    return np.where(crest, values, 0.0)
