"""The picture of an audit of synthetic contours: what gives a contour away, who has learnt it."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgru_vision.figures.style import PALETTE, accuracy_axis, mark, new_figure, style
from hgru_vision.stimuli.audit import AuditReport, Stratification
from hgru_vision.stimuli.contour_audit import LINKING

CLASSES = {"contour": (1, PALETTE[1]), "no contour": (0, PALETTE[4])}


def contour_audit_figure(
    report: AuditReport, stratification: Stratification | None = None
) -> Figure:
    """Draw an audit.

    (a) Accuracy from each set of features with its 95 % interval; those that link paddles, which
    are the task, have open marks. (b) The best probe's probability in the two classes. (c) The
    network's accuracy by what that probe says, where `stratification` is given.

    Parameters
    ----------
    report
        What `audit_contours` found.
    stratification
        What `stratify` found for a network on the same images.

    Examples
    --------
    >>> from hgru_vision.stimuli.contour_audit import audit_contours
    >>> from hgru_vision.stimuli.contours import ContourConfig
    >>> report = audit_contours(ContourConfig(length=5), count=20, folds=2)
    >>> [axes.get_title("left")[0] for axes in contour_audit_figure(report).axes]
    ['a', 'b']
    """
    with style():
        figure = new_figure(2.6)
        panels = figure.subplots(1, 3 if stratification else 2, squeeze=False)[0]
        _rows(panels[0], report)
        _probability(panels[1], report)
        if stratification:
            _strata(panels[2], stratification)
    return figure


def _rows(axes: Axes, report: AuditReport) -> None:
    for height, row in enumerate(report.rows):
        task = row.features in LINKING
        _point(axes, height, row.accuracy, row.low, row.high, task)
    axes.set_yticks(range(len(report.rows)), [row.features for row in report.rows])
    for label, row in zip(axes.get_yticklabels(), report.rows, strict=True):
        label.set_fontstyle("italic" if row.features in LINKING else "normal")
    axes.set(
        title="a  Without linking paddles",
        xlabel=f"accuracy, {len(report.label):,} images\n(italic: paddles are linked)",
    )
    _accuracies(axes, len(report.rows), min(row.low for row in report.rows))


def _probability(axes: Axes, report: AuditReport) -> None:
    edges = np.linspace(0, 1, 41)
    for name, (value, colour) in CLASSES.items():
        axes.hist(
            report.probability[report.label == value],
            edges.tolist(),
            histtype="stepfilled",
            facecolor=(colour, 0.15),
            edgecolor=colour,
            label=name,
        )
    axes.legend(loc="upper right")
    axes.set(
        title="b  What the best probe says",
        xlabel=f"probability of a contour\n({report.best.features})",
        ylabel="images",
        xlim=(0, 1),
    )


def _strata(axes: Axes, stratification: Stratification) -> None:
    names = []
    for height, (name, stratum) in enumerate(stratification.strata().items()):
        if stratum.accuracy is not None:
            _point(axes, height, stratum.accuracy, stratum.low, stratum.high, False)
        images = "all images" if name == "everywhere" else f"probe {name}"
        names.append(f"{images}\nn = {stratum.n:,}")
    axes.set_yticks(range(len(names)), names)
    sure = f"{stratification.confidence:.0%}"
    axes.set(
        title="c  The network",
        xlabel=f"accuracy of the network\n(probe: {sure} sure)",
    )
    _accuracies(axes, len(names), 0.0)


def _point(
    axes: Axes, height: float, accuracy: float, low: float, high: float, hollow: bool
) -> None:
    colour, shape = mark(1 if hollow else 0)
    axes.plot([low, high], [height] * 2, color=colour, linewidth=1.6, solid_capstyle="butt")
    face = "white" if hollow else colour
    axes.plot(accuracy, height, shape, color=colour, markerfacecolor=face)


def _accuracies(axes: Axes, lines: int, lowest: float) -> None:
    accuracy_axis(axes, along="x", low=min(0.45, lowest - 0.02))
    axes.set_ylim(lines - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
