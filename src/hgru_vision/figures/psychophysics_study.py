"""The contour study in one figure: accuracy against relative spacing, and published neighbours.

The neighbours are measurements of other things (gain of neurons, path angle), with other stimuli.
They are drawn on axes of their own, under their own names, and never over the network's accuracy.
"""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgru_vision.analysis.psychometric import Shape
from hgru_vision.analysis.psychophysics import Score, can_be_fitted, fit_scores
from hgru_vision.analysis.psychophysics_findings import BEYOND
from hgru_vision.analysis.psychophysics_neighbours import PathAngle, Points, V1Gain
from hgru_vision.analysis.psychophysics_study import pooled
from hgru_vision.analysis.study import Network
from hgru_vision.figures.names import display
from hgru_vision.figures.psychophysics import lowest_shown
from hgru_vision.figures.style import (
    LIGHT,
    WIDTH,
    NothingToDraw,
    accuracy_axis,
    footnote,
    mark,
    missing_note,
    new_figure,
    style,
)
from hgru_vision.papers import linsley2018

COLUMNS = 3
SIDE_BY_SIDE = 0.008  # of the axis, between lengths
BARS = "Bars of several runs go from the worst to the best."
SOURCES = (
    "Gain: Li, Piech and Gilbert (2006), neurons, not answers. Path angle: Field, Hayes and Hess "
    "(1993), other stimuli. Both digitised from figures; neither is the experiment of Li and "
    "Gilbert (2002)."
)
UNSHEARED = linsley2018.GRID_CELL * math.sqrt(2)  # degrees


def contour_study_figure(
    scores: Sequence[Score],
    *,
    fit: Shape | None = "weibull",
    unsheared: float = UNSHEARED,
    v1_gain: V1Gain | None = None,
    path_angle: PathAngle | None = None,
    missing: Sequence[str] = (),
) -> Figure:
    """Draw accuracy against relative spacing, a curve for each length, a panel for each observer.

    Bars are 95 % Wilson intervals over the answers of a condition; where one has several runs, they
    go from the worst of these to the best: separate trainings differ by more. Lengths stand side by
    side, so that no bar hides another. Conditions from `BEYOND` degrees on are too far away to be
    drawn, and stand below in words.

    Parameters
    ----------
    scores
        See `scores_of_rows`, `score_two_alternatives` and `read_scores`.
    fit
        Shape of the psychometric functions; None joins the points. Curves of fewer than three
        spacings, or of unknown numbers of trials, are joined in any case.
    unsheared
        Spacing in degrees that counts as 1: of the paper's grid without shear, if not given.
    v1_gain
        Draw the gain of neurons in macaque V1 in panels of its own; see `read_v1_gain`.
    path_angle
        Draw people's answers against path angle in a panel of its own; see `read_path_angle`.
    missing
        What was not run, to be named below.

    Examples
    --------
    >>> scores = [Score(observer="hgru", length=9, spacing=x, proportion=1 - x, trials=50)
    ...           for x in (0.27, 0.35, 0.47)]
    >>> [axes.get_title("left") for axes in contour_study_figure(scores).axes]
    ['hGRU']
    """
    if not scores:
        raise NothingToDraw("there are no scores to draw")
    far = [score for score in scores if score.spacing >= BEYOND]
    scores = [score for score in scores if score.spacing < BEYOND] or far
    observers = list(dict.fromkeys(score.observer for score in scores))
    lengths = sorted({score.length for score in scores})
    gains = [] if v1_gain is None else [
        (points, against)
        for points, against in (
            (v1_gain.by_distance, "relative distance of bars"),
            (v1_gain.by_length, "bars in the contour"),
        )
        if points
    ]  # fmt: skip
    neighbours = len(gains) + (1 if path_angle else 0)
    number = len(observers) + neighbours
    columns = 2 if number == 4 else min(COLUMNS, number)
    rows = math.ceil(number / columns)
    with style():
        figure = new_figure(height=0.5 + 2.4 * rows, width=WIDTH if columns > 1 else 4.2)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[number:]:
            axes.remove()
        panels = iter(grid.flat)
        shown: dict[str, Artist] = {}
        for observer in observers:
            own = [score for score in scores if score.observer == observer]
            axes = next(panels)
            _accuracies(axes, observer, own, lengths, fit, unsheared)
            shown |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        names = [f"{length} paddles" for length in lengths]
        figure.legend([shown[name] for name in names], names, loc="outside upper left", ncols=6)
        if gains:
            for points, against in gains:
                _gain(next(panels), points, against)
        if path_angle:
            _angles(next(panels), path_angle)
        letters = 125 if columns > 1 else 72  # in a line below
        words = (
            missing_note(missing, letters),
            BARS if len(pooled(scores)) < len(scores) else "",
            textwrap.fill(_in_words(far), letters) if far != scores else "",
            textwrap.fill(SOURCES, letters) if neighbours else "",
        )
        footnote(figure, "\n".join(filter(None, words)))
    return figure


