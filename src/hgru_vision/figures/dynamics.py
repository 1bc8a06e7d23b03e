"""What trained recurrent networks do over their steps, image by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from scipy.ndimage import binary_dilation

from hgru_vision.analysis.dynamics import Unfolding
from hgru_vision.figures.style import GREY, LIGHT, PALETTE, footnote, new_figure, style

__all__ = ["dynamics_figure"]

SHOWN = 8  # steps that fit in the row
CLIPPED = 99.8  # percentile of the activity at which its colours end
TUBE = 4  # pixels from a path to its outline
LEVELS = 16  # colours of the activity: enough to see it, and a small file
ROW, CURVES = 0.8, 1.45  # inches: height of an image's row, and of the curves below
COLOURS = colormaps["magma"].resampled(LEVELS)
ANSWERS = ("not connected", "connected")
TITLE: dict[str, Any] = {"fontsize": 7, "fontweight": "normal", "loc": "center", "pad": 2}
NOTE = (
    "Maps: root mean square of H2 over channels; colours end at its {clipped:g}th percentile. On a "
    "path: mean of the maps over its paddles (and what markers\nadd to them), by the mean over "
    "those of all distractors. P(connected): what the readout, trained for the last step, makes of "
    "the state after each.\nChange: norm of the difference of H2 from the step before, by the norm "
    "of H2."
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
        figure = new_figure(sum(heights) + 0.25 * len(heights) + 0.5, gap=0.015)
        blocks = figure.subfigures(len(networks), 1, squeeze=False, height_ratios=heights)[:, 0]
        for block, (title, found) in zip(blocks, networks.items(), strict=True):
            _network(block, title, found)
        footnote(figure, NOTE.format(clipped=CLIPPED))
    return figure


def _network(block: SubFigure, title: str, found: Sequence[Unfolding]) -> None:
    block.suptitle(title, fontsize=8.5)
    ratios = (ROW * len(found), CURVES)
    above, below = block.subfigures(2, 1, squeeze=False, height_ratios=ratios)[:, 0]
    _maps(above, found)

    panels = below.subplots(1, len(found) + 2)
    for axes, image in zip(panels, found, strict=False):
        axes.sharey(panels[0])
        _paths(axes, image)
    panels[0].set_ylabel("distractors = 1", fontsize=7)
    probability, change = panels[-2:]
    for number, image in enumerate(found):
        steps = np.arange(1, len(image.maps) + 1)
        line = ("-", "--", ":")[number % 3]
        probability.plot(steps, image.probability, f"ko{line}")
        # The legend of both is here.
        change.plot(steps[1:], image.change, f"ko{line}", label=ANSWERS[image.label])
    probability.set(ylim=(-0.03, 1.03), yticks=[0, 0.5, 1])
    probability.axhline(0.5, color=GREY, linewidth=0.6, zorder=1)
    _finish(probability, "P(connected)")
    change.set(xlim=probability.get_xlim())
    _finish(change, "change from the step before", legend="upper center")
    change.set_ylim(0, 1.5 * change.get_ylim()[1])  # room for the legend


def _maps(block: SubFigure, found: Sequence[Unfolding]) -> None:
    top = max(np.percentile(np.concatenate([image.maps for image in found]), CLIPPED), 1e-12)
    columns = 1 + max(len(_shown(image)) for image in found)
    grid = block.subplots(len(found), columns, squeeze=False)
    for place, (row, image) in enumerate(zip(grid, found, strict=True)):
        for axes in row:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        _input(row[0], image)
        row[0].set_title("" if place else "input", **TITLE)
        for axes, t in zip(row[1:], _shown(image), strict=False):
            drawn = axes.imshow(
                image.maps[t], cmap=COLOURS, vmin=0, vmax=top, interpolation_stage="data"
            )
            axes.set_title("" if place else f"step {t + 1}", **TITLE)
    bar = block.colorbar(drawn, ax=grid.ravel().tolist(), fraction=0.012, pad=0.01, extend="max")
    bar.set_label("activity", fontsize=6.5)
    bar.ax.tick_params(labelsize=6)


def _shown(image: Unfolding) -> list[int]:
    steps = np.linspace(0, len(image.maps) - 1, SHOWN).round().astype(int)
    return np.unique(steps).tolist()


def _input(axes: Axes, image: Unfolding) -> None:
    axes.imshow(image.image, cmap="gray", interpolation="nearest")
    for path, colour in zip(image.paths.values(), PALETTE, strict=False):
        around = binary_dilation(path, iterations=TUBE)
        axes.contour(around, levels=[0.5], colors=[colour], linewidths=0.8)
    axes.set_ylabel(f"{ANSWERS[image.label]}\nP = {image.probability[-1]:.3f}", fontsize=6.5)


def _paths(axes: Axes, image: Unfolding) -> None:
    steps = np.arange(1, len(image.maps) + 1)
    for (name, values), colour in zip(image.emphasis.items(), PALETTE, strict=False):
        axes.plot(steps, values, "o-", color=colour, label=name)
    axes.axhline(1, color=GREY, linewidth=0.6, zorder=1)
    _finish(axes, f"activity on paths, {ANSWERS[image.label]}", legend="upper center")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend, twice: panels share it


def _finish(axes: Axes, title: str, legend: Literal["best", "upper center"] = "best") -> None:
    axes.set_title(title, **TITLE)
    axes.set_xlabel("step", fontsize=7)
    axes.tick_params(labelsize=6.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, min_n_ticks=2))
    axes.grid(axis="y", color=LIGHT, linewidth=0.6)
    for line in axes.lines:
        line.set(markersize=2.5, linewidth=1)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc=legend, fontsize=6, handlelength=2.2)  # dashes show
