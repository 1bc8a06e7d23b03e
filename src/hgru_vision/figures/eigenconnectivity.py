"""The patterns of learnt horizontal connections, with profiles of the weights beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from hgru_vision.analysis.association import Estimate, Profile
from hgru_vision.analysis.eigenconnectivity import Eigenconnectivity
from hgru_vision.figures.style import GREY, LIGHT, PALETTE, footnote, new_figure, style
from hgru_vision.stimuli._types import Floats

__all__ = ["eigenconnectivity_figure"]

SHOWN = 6  # components that fit in the row
ORANGE, BLUE, GREEN, PINK = PALETTE[:4]
ORANGE_BLUE = LinearSegmentedColormap.from_list("orange-blue", [BLUE, "#FFFFFF", ORANGE])
INCHES = 3.1  # height of a network
NOTE = (
    "Kernels between channels, turned until the sending channel's orientation is vertical (black "
    "ticks): their mean and principal components.\nOrange: positive, blue: negative; a component "
    "has the sign that it has between channels of like orientation; each map has a scale of its "
    "own.\nAlong, across: within 22.5° of the axis or of its normal. Bands: 95 % bootstrap "
    "intervals over channels."
)


def eigenconnectivity_figure(networks: Mapping[str, Eigenconnectivity]) -> Figure:
    """Draw the eigenconnectivity of one or more networks, one below the other.

    Above, the channels' orientations, the mean of the aligned kernels and their principal
    components; below, the mean weight by distance and by relative orientation, and the share of
    variance of the components.

    Parameters
    ----------
    networks
        By their names.
    """
    if not networks:
        raise ValueError("there is no network to draw")
    with style():
        figure = new_figure(INCHES * len(networks) + 0.45)
        blocks = figure.subfigures(len(networks), 1, squeeze=False)[:, 0]
        for block, (name, found) in zip(blocks, networks.items(), strict=True):
            _network(block, name, found)
        footnote(figure, NOTE)
    return figure


def _network(block: SubFigure, name: str, found: Eigenconnectivity) -> None:
    count = len(found.components)
    reached = found.shares[:count].sum()
    block.suptitle(f"{name}: {count} components make up {reached:.0%} of the variance", fontsize=8)
    rows = block.add_gridspec(2, 1, height_ratios=(1, 1.5))

    maps, curves = rows[0].subgridspec(1, SHOWN + 2), rows[1].subgridspec(1, 3)
    panels = [block.add_subplot(maps[place]) for place in range(SHOWN + 2)]
    for axes in panels:
        axes.set_axis_off()
    _orientations(panels[0], found)
    _map(panels[1], found.mean, found.disc, "mean")
    for place, component in enumerate(found.components[:SHOWN]):
        title = f"{place + 1}: {found.shares[place]:.1%}"
        _map(panels[place + 2], component, found.disc, title)

    _distance(block.add_subplot(curves[0]), found)
    _angle(block.add_subplot(curves[1]), found)
    _spectrum(block.add_subplot(curves[2]), found)


def _orientations(axes: Axes, found: Eigenconnectivity) -> None:
    """Draw a ring with a mark at each channel's orientation, on either end."""
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=LIGHT, linewidth=0.8)
    for angle in found.orientations:
        for end in (1, -1):
            x, y = end * np.cos(angle), end * np.sin(angle)
            axes.plot([0.55 * x, x], [0.55 * y, y], color="black", linewidth=0.8, alpha=0.6)
    axes.set(xlim=(-1.15, 1.15), ylim=(1.15, -1.15), aspect="equal")  # y goes down
    total = len(found.channels) + len(found.left_out)
    _title(axes, f"{len(found.channels)} of {total}")
    axes.text(0, 0, "orien-\ntations", ha="center", va="center", fontsize=5.5, color=GREY)


def _map(axes: Axes, weights: Floats, disc: np.ndarray, title: str) -> None:
    reach = abs(weights).max() or 1.0
    shown = np.where(disc, weights, np.nan)
    axes.imshow(shown, cmap=ORANGE_BLUE, vmin=-reach, vmax=reach, interpolation="nearest")
    middle, size = (len(disc) - 1) / 2, len(disc)
    for end in (-0.5, size - 0.5):
        outwards = np.sign(end - middle) * 0.09 * size
        axes.plot([middle] * 2, [end, end + outwards], color="black", linewidth=1.2, clip_on=False)
    axes.set(xlim=(-1, size), ylim=(1.1 * size - 0.5, -0.1 * size - 0.5))
    _title(axes, title)


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=7, weight="normal", loc="center", pad=2)


def _distance(axes: Axes, found: Eigenconnectivity) -> None:
    profiles = found.association
    _profile(axes, profiles.around, "all around", GREY)
    _profile(axes, profiles.across, "across", PINK)
    _profile(axes, profiles.along, "along", GREEN)
    _finish(axes, "like orientations", "along - across", profiles.collinearity)
    axes.set(xlabel="distance (pixels of the map)", ylabel="mean weight")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend, which holds for both
    axes.legend(loc="upper center", ncols=3, handlelength=1, columnspacing=1, borderaxespad=0)


def _angle(axes: Axes, found: Eigenconnectivity) -> None:
    profiles = found.association
    _profile(axes, profiles.across_by_angle, "across", PINK)
    _profile(axes, profiles.along_by_angle, "along", GREEN)
    _finish(axes, "all distances but 0", "like - orthogonal, along", profiles.likeness)
    axes.set(xlabel="difference in orientation (°)", xticks=[0, 30, 60, 90])


def _profile(axes: Axes, profile: Profile, label: str, colour: str) -> None:
    axes.fill_between(profile.at, profile.low, profile.high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(profile.at, profile.mean, "o-", color=colour, label=label, markersize=2.5)


def _finish(axes: Axes, which: str, difference: str, contrast: Estimate) -> None:
    axes.axhline(0, color=GREY, linewidth=0.6, zorder=1)
    axes.ticklabel_format(axis="y", scilimits=(-3, 3))
    numbers = f"{contrast.value:.2g} ({contrast.low:.2g} to {contrast.high:.2g})"
    if np.isnan(contrast.value):
        numbers = "too few pairs"
    axes.set_title(f"{which}\n{difference}: {numbers}", fontsize=6, weight="normal")


def _spectrum(axes: Axes, found: Eigenconnectivity) -> None:
    count = len(found.components)
    numbers = np.arange(1, len(found.shares) + 1)
    axes.plot(numbers, np.cumsum(found.shares), color="k")
    axes.plot(numbers[:count], np.cumsum(found.shares)[:count], "o", color="k", markersize=2)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="components")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_title(
        f"variance together\ndots: the {count} components kept", fontsize=6, weight="normal"
    )
    axes.grid(color=LIGHT, linewidth=0.6)
