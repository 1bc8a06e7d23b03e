"""Learning curves of all runs: held-out accuracy against images, a panel a class and length."""

import re
import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgru_vision.analysis.study import Network, Study
from hgru_vision.figures.names import EVERY, display, not_run
from hgru_vision.figures.style import (
    GREY,
    PALETTE,
    NothingToDraw,
    accuracy_axis,
    footnote,
    mark,
    missing_note,
    new_figure,
    style,
)
from hgru_vision.training.result import Result

__all__ = ["curves"]

LETTERS = 20  # of a line of a name
TICK = "A tick on a curve: its stage changes."
SEVERAL = "Strong: the run of a network that is the most accurate in its test; pale: its others."

Dashes = str | tuple[int, tuple[float, ...]]
_DASHES: tuple[Dashes, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
    (0, (9, 3)),
)


def curves(study: Study) -> Figure:
    """Draw every run's curve, the most accurate of each network in full colour.

    A tick on a curve is a change of stage, where the task of the evaluations changes.
    """
    if not any(row.result.curve for row in study.rows):
        raise NothingToDraw("no run has a learning curve")
    known = {model for models in EVERY.values() for model in models}
    others = tuple(dict.fromkeys(each.model for each in study.networks if each.model not in known))
    classes = {title: study.of(models) for title, models in (EVERY | {"Other": others}).items()}
    run = set(study.networks)
    ran = {title: [each for each in every if each in run] for title, every in classes.items()}
    shown = {title: networks for title, networks in ran.items() if networks}
    with style():
        heights = [max(1.3, 0.3 + 0.125 * _lines(networks)) for networks in shown.values()]
        figure = new_figure(height=sum(heights) + 0.7)
        grid = figure.subplots(
            len(shown),
            len(study.lengths),
            sharey=True,
            squeeze=False,
            gridspec_kw={"height_ratios": heights},
        )
        lowest: dict[int, Axes] = {}  # that has curves
        for row, (name, networks) in enumerate(shown.items()):
            for column, length in enumerate(study.lengths):
                axes = grid[row, column]
                for number, network in enumerate(networks):
                    _network(axes, study, network, length, mark(number).colour, number)
                accuracy_axis(axes)
                axes.set_yticks([0.5, 0.75, 1.0])
                if any((network, length) in study.cells for network in networks):
                    lowest[length] = axes
                else:
                    axes.text(
                        0.5, 0.6, "not run", transform=axes.transAxes, ha="center", color=GREY
                    )
                    axes.set_xticks([])
                if row == 0:
                    axes.set_title(f"{length} paddles")
            grid[row, 0].set_ylabel(name)
            _names(grid[row, -1], networks)
        for axes in lowest.values():
            axes.set_xlabel("thousand images")
        footnote(figure, _note(study))
        figure.suptitle(f"{study.name}: accuracy on held-out images", fontsize=8.5)
    return figure


def _network(
    axes: Axes, study: Study, network: Network, length: int, colour: str, number: int
) -> None:
    cell = study.cells.get((network, length))
    if cell is None:
        return
    dashes = _dashes(number)
    for result in cell.results:
        images, accuracies, changes = _points(result)
        best = result is cell.best
        axes.plot(
            images,
            accuracies,
            color=colour,
            linestyle=dashes,
            marker="o" if len(images) == 1 else "",  # a line through one point is not seen
            markersize=3,
            linewidth=1.3 if best else 0.7,
            alpha=1 if best else 0.35,
            zorder=3 if best else 2,
        )
        if best:
            axes.plot(images[changes], accuracies[changes], "|", color=colour, markersize=7)


def _note(study: Study) -> str:
    cells = study.cells.values()
    results = [result for cell in cells for result in cell.results]
    said = [TICK] if any(result.curve[-1].stage for result in results if result.curve) else []
    said += [SEVERAL] if any(len(cell.results) > 1 for cell in cells) else []
    missing = missing_note(not_run(network.model for network in study.networks))
    return f"{' '.join(said)}\n{missing}".strip()


def _points(result: Result) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thousands of images and accuracies, and at which of them a stage begins."""
    stages = np.array([point.stage for point in result.curve])
    return (
        np.array([point.images / 1000 for point in result.curve]),
        np.array([point.accuracy for point in result.curve]),
        np.flatnonzero(np.diff(stages)) + 1,
    )


def _names(axes: Axes, networks: list[Network]) -> None:
    """List a row's networks beside it."""
    for number, network in enumerate(networks):
        colour, dashes = mark(number).colour, _dashes(number)
        axes.plot([], [], label=_label(network), color=colour, linestyle=dashes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), labelspacing=0.15, fontsize=6.5)


def _lines(networks: list[Network]) -> int:
    return sum(_label(network).count("\n") + 1 for network in networks)


def _label(network: Network) -> str:
    """Name a network in short lines, so that the panels stay wide.

    Within a word that fills a line alone, one may also end behind an = or a _.
    """
    words = display(network).split()
    parted = (
        re.sub(r"(?<=[=_])", " ", each) if len(each) > LETTERS - 2 else each for each in words
    )
    lines = textwrap.wrap(" ".join(parted), LETTERS, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(re.sub(r"(?<=[=_]) ", "", line) for line in lines)


def _dashes(number: int) -> Dashes:
    """Tell apart colours that come again."""
    return _DASHES[number // len(PALETTE) % len(_DASHES)]
