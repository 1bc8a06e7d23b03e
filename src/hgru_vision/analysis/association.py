"""Association fields in numbers: mean weights by distance, direction and relative orientation.

All of it is measured on aligned kernels (see `hgru_vision.analysis.eigenconnectivity.align`), in
which the preferred axis of the sending channel is vertical.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hgru_vision.stimuli._types import Array, Floats

__all__ = ["Association", "Estimate", "Profile", "measure_association", "relative_orientation"]

WEDGE = np.deg2rad(22.5)
"""Places within this angle of an axis lie along it; orientations within it of each other are alike,
and orthogonal within it of 90 degrees: a quarter of the way from one to the other."""

ANGLE_STEP = 15.0  # degrees; that of the input stage's Gabors
LEAST_PAIRS = 3  # of fewer the bootstrap knows no spread
RESAMPLES = 1000
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A difference of means with its 95 % bootstrap interval; nan with fewer than three pairs."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Tell whether the interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


class Profile(NamedTuple):
    """Mean weights along a variable, with 95 % bootstrap intervals; all float64 (n,)."""

    at: Floats
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Association:
    """How weights depend on where a channel sends from, and on its orientation.

    Like pairs are channels whose orientations differ by at most 22.5 degrees, orthogonal pairs by
    at least 67.5. Places are along the sending channel's axis, or across it, if they lie within
    22.5 degrees of it.

    Parameters
    ----------
    along, across, around
        By distance in pixels, of like pairs: along the axis, across it, and in all directions.
    along_by_angle, across_by_angle
        By relative orientation in steps of 15 degrees from 0 to 90, over all distances but 0. Steps
        with fewer than three pairs are left out.
    collinearity
        Along minus across, of like pairs: positive in an association field.
    likeness
        Like minus orthogonal pairs, along the axis: positive in an association field.
    nearness
        Distances up to half of the radius minus those beyond, of like pairs, in all directions:
        positive where a near surround excites more than a far one.
    """

    along: Profile
    across: Profile
    around: Profile
    along_by_angle: Profile
    across_by_angle: Profile
    collinearity: Estimate
    likeness: Estimate
    nearness: Estimate


def relative_orientation(orientations: Floats) -> Floats:
    """Give the angle between the orientations of each two channels, from 0 to pi/2.

    Shape
    -----
    orientations : (n,); output : (n, n)

    Examples
    --------
    >>> np.rad2deg(relative_orientation(np.deg2rad([10.0, 170.0]))).round().tolist()
    [[0.0, 20.0], [20.0, 0.0]]
    """
    turn = abs(orientations[:, None] - orientations) % np.pi
    return np.minimum(turn, np.pi - turn)


def measure_association(
    aligned: Floats, orientations: Floats, disc: npt.NDArray[np.bool_], *, seed: int = 0
) -> Association:
    """Measure the profiles of aligned kernels.

    Parameters
    ----------
    aligned
        Kernels by receiving and sending channel, the sending channel's axis vertical.
    orientations
        Of the channels, radians.
    disc
        Places that count.
    seed
        Of the bootstrap.

    Notes
    -----
    Kernels that share a channel are not independent, and those of (i, j) and (j, i) may be the same
    kernel. So channels are resampled, not kernels: a pair counts as often as its two channels were
    drawn together, and a channel's kernel to itself as often as the channel was. Intervals err on
    the wide side, up to the root of three if kernels are independent in truth (Owen, 2007, Ann.
    Appl. Stat. 1:386, on resampling rows and columns).

    Shape
    -----
    aligned : (n, n, S, S); orientations : (n,); disc : (S, S)
    """
    offsets = np.arange(len(disc)) - (len(disc) - 1) / 2
    distance = np.hypot(offsets[:, None], offsets)
    off_axis = np.arctan2(abs(offsets), abs(offsets)[:, None])  # 0 up and down, pi/2 to the sides
    ring = np.floor(distance + 0.5).astype(int)
    slack = 1e-9  # rounding must not decide at the border of a class
    sectors = {
        "along": disc & (distance > 0) & (off_axis <= WEDGE + slack),
        "across": disc & (distance > 0) & (off_axis >= np.pi / 2 - WEDGE - slack),
        "around": disc,
    }
    near = disc & (distance <= distance[disc].max() / 2)

    between = relative_orientation(orientations)
    like = between <= WEDGE + slack
    orthogonal = between >= np.pi / 2 - WEDGE - slack
    steps = np.floor(np.rad2deg(between) / ANGLE_STEP + 0.5).astype(int)

    counts = _counts(len(aligned), seed)

    def cell(places: npt.NDArray[np.bool_], pairs: npt.NDArray[np.bool_]) -> Floats:
        """Mean over some places of some pairs' kernels, (1 + RESAMPLES,); nan if they are few."""
        if np.triu(pairs).sum() < LEAST_PAIRS:
            return np.full(1 + RESAMPLES, np.nan)
        means = np.where(pairs, aligned[:, :, places].mean(axis=2), 0)
        number = _sum_over_pairs(counts, pairs.astype(float))
        missing = np.full_like(number, np.nan)
        return np.divide(_sum_over_pairs(counts, means), number, out=missing, where=number > 0)

    def by_distance(name: str) -> Profile:
        rings = [r for r in np.unique(ring[disc]) if (sectors[name] & (ring == r)).any()]
        cells = [cell(sectors[name] & (ring == r), like) for r in rings]
        return _profile(np.array(rings, float), cells)

    def by_angle(name: str) -> Profile:
        cells = {each: cell(sectors[name], steps == each) for each in np.unique(steps)}
        enough = [each for each in cells if np.isfinite(cells[each][0])]
        return _profile(ANGLE_STEP * np.array(enough), [cells[each] for each in enough])

    along, across = (cell(sectors[name], like) for name in ("along", "across"))
    return Association(
        along=by_distance("along"),
        across=by_distance("across"),
        around=by_distance("around"),
        along_by_angle=by_angle("along"),
        across_by_angle=by_angle("across"),
        collinearity=_estimate(along - across),
        likeness=_estimate(along - cell(sectors["along"], orthogonal)),
        nearness=_estimate(cell(near, like) - cell(disc & ~near, like)),
    )


def _counts(channels: int, seed: int) -> Floats:
    """How often each channel counts, (1 + RESAMPLES, n): once in the data, then as drawn."""
    drawn = np.random.default_rng(seed).integers(channels, size=(RESAMPLES, channels))
    counts = (drawn[:, :, None] == np.arange(channels)).sum(axis=1)
    return np.vstack([np.ones(channels), counts])


def _sum_over_pairs(counts: Floats, values: Array) -> Floats:
    """Sum (n, n) values, each as often as its two channels count; (1 + RESAMPLES,)."""
    total: Floats = ((counts @ values) * counts).sum(axis=1)
    # A channel drawn twice is two channels alike, each of which has one kernel to itself.
    return total - (counts**2 - counts) @ np.diag(values)


def _estimate(cell: Floats) -> Estimate:
    drawn = cell[1:][np.isfinite(cell[1:])]  # a resample may lack such pairs
    if not drawn.size:
        return Estimate(np.nan, np.nan, np.nan)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(cell[0]), float(low), float(high))


def _profile(at: Floats, cells: list[Floats]) -> Profile:
    return Profile(at, *np.array([_estimate(cell) for cell in cells]).T)
