"""Trained networks on images of other kinds: a panel for each thing that is changed."""

import math
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hgru_vision.analysis.conditions import AXES, Axis
from hgru_vision.analysis.generalisation import CONFIDENCE, Row, latest
from hgru_vision.figures.style import (
    Mark,
    NothingToDraw,
    accuracy_axis,
    footnote,
    mark,
    missing_note,
    new_figure,
    style,
)

__all__ = ["generalisation"]

COLUMNS = 3
NOTE_COLUMNS = 125  # letters of a line
DODGE = 0.1  # between networks, of the distance of two generators
NUDGE = 0.008  # the same, of the range of numbers: three curves at chance are three
TITLES: dict[Axis, tuple[str, str]] = {
    "length": ("Path length", "paddles in a path"),
    "preset": ("Generator", ""),
    "canvas": ("Canvas, density kept", "pixels on a side"),
    "density": ("Density", "paddles in an image"),
    "steps": ("Processing time", "steps of the circuit"),
    "probe": ("Where the probe errs", ""),
}


def generalisation(rows: Sequence[Row]) -> Figure:
    """Draw accuracy against what is changed, a colour a network.

    The large mark of a line is the condition that the network was trained in.

    Parameters
    ----------
    rows
        What `read_rows` gave.
    """
    shown = [row for row in latest(rows) if row.accuracy is not None]
    if not shown:
        raise NothingToDraw("no network was measured; `hgru generalise` does it")
    trained = {row.network: row.trained.length for row in shown}
    networks = sorted(trained, key=lambda name: (trained[name], name))
    looks = {name: mark(number) for number, name in enumerate(networks)}
    every = {axis: [row for row in shown if row.condition.axis == axis] for axis in AXES}
    parts = {axis: part for axis, part in every.items() if part}
    missing = _missing(latest(rows), networks)
    with style():
        lines = math.ceil(len(parts) / COLUMNS)
        figure = new_figure(0.9 + 2 * lines + 0.14 * len(networks))
        grid = figure.subplots(lines, min(COLUMNS, len(parts)), squeeze=False)
        for axes in grid.flat[len(parts) :]:
            axes.set_visible(False)
        for place, (axis, part) in enumerate(parts.items()):
            axes = grid.flat[place]
            title, name = TITLES[axis]
            axes.set_title(title)
            axes.set_xlabel(name)
            _panel(axes, part, looks)
            low = min(row.interval[0] for row in part)
            accuracy_axis(axes, low=min(0.4, low - 0.03))
            if place % COLUMNS == 0:
                axes.set_ylabel("accuracy")
        for name, look in looks.items():
            grid[0, 0].plot([], [], look.shape, color=look.colour, linestyle="-", label=name)
        figure.legend(loc="outside upper center", ncols=min(5, len(networks)))
        footnote(figure, f"{_note(shown)}\n{missing_note(missing)}".strip())
    return figure


def _missing(rows: Sequence[Row], networks: Sequence[str]) -> list[str]:
    """Name what was measured of no network, or not of all."""
    found = []
    for axis in AXES:
        measured = {row.network for row in rows if row.condition.axis == axis}
        empty = [row for row in rows if row.condition.axis == axis and not row.n]
        absent = [name for name in networks if name not in measured]
        title = TITLES[axis][0]
        if absent:
            found.append(title if not measured else f"{title} ({', '.join(absent)})")
        found += [
            f"{title} ({row.network} on {row.condition.value}: no such image)" for row in empty
        ]
    return found


def _note(rows: Sequence[Row]) -> str:
    """Say what a mark is."""
    counts = sorted({row.n for row in rows if row.condition.axis != "probe"})
    images = f"{' or '.join(f'{n:,}' for n in counts)} test images; " if counts else ""
    note = (
        f"A mark: {images}the bar is the 95 % interval; a large mark is the task of the training."
    )
    probed = sorted({row.images for row in rows if row.condition.axis == "probe"})
    if probed:
        note += (
            " Where the probe errs: images of that generator of which a probe that follows no "
            f"path, fitted to others, is at least {CONFIDENCE:.0%} sure and wrong, among "
            f"{' or '.join(f'{n:,}' for n in probed)}."
        )
    return textwrap.fill(note, NOTE_COLUMNS)


def _panel(axes: Axes, rows: Sequence[Row], looks: dict[str, Mark]) -> None:
    words = list(dict.fromkeys(row.condition.value for row in rows))
    named = any(isinstance(word, str) for word in words)
    places = {word: place for place, word in enumerate(words)} if named else {}
    present = {row.network for row in rows}
    looks = {name: look for name, look in looks.items() if name in present}
    step = DODGE if named else NUDGE * (max(words) - min(words))
    for number, (name, look) in enumerate(looks.items()):
        shift = (number - (len(looks) - 1) / 2) * step
        own = [row for row in rows if row.network == name]
        own.sort(key=lambda row: places.get(row.condition.value, row.condition.value))
        x = [places.get(row.condition.value, row.condition.value) + shift for row in own]
        for place, row in zip(x, own, strict=True):
            axes.plot([place] * 2, row.interval, color=look.colour, linewidth=1.4)
            size = 7 if _as_trained(row) else 3
            axes.plot(place, row.correct / row.n, look.shape, color=look.colour, markersize=size)
        if not named:
            axes.plot(x, [row.correct / row.n for row in own], color=look.colour, linewidth=0.9)
    if named:
        axes.set_xticks(range(len(words)), [str(word) for word in words], rotation=30, ha="right")
        axes.set_xlim(-0.5, len(words) - 0.5)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))


def _as_trained(row: Row) -> bool:
    return row.condition.source == row.trained and row.condition.axis not in ("steps", "probe")
