"""Every run's accuracy, seed by seed, and how many of them failed."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgru_vision.analysis.study import LEARNT, Network, Study
from hgru_vision.figures.names import display, not_run
from hgru_vision.figures.style import (
    FAMILY_MARKS,
    GREY,
    NothingToDraw,
    accuracy_axis,
    family,
    footnote,
    missing_note,
    new_figure,
    style,
)

__all__ = ["seeds"]

DIVERGED = 0.43  # left of chance, where no accuracy is
SPREAD = 0.13  # between the dots of a network at most, of the distance of two networks
BAND = 0.8  # that all dots of a network keep to


def seeds(study: Study) -> Figure:
    """Draw a dot a run, by network and length, and count the runs that did not learn."""
    networks = study.networks
    if not networks:
        raise NothingToDraw("there is no run")
    with style():
        note = missing_note(not_run(network.model for network in networks))
        figure = new_figure(height=1.47 + 0.17 * len(networks) + 0.12 * len(note.splitlines()))
        footnote(figure, note)
        grid = figure.subplots(1, len(study.lengths), sharey=True, squeeze=False)[0]
        for length, axes in zip(study.lengths, grid, strict=True):
            for height, network in enumerate(networks):
                _runs(axes, study, network, length, height)
            accuracy_axis(axes, along="x")
            axes.set_xlim(0.4, 1.22)
            axes.axvline(LEARNT, color=GREY, linewidth=0.6, linestyle=":", zorder=1)
            axes.set_title(f"{length} paddles")
            axes.set_xlabel("accuracy of each run")
            axes.tick_params(axis="y", length=0)
        grid[0].set_yticks(range(len(networks)), [display(network) for network in networks])
        grid[0].set_ylim(len(networks) - 0.4, -0.6)
        figure.suptitle(
            f"{study.name}\na dot a run; x: diverged; 2/5: of 5 runs 2 diverged or ended "
            f"below {LEARNT:.0%}",
            fontsize=8,
        )
    return figure


def _runs(axes: Axes, study: Study, network: Network, length: int, height: int) -> None:
    cell = study.cells.get((network, length))
    if cell is None:
        if network.variant:  # such as a start from weights of one length, which is for that alone
            return
        axes.text(1.04, height, "not run", va="center", fontsize=6.5, color=GREY)
        return
    colour = FAMILY_MARKS[family(network.model)].colour
    ended = cell.values("accuracy")
    step = min(SPREAD, BAND / max(1, len(ended)))
    beside = step * (np.arange(len(ended)) - (len(ended) - 1) / 2)
    axes.plot(ended, height + beside, "o", color=colour, markersize=3, alpha=0.6)
    diverged = len(cell.rows) - len(ended)
    if diverged:
        axes.plot([DIVERGED] * diverged, [height] * diverged, "x", color=colour, markersize=4)
    rate = cell.failures
    axes.text(
        1.04,
        height,
        f"{rate.failed}/{rate.runs}",
        va="center",
        fontsize=6.5,
        color="k" if rate.failed else GREY,
        weight="bold" if rate.failed else "normal",
    )
