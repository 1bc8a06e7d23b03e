"""Published measurements near to the contour experiment, from digitised figures.

Neither is the experiment that the paper compares with, Li and Gilbert (2002), whose numbers are not
published. They come with other stimuli, and one with other animals and no answers at all; hence
they have names and axes of their own. No data come with this package: a user gives the files, CSV
whose last comment above the first row names the columns.

==========================================  =====================================================
``relation,x,monkey_MA,monkey_MB``          contour-related gain of neurons in V1 of two macaques
                                            (Li, Piech and Gilbert, 2006); relation is
                                            length_in_bars or relative_colinear_distance
``duration_s,observer,angle,                proportion of correct answers of two people against
proportion_correct``                        the angle from element to element of a path, in
                                            degrees (Field, Hayes and Hess, 1993)
==========================================  =====================================================
"""

import os
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

from hgru_vision.analysis.tables import read_table

__all__ = ["PathAngle", "V1Gain", "read_path_angle", "read_v1_gain"]

Key = TypeVar("Key", bound=Hashable)
Points = tuple[tuple[float, float], ...]
LENGTH, DISTANCE = "length_in_bars", "relative_colinear_distance"
_MONKEYS = ("monkey_MA", "monkey_MB")


@dataclass(frozen=True, kw_only=True)
class V1Gain:
    """Gain of neurons in macaque V1 by a contour: no answers, and no people.

    Attributes
    ----------
    by_length
        From each monkey to points (bars in the contour, gain).
    by_distance
        From each monkey to points (relative distance of collinear bars, gain).
    """

    by_length: dict[str, Points]
    by_distance: dict[str, Points]


@dataclass(frozen=True, kw_only=True)
class PathAngle:
    """Proportion of correct answers of people against path angle; spacing does not vary.

    Attributes
    ----------
    by_observer
        From each observer and duration (seconds) to points (angle in degrees, proportion).
    """

    by_observer: dict[tuple[str, float], Points]


def read_v1_gain(path: str | os.PathLike[str]) -> V1Gain:
    """Read the gain of macaque V1; the columns are told above.

    Raises
    ------
    ValueError
        Naming the file, the line and the column, and what was expected there.
    """
    found: dict[str, dict[str, list[tuple[float, float]]]] = {LENGTH: {}, DISTANCE: {}}
    for row in read_table(path, ("relation", "x", *_MONKEYS), commented_header=True):
        relation = row.name("relation")
        if relation not in found:
            raise ValueError(
                f"{row.place}, column relation: {relation!r}; {LENGTH} or {DISTANCE} is wanted"
            )
        for monkey in _MONKEYS:
            points = found[relation].setdefault(monkey.removeprefix("monkey_"), [])
            points.append((row.number("x"), row.number(monkey)))
    return V1Gain(by_length=_sorted(found[LENGTH]), by_distance=_sorted(found[DISTANCE]))


def read_path_angle(path: str | os.PathLike[str]) -> PathAngle:
    """Read people's proportion correct against path angle; the columns are told above.

    Raises
    ------
    ValueError
        Naming the file, the line and the column, and what was expected there.
    """
    columns = ("duration_s", "observer", "angle", "proportion_correct")
    found: dict[tuple[str, float], list[tuple[float, float]]] = defaultdict(list)
    for row in read_table(path, columns, commented_header=True):
        point = row.number("angle", high=180), row.number("proportion_correct", high=1)
        found[row.name("observer"), row.number("duration_s")].append(point)
    return PathAngle(by_observer=_sorted(found))


def _sorted(series: dict[Key, list[tuple[float, float]]]) -> dict[Key, Points]:
    return {key: tuple(sorted(points)) for key, points in series.items()}
