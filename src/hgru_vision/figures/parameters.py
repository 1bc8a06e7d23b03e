"""Fig. 3c: accuracy on the longest paths against the size of the network."""

from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from hgru_vision.analysis.study import Network, Study
from hgru_vision.figures.names import MAIN, Panels, display, own
from hgru_vision.figures.style import (
    FAMILY_MARKS,
    NothingToDraw,
    accuracy_axis,
    family,
    footnote,
    missing_note,
    new_figure,
    place_labels,
    style,
)
from hgru_vision.models.catalogue import CATALOGUE

__all__ = ["draw_against_parameters", "parameters"]

NEAR_CHANCE = 0.55
"""Networks below are too many in one place to be named beside their marks."""


def parameters(study: Study) -> Figure:
    """Draw the best run's accuracy on the longest paths against the multiple of the hGRU's size."""
    with style():
        figure = new_figure(height=4.2)
        draw_against_parameters(figure, study, MAIN | {"Own": own(study)})
    return figure


def draw_against_parameters(figure: FigureBase, study: Study, panels: Panels) -> None:
    """Draw the networks of some panels, two or more.

    Those near chance are named below the figure, as are those that were not run.
    """
    length = study.lengths[-1]
    models = dict.fromkeys(model for names in panels.values() for model in names)
    points: list[tuple[float, float, Network]] = []
    absent: list[Network] = []
    diverged: list[Network] = []
    families = set()
    for network in study.of(models):
        cell = study.cells.get((network, length))
        best = cell.best_value("accuracy") if cell is not None else None
        if cell is None or best is None:
            (absent if cell is None else diverged).append(network)
            continue
        families.add(family(network.model))
        multiple = cell.parameters / CATALOGUE["hgru"].parameters
        points.append((multiple, best, network))
    if len({network.model for _, _, network in points}) < 2:
        number = "only one" if points else "none"
        raise NothingToDraw(
            f"{number} of its networks has an accuracy on paths of {length} paddles"
        )
    axes = figure.subplots()
    multiples = [multiple for multiple, _, _ in points]
    names = []
    low = []
    for multiple, best, network in points:
        colour, shape = FAMILY_MARKS[family(network.model)]
        axes.plot(multiple, best, shape, color=colour, markersize=5.5, markeredgecolor="white")
        if best < NEAR_CHANCE:
            low.append(network)
        else:
            names.append((multiple, best, display(network), colour))
    accuracy_axis(axes)
    axes.set(
        xscale="log",
        xlabel="parameters, as a multiple of the hGRU's",
        ylabel=f"accuracy, paths of {length} paddles",
        xlim=(min(0.15, min(multiples) / 2), max(3000, 2 * max(multiples))),  # those of the paper
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_title(f"{study.name}; best run of each network")
    axes.legend(
        handles=[
            Line2D([], [], color=colour, marker=shape, linestyle="", label=name)
            for name, (colour, shape) in FAMILY_MARKS.items()
            if name in families
        ],
        loc="upper left",
        bbox_to_anchor=(1, 1),
    )
    notes = (
        missing_note([display(network) for network in networks], said=said)
        for said, networks in (
            (f"below {NEAR_CHANCE:.0%}", low),
            ("diverged", diverged),
            ("not run", absent),
        )
    )
    footnote(figure, "\n".join(note for note in notes if note))
    place_labels(axes, names)
