"""The one style of the figures of results: size, colours, axes of accuracies, and how to save."""

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.style import context as style_context
from matplotlib.transforms import Bbox

from hgru_vision.models.catalogue import CATALOGUE, Family
from hgru_vision.training.files import check_output, replace_file

__all__ = [
    "CHANCE",
    "FAMILY_MARKS",
    "FORMATS",
    "GREY",
    "LIGHT",
    "PALETTE",
    "WIDTH",
    "Mark",
    "NothingToDraw",
    "accuracy_axis",
    "check_picture",
    "family",
    "footnote",
    "mark",
    "missing_note",
    "new_figure",
    "place_labels",
    "render",
    "save",
    "save_figure",
    "style",
]

FORMATS = ("svg", "pdf", "png")
WIDTH = 7.0  # inches: both columns of a page
CHANCE = 0.5
GREY, LIGHT = "#6E6E6E", "#E6E6E6"
CLOSE = 9.0  # points: further from its mark a name has a line to it

# Okabe and Ito's palette, which colour-blind readers tell apart; its yellow is too faint for lines.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_SHAPES = "osD^vPX"

_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.handletextpad": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "svg.hashsalt": "hgru-vision",  # the same figure is the same file
    "savefig.dpi": 200,
}


class NothingToDraw(ValueError):
    """The ledger has nothing of what a figure shows; the text says what."""


class Mark(NamedTuple):
    """Colour and shape of a network's marks; both differ, for readers without colours."""

    colour: str
    shape: str


FAMILY_MARKS: dict[Family, Mark] = {
    "recurrent": Mark("#D55E00", "o"),
    "feedforward": Mark("#009E73", "s"),
    "highway": Mark("#E69F00", "v"),
    "residual": Mark("#0072B2", "D"),
    "per-pixel": Mark("#CC79A7", "^"),
    "beyond": Mark("#000000", "X"),
}


