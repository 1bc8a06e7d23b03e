"""The picture of an audit: what gives a Pathfinder's label away, and who has learnt it."""

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from hgru_vision.figures.style import GREY, LIGHT, PALETTE, Mark, mark, new_figure, style
from hgru_vision.stimuli._types import Floats, Indices
from hgru_vision.stimuli.audit import AuditReport, Cues, Stratification

CLASSES = {"connected": (1, PALETTE[1]), "not connected": (0, PALETTE[4])}
ACCURACY_END = 1.16  # leaves room for the number beside a perfect score
TITLE_PAD = 20  # points: room for the legend


def audit_figure(
    cues: Cues, report: AuditReport, stratification: Stratification | None = None
) -> Figure:
    """Draw an audit.

    (a) Marker distance in the two classes. (b) Accuracy of each probe with its 95 % interval.
    (c) The best probe's probability in the two classes. (d) The network's accuracy by what that
    probe says, where `stratification` is given.

    Parameters
    ----------
    cues
        The cues that were audited.
    report
        What `audit` found in them.
    stratification
        What `stratify` found for a network on the same images.

    Returns
    -------
    figure
        A matplotlib figure; `style.save_figure` writes it.

    Examples
    --------
    >>> from hgru_vision.stimuli.audit import AuditRow
    >>> cues = Cues(label=[0, 1], markers=np.zeros((2, 2, 2)), directions=np.zeros((2, 2)),
    ...             canvas=(150, 150), ink=[0, 0], curvature=[0, 0])
    >>> row = AuditRow(features="ink", probe="20-bin lookup", accuracy=0.5, low=0, high=1, n=2)
    >>> report = AuditReport(rows=(row,), best=row, probability=np.array([0.5, 0.5]),
    ...                      label=cues.label, folds=2, seed=0)
    >>> len(audit_figure(cues, report).axes)
    3
    """
    if not np.array_equal(cues.label, report.label):
        raise ValueError(
            f"report must be the audit of these {len(cues.label)} cues, "
            f"got one of {len(report.label)} images with other labels"
        )
    with style(), rc_context({"axes.titlepad": TITLE_PAD}):
        figure = new_figure(5.4)
        panels = figure.subplot_mosaic("ab\ncd" if stratification else "ab\ncb")
        _distance(panels["a"], cues)
        _rows(panels["b"], report)
        _probability(panels["c"], report)
        if stratification:
            _strata(panels["d"], stratification)
    return figure


def _distance(axes: Axes, cues: Cues) -> None:
    distance = np.linalg.norm(cues.markers[:, 1] - cues.markers[:, 0], axis=1)
    _class_histograms(axes, distance, cues.label, np.histogram_bin_edges(distance, 50))
    axes.set(title="a  Marker distance", xlabel="distance between the markers (pixels)")


def _rows(axes: Axes, report: AuditReport) -> None:
    """One line for each set of features; its probes side by side, told apart by their marks."""
    sets = list(dict.fromkeys(row.features for row in report.rows))
    probes = list(dict.fromkeys(row.probe for row in report.rows))
    for row in report.rows:
        beside = [other.probe for other in report.rows if other.features == row.features]
        shift = 0.36 * (beside.index(row.probe) - (len(beside) - 1) / 2)
        look = mark(probes.index(row.probe))
        height = sets.index(row.features) + shift
        _accuracy_point(axes, row.accuracy, row.low, row.high, height, look)
    for number, probe in enumerate(probes):
        colour, shape = mark(number)
        axes.plot([], [], shape, color=colour, label=probe)
    _legend_under_title(axes)
    axes.set_yticks(range(len(sets)), sets)
    axes.set(
        title="b  Label read without following a path",
        xlim=(min(0.45, *(row.low - 0.02 for row in report.rows)), ACCURACY_END),
        xlabel=f"accuracy on {len(report.label):,} images, {report.folds}-fold cross-validated",
    )
    _accuracy_axis(axes, len(sets), report.chance, tick_step=0.1)


def _probability(axes: Axes, report: AuditReport) -> None:
    """On a logarithmic scale, so that the few images where the probe is misled show."""
    _class_histograms(axes, report.probability, report.label, np.linspace(0, 1, 41))
    axes.set(
        title="c  What the best probe says",
        xlabel=f"probability of 'connected'\n({report.best.features}, {report.best.probe})",
        xlim=(0, 1),
        yscale="log",
    )
    axes.set_ylim(bottom=0.7)  # a bin with a single image is seen
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _strata(axes: Axes, stratification: Stratification) -> None:
    names = []
    for height, (name, stratum) in enumerate(stratification.strata().items()):
        if stratum.accuracy is not None:
            _accuracy_point(axes, stratum.accuracy, stratum.low, stratum.high, height, mark(0))
        images = "all images" if name == "everywhere" else f"probe {name}"
        names.append(f"{images}\nn = {stratum.n:,}")
    axes.set_yticks(range(len(names)), names)
    axes.set(
        title="d  The network, by what the probe says",
        xlabel="accuracy of the network",
        xlim=(-0.03, ACCURACY_END),
    )
    axes.annotate(
        f"right, wrong: where the probe is at least {stratification.confidence:.0%} sure",
        (0, 1),
        (0, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=7,
    )
    _accuracy_axis(axes, len(names), 0.5, tick_step=0.2)


def _class_histograms(axes: Axes, values: Floats, label: Indices, edges: Floats) -> None:
    """Draw outlined histograms of the two classes."""
    for name, (value, colour) in CLASSES.items():
        axes.hist(
            values[label == value],
            edges.tolist(),
            histtype="stepfilled",
            facecolor=(colour, 0.15),
            edgecolor=colour,
            linewidth=1.2,
            label=name,
        )
    axes.set_ylabel("images")
    _legend_under_title(axes)


def _legend_under_title(axes: Axes) -> None:
    """Put the legend where no data can come."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
        ncols=3,
        fontsize=6.5,
        handlelength=1,
        handletextpad=0.4,
        columnspacing=0.9,
    )


def _accuracy_point(
    axes: Axes, accuracy: float, low: float, high: float, height: float, look: Mark
) -> None:
    axes.plot([low, high], [height] * 2, color=look.colour, linewidth=1.6, solid_capstyle="butt")
    axes.plot(accuracy, height, look.shape, color=look.colour)
    axes.annotate(
        f"{accuracy:.1%}",
        (max(high, accuracy), height),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=6.5,
    )


def _accuracy_axis(axes: Axes, lines: int, chance: float, tick_step: float) -> None:
    """Put the first line on top, accuracies in per cent and a line at chance."""
    start, end = axes.get_xlim()
    axes.set_xticks([tick for tick in np.arange(0, 1.01, tick_step) if tick >= start])
    axes.set(xlim=(start, end), ylim=(lines - 0.4, -0.6))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=LIGHT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.axvline(chance, color=GREY, linestyle="--", linewidth=0.8, zorder=1)
    axes.annotate(
        "chance",
        (chance, 0),
        (3, 3),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=6.5,
        color=GREY,
    )
