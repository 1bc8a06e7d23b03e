"""Contour detection by networks beside people: accuracy against spacing, or against length."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgru_vision.analysis.psychometric import Shape
from hgru_vision.analysis.psychophysics import Along, Score, alike, can_be_fitted, fit_scores
from hgru_vision.figures.style import (
    NothingToDraw,
    accuracy_axis,
    mark,
    new_figure,
    style,
)

COLUMNS = 4
_LABELS = {
    "spacing": "spacing of paddles (degrees)",
    "length": "paddles in the contour",
}


def psychophysics_figure(
    networks: Sequence[Score],
    people: Sequence[Score] = (),
    *,
    along: Along = "spacing",
    fit: Shape | None = None,
) -> Figure:
    """Draw accuracy against spacing with a panel for each length, or the other way round.

    Networks have filled marks, people open ones. Bars are 95 % Wilson intervals, where the number
    of trials is known.

    Parameters
    ----------
    networks, people
        Their scores; see `score_two_alternatives` and `read_scores`.
    along
        What the horizontal axis shows.
    fit
        Draw psychometric functions of this shape, in place of lines from point to point, where
        numbers of trials are known and there are three levels or more.

    Examples
    --------
    >>> scores = [Score(observer="hGRU", length=9, spacing=x, proportion=1 - x, trials=50)
    ...           for x in (0.27, 0.35, 0.47)]
    >>> [axes.get_title("left") for axes in psychophysics_figure(scores).axes]
    ['9 paddles']
    """
    scores = [*networks, *people]
    if not scores:
        raise NothingToDraw("there are no scores to draw")
    spacings = alike(score.spacing for score in scores)

    def panel_of(score: Score) -> float:
        return score.length if along == "spacing" else spacings[score.spacing]

    panels = sorted({panel_of(score) for score in scores})
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    with style():
        figure = new_figure(height=0.6 + 2.1 * rows, width=max(3.2, 1.75 * columns))
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        for value, axes in zip(panels, grid.flat, strict=False):
            axes.set(title=f"{value} paddles" if along == "spacing" else f"{value:.2f}°")
            accuracy_axis(axes, low=lowest_shown(scores))
        number = 0
        handles: dict[tuple[str, bool], Artist] = {}
        for group, person in ((networks, False), (people, True)):
            for observer in dict.fromkeys(score.observer for score in group):
                for value, axes in zip(panels, grid.flat, strict=False):
                    chosen = [s for s in group if (s.observer, panel_of(s)) == (observer, value)]
                    if chosen:
                        handles[observer, person] = _draw(axes, chosen, along, fit, number, person)
                number += 1
        figure.supxlabel(_LABELS[along], fontsize=8)
        figure.supylabel("correct", fontsize=8)
        names = [observer for observer, _ in handles]
        figure.legend(list(handles.values()), names, loc="outside upper left", ncols=4)
    return figure


def lowest_shown(scores: Sequence[Score]) -> float:
    """Give where an axis of accuracies begins so that the intervals of all scores are on it."""
    return min([0.4, *((s.interval or (s.proportion,))[0] - 0.03 for s in scores)])


def _draw(
    axes: Axes,
    scores: list[Score],
    along: Along,
    fit: Shape | None,
    number: int,
    person: bool,
) -> Artist:
    """Draw the scores of one observer in one panel; return what a legend shows."""
    scores = sorted(scores, key=lambda score: getattr(score, along))
    level = np.array([getattr(score, along) for score in scores], float)
    share = np.array([score.proportion for score in scores])
    ends = np.array([score.interval or (score.proportion, score.proportion) for score in scores])
    colour, shape = mark(number)
    line = "--" if person else "-"
    if fit is not None and can_be_fitted(scores, along):
        curve = fit_scores(scores, along=along, shape=fit, confidence=None).curve
        smooth = np.linspace(level[0], level[-1], 101)
        axes.plot(smooth, curve(smooth), color=colour, linestyle=line)
        line = "none"
    drawn = axes.errorbar(
        level,
        share,
        yerr=np.abs(ends - share[:, None]).T,
        color=colour,
        marker=shape,
        markerfacecolor="white" if person else colour,
        linestyle=line,
        elinewidth=0.8,
    )
    return drawn.lines[0]