def mark(number: int) -> Mark:
    """Give the mark of the n-th network of a panel; networks beyond the palette start again."""
    # The shape goes on when colours start again, so that no two of 49 are the same.
    colour = PALETTE[number % len(PALETTE)]
    return Mark(colour, _SHAPES[(number + number // len(PALETTE)) % len(_SHAPES)])


def family(model: str) -> Family:
    """Give the class of a model; one that is not in the catalogue is beyond the paper."""
    return CATALOGUE[model].family if model in CATALOGUE else "beyond"


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of the project; the reader's own settings come back afterwards."""
    with style_context(["default", _STYLE]):
        yield


def new_figure(height: float, width: float = WIDTH, *, gap: float = 0.05) -> Figure:
    """Make an empty figure; its sizes and the gap at either side of its panels are in inches."""
    layout = ConstrainedLayoutEngine(w_pad=gap, h_pad=0.05, wspace=0.04, hspace=0.04)
    return Figure(figsize=(width, height), layout=layout)


def accuracy_axis(
    axes: Axes, *, along: Literal["x", "y"] = "y", low: float = 0.4, chance: bool = True
) -> None:
    """Show accuracies from below chance to 1 in per cent, with a line at chance.

    The number at that line names it: outside the axes there are no data.

    Parameters
    ----------
    axes
        What to set up.
    along
        The axis of the accuracies.
    low
        Where it begins.
    chance
        Draw the line.
    """
    axis = axes.yaxis if along == "y" else axes.xaxis
    fine = along == "y" and low >= 0.4
    axis.set_ticks([0.5, 0.6, 0.7, 0.8, 0.9, 1.0] if fine else [0.0, 0.25, 0.5, 0.75, 1.0])
    (axes.set_ylim if along == "y" else axes.set_xlim)(low, 1.02)
    # On a y axis the middle one of three lines is level with its tick.
    named = ("\n" if along == "y" else "") + f"{CHANCE:.0%}\nchance"
    axis.set_major_formatter(lambda at, _: named if chance and at == CHANCE else f"{at:.0%}")
    axes.grid(axis=along, color=LIGHT, linewidth=0.6)
    axes.set_axisbelow(True)
    if chance:
        line = axes.axhline if along == "y" else axes.axvline
        line(CHANCE, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)


def missing_note(names: Sequence[str], columns: int = 125, said: str = "not run") -> str:
    """Write what was not run, in lines of so many letters; nothing if nothing is missing.

    `said` is another thing to say of what has no place in the figure.

    >>> missing_note(["GRU", "U-Net"])
    'not run: GRU; U-Net'
    """
    whole = (name.replace(" ", "\N{NO-BREAK SPACE}") for name in names)
    note = f"{said}: {'; '.join(whole)}"
    return textwrap.fill(note, columns, break_on_hyphens=False) if names else ""


def footnote(figure: FigureBase, text: str) -> None:
    """Write at the foot of a figure."""
    figure.supxlabel(text, x=0.01, ha="left", fontsize=6.5, color=GREY)


def place_labels(axes: Axes, points: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names beside points, where they cover neither each other nor a point.

    A name that finds no room close by, or whose point is close to another, goes further away, with
    a line to its point. Call this when everything else is drawn and limits are set.

    Parameters
    ----------
    axes
        Of the points.
    points
        x, y, name and colour of each.
    """
    figure = axes.figure.figure if isinstance(axes.figure, SubFigure) else axes.figure
    assert isinstance(figure, Figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # settles the layout, so that places are known
    places = axes.transData.transform([(x, y) for x, y, _, _ in points])
    unit = figure.dpi / 72  # pixels a point
    crowded = {
        point
        for point, place in zip(points, places, strict=True)
        if sum(math.dist(place, other) < CLOSE * unit for other in places) > 1
    }
    frame = axes.get_window_extent(renderer)
    taken = [Bbox.from_bounds(x - 3 * unit, y - 3 * unit, 6 * unit, 6 * unit) for x, y in places]
    lowest = {"left": math.inf, "right": math.inf}  # names of crowded points, by their side
    for point in sorted(points, key=lambda point: -point[1]):
        x, y, name, colour = point
        for dx, dy, ha in _OFFSETS:
            far = max(abs(dx), abs(dy)) > CLOSE
            if point in crowded and not far:
                continue  # whose name is it? A line says it
            place: dict[str, Any] = {"xytext": (dx, dy), "textcoords": "offset points"}
            text = axes.annotate(
                name, (x, y), **place, ha=ha, va="center", fontsize=6.5, color=colour
            )
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # over lines
            box = text.get_window_extent(renderer)
            inside = frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)
            crosses = point in crowded and box.y0 > lowest[ha]  # the line of a higher point's name
            if inside and not crosses and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                if point in crowded:
                    lowest[ha] = box.y0
                if far:
                    line = {"arrowstyle": "-", "linewidth": 0.4, "color": colour, "shrinkA": 0}
                    axes.annotate("", (x, y), **place, arrowprops=line)
                break
            text.remove()


def _offsets() -> Iterator[tuple[float, float, str]]:
    """Places for a name, in points from its mark, the best first."""
    for dy in (0.0, 5.0, -5.0, CLOSE, -CLOSE):
        yield 5, dy, "left"
        yield -5, dy, "right"
    for distance in range(14, 120, 5):
        for dy in (0, distance / 2, -distance / 2, distance, -distance):
            yield distance, dy, "left"
            yield -distance, dy, "right"


_OFFSETS = tuple(_offsets())


def render(figure: Figure, kind: str) -> bytes:
    """Give a figure as the bytes of a file of one of the `FORMATS`."""
    buffer = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with style():
        figure.savefig(buffer, format=kind, metadata=dates.get(kind))
    return buffer.getvalue()


def check_picture(path: Path) -> str:
    """Give the kind of a picture by its name; refuse one that cannot be written.

    >>> check_picture(Path("a/b.SVG"))
    'svg'
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise ValueError(f"pictures end in {endings}; got {path}")
    check_output(path)
    return kind


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's name, whole or not at all."""
    save(render(figure, check_picture(path)), path)


def save(content: bytes, path: Path) -> None:
    """Write a file whole or not at all."""
    check_output(path)
    replace_file(path, content)
