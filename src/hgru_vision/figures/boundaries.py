"""Precision against recall of boundary maps, with lines of equal F."""

import textwrap
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgru_vision.analysis.boundary_score import BoundaryScore
from hgru_vision.figures.style import GREY, NothingToDraw, mark, new_figure, style

__all__ = ["boundary_figure"]

SIZE = 3.9  # inches
LETTERS = 64  # in a line of the legend
EQUAL_F = np.arange(0.1, 0.95, 0.1)


def boundary_figure(scores: Mapping[str, BoundaryScore]) -> Figure:
    """Draw the precision-recall curves of one or more sets of predictions.

    A mark stands at the best threshold for the whole data set (ODS); the legend gives the F there,
    that with a threshold for each picture (OIS), and the average precision.

    Parameters
    ----------
    scores
        By the name of the predictions.
    """
    if not scores:
        raise NothingToDraw(
            "no maps were scored; `hgru eval-boundaries --json results/boundaries/NAME.json` "
            "does it"
        )
    labels = [_label(name, score) for name, score in scores.items()]
    lines = sum(label.count("\n") + 1 for label in labels)
    with style():
        figure = new_figure(0.92 * SIZE + 0.16 * lines, width=SIZE)  # room for the legend
        axes = figure.add_subplot()
        _lines_of_equal_f(axes)
        for number, (label, score) in enumerate(zip(labels, scores.values(), strict=True)):
            colour, shape = mark(number)
            some = score.recall + score.precision > 0  # nothing is predicted at high thresholds
            axes.plot(score.recall[some], score.precision[some], color=colour)
            axes.plot(score.ods.recall, score.ods.precision, shape, color=colour, label=label)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="recall", ylabel="precision", aspect="equal")
        axes.set_xticks(np.linspace(0, 1, 6))
        axes.set_yticks(np.linspace(0, 1, 6))
        figure.legend(loc="outside upper left", handlelength=1)
    return figure


def _label(name: str, score: BoundaryScore) -> str:
    numbers = f"ODS {score.ods.f:.3f}, OIS {score.ois.f:.3f}, AP {score.average_precision:.3f}"
    return textwrap.fill(f"{name}: {numbers}", LETTERS)


def _lines_of_equal_f(axes: Axes) -> None:
    for f in EQUAL_F:
        recall = np.linspace(f / (2 - f), 1, 200)  # from precision 1 to recall 1
        axes.plot(
            recall, f * recall / (2 * recall - f), color=GREY, linewidth=0.5, alpha=0.55, zorder=0
        )
        axes.annotate(
            f"F {f:.1f}" if f > 0.85 else f"{f:.1f}",
            (1, f / (2 - f)),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=6.5,
            color=GREY,
            annotation_clip=False,
        )
