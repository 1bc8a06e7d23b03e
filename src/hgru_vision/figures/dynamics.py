"""What trained recurrent networks do over their steps, image by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from scipy.ndimage import binary_dilation

from hgru_vision.analysis.dynamics import Unfolding
from hgru_vision.figures.style import GREY, LIGHT, PALETTE, footnote, new_figure, style

__all__ = ["dynamics_figure"]

SHOWN = 8  # steps that fit in the row
CLIPPED = 99.5  # percentile of the activity at which its colours end
TUBE = 4  # pixels from a path to its outline
ROW, CURVES = 1.02, 1.75  # inches: height of an image's row, and of the curves below
ANSWERS = ("not connected", "connected")
NOTE = (
    "Activity: root mean square of H2 over channels; colours end at its {clipped:g}th percentile "
    "over all panels of a network. On the paths: mean over their paddles,\nwith what the markers "
    "add, by the mean over the paddles of all distractors. P(connected): what the readout makes of "
    "the state after each step, trained for\nthe last. Change: norm of the difference between "
    "two steps by the norm of the second."
)


def dynamics_figure(networks: Mapping[str, Sequence[Unfolding]]) -> Figure:
    """Draw what networks do over their steps, one network below the other.

    Above, a row an image: the image with its target paths outlined, and the activity after each
    step; at most eight steps are drawn, evenly spaced. Below, the activity on the paths of each
    image, the probability of "connected" and the change from step to step.

    Parameters
    ----------
    networks
        By their titles.
    """
    if not any(networks.values()):
        raise ValueError("there is no image to draw")
    with style():
        heights = [ROW * len(found) + CURVES for found in networks.values()]
        figure = new_figure(sum(heights) + 0.5)
        blocks = figure.subfigures(len(networks), 1, squeeze=False, height_ratios=heights)[:, 0]
        for block, (title, found) in zip(blocks, networks.items(), strict=True):
            _network(block, title, found)
        footnote(figure, NOTE.format(clipped=CLIPPED))
    return figure


def _network(block: SubFigure, title: str, found: Sequence[Unfolding]) -> None:
    block.suptitle(title, fontsize=8.5, weight="bold")
    ratios = (ROW * len(found), CURVES)
    above, below = block.subfigures(2, 1, squeeze=False, height_ratios=ratios)[:, 0]
    _maps(above, found)

    panels = below.subplots(1, len(found) + 2)
    for axes, image in zip(panels, found, strict=False):
        _paths(axes, image)
    probability, change = panels[-2:]
    for number, image in enumerate(found):
        steps = np.arange(1, len(image.maps) + 1)
        look = {"color": "black", "linestyle": ("-", "--", ":")[number % 3], "markersize": 2.5}
        name = ANSWERS[image.label]
        probability.plot(steps, image.probability, "o", label=name, **look)
        change.plot(steps[1:], image.change, "o", **look)
    probability.set(title="P(connected)", ylim=(-0.03, 1.03), yticks=[0, 0.5, 1])
    probability.axhline(0.5, color=GREY, linewidth=0.6, zorder=1)
    probability.legend(loc="best", fontsize=6)
    change.set(title="change", ylim=(0, None), xlim=probability.get_xlim())
    for axes in panels:
        axes.set_xlabel("step")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, min_n_ticks=2))
        axes.title.set_fontsize(7)
        axes.title.set_fontweight("normal")


def _maps(block: SubFigure, found: Sequence[Unfolding]) -> None:
    top = max(np.percentile(np.concatenate([image.maps for image in found]), CLIPPED), 1e-12)
    columns = 1 + max(len(_shown(image)) for image in found)
    grid = block.subplots(len(found), columns, squeeze=False)
    for row, image in zip(grid, found, strict=True):
        for axes in row:
            axes.set_axis_off()
        _input(row[0], image)
        for axes, t in zip(row[1:], _shown(image), strict=False):
            drawn = axes.imshow(
                image.maps[t], cmap="magma", vmin=0, vmax=top, interpolation="nearest"
            )
            _title(axes, f"step {t + 1}" if row is grid[0] else "")
    bar = block.colorbar(drawn, ax=grid.ravel().tolist(), shrink=0.8, aspect=25, extend="max")
    bar.set_label("activity", fontsize=7)
    bar.ax.tick_params(labelsize=6)


def _shown(image: Unfolding) -> list[int]:
    steps = np.linspace(0, len(image.maps) - 1, SHOWN).round().astype(int)
    return np.unique(steps).tolist()


def _input(axes: Axes, image: Unfolding) -> None:
    axes.imshow(image.image, cmap="gray", interpolation="nearest")
    for path, colour in zip(image.paths.values(), PALETTE, strict=False):
        around = binary_dilation(path, iterations=TUBE)
        axes.contour(around, levels=[0.5], colors=[colour], linewidths=0.8)
    _title(axes, ANSWERS[image.label])


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=6.5, weight="normal", loc="center", pad=2)


def _paths(axes: Axes, image: Unfolding) -> None:
    steps = np.arange(1, len(image.maps) + 1)
    for (name, values), colour in zip(image.emphasis.items(), PALETTE, strict=False):
        axes.plot(steps, values, "o-", color=colour, label=name, markersize=2.5)
    axes.axhline(1, color=GREY, linewidth=0.6, zorder=1)
    axes.grid(axis="y", color=LIGHT, linewidth=0.6)
    axes.set_title(f"{ANSWERS[image.label]}: activity on paths")
    axes.legend(loc="best", fontsize=6)