def _in_words(far: Sequence[Score]) -> str:
    """Say what came of conditions that are not drawn."""
    several = len({score.observer for score in far}) > 1
    return "; ".join(
        (f"{display(Network(score.observer))}, " if several else "")
        + f"{score.length} paddles {score.spacing:.2f}° apart: {score.proportion:.1%}"
        for score in pooled(far)
    )


def _accuracies(
    axes: Axes,
    observer: str,
    scores: Sequence[Score],
    lengths: Sequence[int],
    fit: Shape | None,
    unsheared: float,
) -> None:
    for number, length in enumerate(lengths):
        runs = [score for score in scores if score.length == length]
        if not runs:
            continue
        colour, shape = mark(number)
        aside = SIDE_BY_SIDE * (number - (len(lengths) - 1) / 2)
        points = sorted(pooled(runs), key=lambda score: score.spacing)
        level = np.array([score.spacing for score in points]) / unsheared
        share = np.array([score.proportion for score in points])
        ends = np.array([_ends(point, runs) for point in points])
        line = "-"
        if fit is not None and can_be_fitted(points):
            curve = fit_scores(points, shape=fit, confidence=None).curve
            smooth = np.linspace(level[0], level[-1], 101)
            axes.plot(smooth, curve(smooth * unsheared), color=colour)
            line = "none"
        axes.errorbar(
            level + aside,
            share,
            yerr=np.abs(ends - share[:, None]).T,
            color=colour,
            marker=shape,
            linestyle=line,
            elinewidth=0.8,
            label=f"{length} paddles",
        )
    accuracy_axis(axes, low=lowest_shown(scores))
    axes.set(
        title=display(Network(observer)), xlabel="relative spacing of paddles", ylabel="correct"
    )


def _ends(point: Score, runs: Sequence[Score]) -> tuple[float, float]:
    """Give the ends of a bar: the worst and the best of several runs, or the interval of one."""
    shares = [run.proportion for run in runs if run.spacing == point.spacing]
    if len(shares) > 1:
        return min(shares), max(shares)
    return point.interval or (point.proportion, point.proportion)


def _gain(axes: Axes, series: dict[str, Points], against: str) -> None:
    for number, (monkey, points) in enumerate(series.items()):
        _line(axes, points, number, f"monkey {monkey}")
    axes.axhline(1, color=LIGHT, zorder=1)
    axes.set(title="Macaque V1: neural gain", xlabel=against, ylabel="contour-related gain")
    _legend(axes)


def _angles(axes: Axes, people: PathAngle) -> None:
    for number, ((observer, seconds), points) in enumerate(people.by_observer.items()):
        _line(axes, points, number, f"{observer}, {seconds:g} s")
    accuracy_axis(axes)
    axes.set(
        title="People: path angle",
        xlabel="angle of the path (degrees)",
        ylabel="proportion correct",
    )
    _legend(axes)


def _legend(axes: Axes) -> None:
    """Put a legend where fewest points are; the line at chance does not run through it."""
    axes.legend(loc="best", frameon=True, framealpha=1, edgecolor="none", borderpad=0.2)


def _line(axes: Axes, points: Points, number: int, label: str) -> None:
    """Draw a neighbour: open marks and broken lines, unlike any network."""
    colour, shape = mark(number)
    x, y = zip(*points, strict=True)
    axes.plot(
        x, y, linestyle="--", marker=shape, color=colour, markerfacecolor="white", label=label
    )
