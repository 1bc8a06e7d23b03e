"""The picture of an evaluation: what a network's accuracy depends on."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hgru_vision.figures.style import GREY, PALETTE, accuracy_axis, new_figure, style

__all__ = ["evaluation_figure"]

STRATA = {"everywhere": "all", "right": "right", "unsure": "unsure", "wrong": "wrong"}


def evaluation_figure(report: dict[str, Any]) -> Figure:
    """Draw what `hgru eval` found.

    Parameters
    ----------
    report
        Its numbers: ``accuracy``, ``low``, ``high``, ``n``, and where they were measured ``steps``
        (with ``timesteps``), ``by``, ``strata`` and ``shortcut``.
    """
    panels = len(report.get("by", {})) + ("strata" in report) + ("steps" in report)
    with style():
        figure = new_figure(2.6, width=max(3.5, 2.35 * panels))
        grid = figure.subplots(1, max(panels, 1), sharey=True, squeeze=False)[0]
        unused = iter(grid)
        if "steps" in report:
            steps = report["steps"]
            axes = next(unused)
            _points(axes, list(steps), list(steps.values()), "steps of the circuit")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.axvline(report["timesteps"], color=GREY, linestyle=":", linewidth=1.2, zorder=1)
            axes.set_title(
                f"dotted: trained with {report['timesteps']}", fontsize=7, weight="normal"
            )
        for name, parts in report.get("by", {}).items():
            centres = [(part.start + part.end) / 2 for part in parts]
            _points(next(unused), centres, [asdict(part) for part in parts], name)
        if "strata" in report:
            _strata(next(unused), report)
        if not panels:
            _points(grid[0], [0], [report], "")
            grid[0].set_xticks([])
        for axes in grid:
            of_pixels = "overlap" in report  # most of which are background
            accuracy_axis(axes, low=_lowest(report), chance=not of_pixels)
        grid[0].set_ylabel("accuracy")
        figure.suptitle(_title(report), fontsize=8.5)
    return figure


def _points(axes: Axes, x: Sequence[float], values: list[dict[str, Any]], name: str) -> None:
    colour = PALETTE[1]
    for place, each in zip(x, values, strict=True):
        axes.plot([place, place], [each["low"], each["high"]], color=colour, linewidth=1.6)
    axes.plot(x, [each["accuracy"] for each in values], "o-", color=colour, linewidth=0.9)
    axes.set_xlabel(name)


def _strata(axes: Axes, report: dict[str, Any]) -> None:
    names = []
    for place, (key, name) in enumerate(STRATA.items()):
        each = report["strata"][key]
        names.append(f"{name}\n{each['n']:,}")
        if each["accuracy"] is not None:
            axes.plot([place] * 2, [each["low"], each["high"]], color=PALETTE[0], linewidth=1.6)
            axes.plot(place, each["accuracy"], "D", color=PALETTE[0])
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xlabel("images by what the probe says")
    axes.axhline(report["shortcut"]["accuracy"], color=GREY, linestyle=":", linewidth=1.2)
    axes.annotate(
        "the probe",
        (1, report["shortcut"]["accuracy"]),
        (-1, -2),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=6.5,
        color=GREY,
    )


def _lowest(report: dict[str, Any]) -> float:
    """Leave room for what is far below chance."""
    strata = [each for each in report.get("strata", {}).values() if isinstance(each, dict)]
    parts = [asdict(part) for group in report.get("by", {}).values() for part in group]
    found = [report, *strata, *parts, *report.get("steps", {}).values()]
    return min(0.4, *(each["low"] - 0.03 for each in found if each["n"]))


def _title(report: dict[str, Any]) -> str:
    overlap = f", intersection over union {report['overlap']:.3f}" if "overlap" in report else ""
    return (
        f"{report['network']}: {report['accuracy']:.1%} on {report['n']:,} images "
        f"({report['low']:.1%} to {report['high']:.1%}){overlap}"
    )
