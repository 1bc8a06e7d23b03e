"""Trained networks on images of other kinds: a table for each thing that is changed."""

import textwrap
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hgru_vision.analysis.conditions import AXES, Axis, times_trained
from hgru_vision.analysis.generalisation import CONFIDENCE, Row, latest
from hgru_vision.figures.style import (
    CHANCE,
    GREY,
    LIGHT,
    PALETTE,
    NothingToDraw,
    footnote,
    missing_note,
    new_figure,
    style,
)
from hgru_vision.models.registry import in_natural_order

__all__ = ["generalisation"]

LINES: tuple[tuple[Axis, ...], ...] = (
    ("length", "preset", "probe"),
    ("steps", "density", "canvas"),
)
TITLES: dict[Axis, tuple[str, str]] = {
    "length": ("Path length", "paddles in a path"),
    "preset": ("Generator", ""),
    "canvas": ("Canvas", "times the\ntrained side"),
    "density": ("Density", "times the\ntrained paddles"),
    "steps": ("Processing time", "steps of the circuit"),
    "probe": ("Probe errs", ""),
}
CELL = 0.19  # inches: the height of a row
LEAST_WIDTH = 3  # of a table, in cells: its title needs that
NOTE_COLUMNS = 125  # letters of a line
VAGUE = 0.2  # an accuracy whose interval is wider than this stands in brackets

# White at chance, blue above it and orange below: networks can be worse than guessing.
_COLOURS = LinearSegmentedColormap.from_list("accuracy", [PALETTE[0], "#FFFFFF", PALETTE[1]])
_SCALE = TwoSlopeNorm(CHANCE, vmin=0.1, vmax=1.1)  # no colour so dark that black letters fade

Cells = dict[tuple[str, Any], Row]
"""The measurement of each network and column."""


def generalisation(rows: Sequence[Row]) -> Figure:
    """Draw a table for each thing that is changed: a row a network, a column a condition.

    The framed cells are of the task that a network was trained on.

    Parameters
    ----------
    rows
        What `read_rows` gave.
    """
    rows = latest(rows)
    if all(row.accuracy is None for row in rows):
        raise NothingToDraw("no network was measured; `hgru generalise` does it")
    networks = sorted({row.network for row in rows}, key=in_natural_order)
    tables = {axis: _cells(rows, axis) for axis in AXES}
    lines = [[axis for axis in line if tables[axis]] for line in LINES]
    lines = [line for line in lines if line]
    absent = [TITLES[axis][0] for axis in AXES if not tables[axis]]
    note = f"{_note(rows)}\n{missing_note(absent)}".strip()
    with style():
        figure = new_figure(len(lines) * (1.1 + CELL * len(networks)) + 0.12 * note.count("\n"))
        # Every cell of a line is as wide as every other.
        for part, line in zip(
            figure.subfigures(len(lines), squeeze=False)[:, 0], lines, strict=True
        ):
            widths = [max(LEAST_WIDTH, len(_columns(tables[axis]))) for axis in line]
            panels = part.subplots(1, len(line), squeeze=False, width_ratios=widths)[0]
            for axis, axes in zip(line, panels, strict=True):
                _table(axes, axis, tables[axis], networks)
            panels[0].set_yticks(range(len(networks)), networks)
        footnote(figure, note)
    return figure


def _cells(rows: Sequence[Row], axis: Axis) -> Cells:
    return {(row.network, _column(row)): row for row in rows if row.condition.axis == axis}


def _column(row: Row) -> Any:
    """Give the column of a measurement: a number, or the name of a preset."""
    if row.condition.axis in ("canvas", "density"):
        return times_trained(row.condition, row.trained)
    return row.condition.value


def _columns(cells: Cells) -> list[Any]:
    """Give all columns of a table: numbers in their order, names as they come."""
    columns = list(dict.fromkeys(column for _, column in cells))
    return columns if any(isinstance(each, str) for each in columns) else sorted(columns)


def _table(axes: Axes, axis: Axis, cells: Cells, networks: Sequence[str]) -> None:
    columns = _columns(cells)
    title, label = TITLES[axis]
    axes.set_title(title)
    axes.set_xlabel(label)
    axes.set_xlim(-0.5, max(LEAST_WIDTH, len(columns)) - 0.5)
    axes.set_ylim(len(networks) - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=6.5)
    axes.set_yticks([])
    names = [_named(axis, column) for column in columns]
    axes.set_xticks(range(len(columns)), names)
    if any(len(name) > 4 for name in names):
        axes.tick_params(axis="x", rotation=45, pad=0)
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    for y, network in enumerate(networks):
        for x, column in enumerate(columns):
            _cell(axes, x, y, cells.get((network, column)))


def _named(axis: Axis, column: Any) -> str:
    """Name a column: a multiple as a fraction, such as 4/3, and all else as it is."""
    if axis not in ("canvas", "density"):
        return str(column)
    near = Fraction(column).limit_denominator(5)
    return str(near) if abs(near - column) < 1e-9 else f"{column:.2g}"


def _cell(axes: Axes, x: int, y: int, row: Row | None) -> None:
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6}
    if row is None or row.accuracy is None:
        axes.add_patch(_square(x, y, facecolor=LIGHT, edgecolor="white"))
        if row is not None:
            axes.text(x, y, "\N{EN DASH}", color=GREY, **middle)
        return
    axes.add_patch(_square(x, y, facecolor=_COLOURS(_SCALE(row.accuracy)), edgecolor="white"))
    if _as_trained(row):
        axes.add_patch(_square(x, y, facecolor="none", edgecolor="black", zorder=2))
    number = f"{100 * row.accuracy:.0f}"
    axes.text(x, y, f"({number})" if _vague(row) else number, **middle)


def _as_trained(row: Row) -> bool:
    """Tell whether a row is of the trained task; of how many steps were trained it does not say."""
    return row.condition.source == row.trained and row.condition.axis not in ("steps", "probe")


def _square(x: int, y: int, **looks: Any) -> Rectangle:
    return Rectangle((x - 0.5, y - 0.5), 1, 1, linewidth=0.7, **looks)


def _note(rows: Sequence[Row]) -> str:
    """Say what a number is."""
    return "\n".join(textwrap.fill(line, NOTE_COLUMNS) for line in _sentences(rows))


def _sentences(rows: Sequence[Row]) -> Iterator[str]:
    counts = sorted({row.n for row in rows if row.condition.axis != "probe"})
    said = "Right answers in %"
    if counts:
        said += f", of {' or '.join(f'{n:,}' for n in counts)} test images"
    if any(row.n and _vague(row) for row in rows):
        said += f"; in brackets if their 95 % interval is wider than {100 * VAGUE:.0f} points"
    framed = "Framed: the task of the training (of several lengths the longest)"
    yield f"{said}. {framed}. Grey: not measured."
    probed = sorted({row.images for row in rows if row.condition.axis == "probe"})
    if probed:
        yield (
            "Probe errs: images of that generator of whose label a probe that follows no path, "
            f"fitted to others, is at least {CONFIDENCE:.0%} sure and wrong, among "
            f"{' or '.join(f'{n:,}' for n in probed)}; \N{EN DASH}: there is none."
        )


def _vague(row: Row) -> bool:
    low, high = row.interval
    return high - low > VAGUE
