"""Panels of a measure against path length, one for each class of networks."""

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from hgru_vision.analysis.study import Network, Study
from hgru_vision.figures.names import Panels, short
from hgru_vision.figures.style import (
    CHANCE,
    GREY,
    WIDTH,
    Mark,
    NothingToDraw,
    accuracy_axis,
    footnote,
    mark,
    missing_note,
    new_figure,
    style,
)
from hgru_vision.papers.linsley2018 import RUNS

__all__ = ["Measure", "draw_panels", "figure_of_panels", "key", "require"]

Measure = Literal["accuracy", "alc"]
LEAST_WIDTH = 3.4  # inches: what two entries of the key need
WIDE_KEY = 5.2  # inches: what all four need
DODGE = 0.09  # of a step in length, so that networks of equal accuracy are seen side by side


def require(study: Study, panels: Panels, measure: Measure) -> None:
    """Refuse a study that has the measure of none of the networks."""
    models = {model for names in panels.values() for model in names}
    cells = [cell for (network, _), cell in study.cells.items() if network.model in models]
    if not cells:
        raise NothingToDraw("none of its networks was run")
    if not any(cell.values(measure) for cell in cells):
        raise NothingToDraw(f"no run of its networks has an {_name(study, measure)}")


def _name(study: Study, measure: Measure) -> str:
    return study.name_of_alc if measure == "alc" else "accuracy on test images"


def figure_of_panels(
    study: Study, panels: Panels, measure: Measure, columns: int, width: float = WIDTH
) -> Figure:
    """Draw a figure of panels, as wide as it has columns."""
    require(study, panels, measure)
    with style():
        shown = _run(study, panels)
        names = max(len(study.of(models)) for models in shown.values())
        rows = -(-len(shown) // columns)
        share = min(1, len(shown) / columns)
        figure = new_figure(0.6 + rows * (2.05 + 0.14 * names), max(LEAST_WIDTH, share * width))
        draw_panels(figure, study, panels, measure, columns)
        key(figure, study, measure)
    return figure


def draw_panels(
    figure: FigureBase, study: Study, panels: Panels, measure: Measure, columns: int
) -> None:
    """Draw a panel for each class: the best run of a network, and mean and deviation over runs.

    Classes of which nothing was run are named below.
    """
    shown = _run(study, panels)
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    letters = max(60, 42 * columns)  # in a line below
    footnote(figure, missing_note([each for each in panels if each not in shown], letters))
    for place, axes in enumerate(grid.flat):
        if place >= len(shown):
            axes.set_axis_off()
            continue
        title, models = list(shown.items())[place]
        _panel(axes, study, title, models, measure)
        accuracy_axis(axes)
        if place % columns == 0:
            axes.set_ylabel(_name(study, measure))


def _run(study: Study, panels: Panels) -> Panels:
    """Give the classes of which some network was run."""
    run = {network.model for network in study.networks}
    return {title: models for title, models in panels.items() if run & set(models)}


def _panel(axes: Axes, study: Study, title: str, models: tuple[str, ...], measure: Measure) -> None:
    networks = study.of(models)
    shifts = (np.arange(len(networks)) - (len(networks) - 1) / 2) * DODGE
    for number, network in enumerate(networks):
        _network(axes, study, network, mark(number), shifts[number], measure)
        name = short(network, title)
        missing = study.missing(network)
        colour, shape = mark(number)
        if missing == study.lengths:
            axes.plot([], [], " ", label=f"{name}: not run")
        else:
            lengths = ", ".join(map(str, missing))
            note = f" (not run: {lengths})" if missing else ""
            axes.plot([], [], shape, color=colour, linestyle="-", label=name + note)
    if measure == "accuracy":
        _shortcut(axes, study)
    axes.set_title(title)
    axes.set_xticks(range(len(study.lengths)), [str(length) for length in study.lengths])
    axes.set_xlim(-0.45, len(study.lengths) - 0.55)
    axes.set_xlabel("paddles in a path")
    inches = axes.figure.dpi_scale_trans
    below = axes.transAxes + ScaledTranslation(-4 / 72, -30 / 72, inches)  # the axis' own label
    legend = axes.legend(
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=below,
        labelspacing=0.15,
        borderaxespad=0,
    )
    for text in legend.get_texts():
        if text.get_text().endswith(": not run"):
            text.set_color(GREY)


def _network(
    axes: Axes, study: Study, network: Network, look: Mark, shift: float, measure: Measure
) -> None:
    best_x, best_y = [], []
    for place, length in enumerate(study.lengths):
        cell = study.cells.get((network, length))
        if cell is None:
            best_x.append(place + shift)
            best_y.append(np.nan)
            continue
        best = cell.best_value(measure)
        best_x.append(place + shift)
        best_y.append(np.nan if best is None else best)
        if cell.best is None:
            # Every run diverged: a cross below chance, where no accuracy is.
            axes.plot(place + shift, CHANCE - 0.07, "x", color=look.colour, markersize=4)
        spread = cell.mean_and_sd(measure)
        if spread is not None and len(cell.values(measure)) > 1:
            mean, sd = spread
            axes.errorbar(
                place + shift,
                mean,
                sd,
                color=look.colour,
                linewidth=0.9,
                capsize=1.5,
                marker="_",
                markersize=4,
                alpha=0.55,
            )
    axes.plot(best_x, best_y, linestyle="-", marker=look.shape, color=look.colour, zorder=3)


def _shortcut(axes: Axes, study: Study) -> None:
    """Draw what the label can be read with without following a path."""
    for place, length in enumerate(study.lengths):
        accuracy = study.shortcut(length)
        if accuracy is not None:
            ends = [place - 0.4, place + 0.4]
            axes.plot(ends, [accuracy] * 2, ":", color=GREY, linewidth=1.2, zorder=4)


def key(figure: Figure | SubFigure, study: Study, measure: Measure) -> None:
    """Say above the panels what the marks mean."""
    runs = [len(cell.rows) for cell in study.cells.values()]
    fewest, most = min(*runs, RUNS), min(max(runs), RUNS)
    count = f"{most}" if fewest == most else f"{fewest} to {most}"
    name = "the only run" if most == 1 else f"best of {count} runs"
    handles = [Line2D([], [], color="k", marker="o", label=name)]
    if most > 1:
        handles.append(
            Line2D([], [], color="k", marker="_", alpha=0.55, ls="", label="mean ± sd of runs")
        )
    if measure == "accuracy" and any(study.shortcut(length) for length in study.lengths):
        handles.append(Line2D([], [], color=GREY, linestyle=":", label="read without a path"))
    if any(cell.best is None for cell in study.cells.values()):
        handles.append(Line2D([], [], color="k", marker="x", linestyle="", label="all diverged"))
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=2 if figure.bbox.width / figure.dpi < WIDE_KEY else 4,
        title=study.name,
        alignment="left",
        title_fontproperties={"weight": "bold", "size": 8.5},
    )
