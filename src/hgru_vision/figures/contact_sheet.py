"""A sheet of labelled examples."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from hgru_vision.data.datasets import Pathfinder
from hgru_vision.figures.style import PALETTE, new_figure, style
from hgru_vision.stimuli._types import Array
from hgru_vision.stimuli.scenes import Stimulus

PATH_COLOURS = np.array([to_rgb(PALETTE[2]), to_rgb(PALETTE[4])])  # of the two target paths
INCHES = 1.3  # of an image


def contact_sheet_figure(
    data: Pathfinder, rows: int = 3, columns: int = 6, show_paths: bool = False
) -> Figure:
    """Draw the first items of a dataset with their labels.

    Parameters
    ----------
    data
        Where the examples come from.
    rows, columns
        Size of the sheet.
    show_paths
        Colour the two target paths.

    Examples
    --------
    >>> figure = contact_sheet_figure(Pathfinder(length=6, count=4), rows=1, columns=4)
    >>> [axes.get_title() for axes in figure.axes].count("connected")
    2
    """
    shown = min(rows * columns, len(data))
    rows = -(-shown // columns)
    with style():
        figure = new_figure(rows * (INCHES + 0.2) + 0.3, columns * INCHES)
        figure.suptitle(_title(data), fontsize=8.5)
        grid = figure.subplots(rows, columns, squeeze=False)
        for index, axes in enumerate(grid.flat):
            axes.set_axis_off()
            if index < shown:
                stimulus = data.stimulus(index)
                picture = coloured(stimulus) if show_paths else stimulus.image / 255
                axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axes.set_title(_caption(stimulus), loc="center", weight="normal", size=7.5, pad=3)
    return figure


def coloured(stimulus: Stimulus) -> Array:
    """Paint the target paths of an image, (H, W, 3) in [0, 1]; markers stay white."""
    picture = np.repeat(stimulus.image[:, :, None] / 255, 3, axis=2)
    for mask, colour in zip(stimulus.masks, PATH_COLOURS, strict=False):
        picture[mask] *= colour
    for x, y in stimulus.markers:
        row, column = np.indices(stimulus.image.shape)
        near = (column + 0.5 - x) ** 2 + (row + 0.5 - y) ** 2
        radius = stimulus.config.marker_radius * stimulus.config.size / stimulus.config.canvas
        picture[near <= radius**2] = 1
    return picture


def _caption(stimulus: Stimulus) -> str:
    if stimulus.config.markers == 1:
        return f"{stimulus.config.length} paddles"
    return "connected" if stimulus.label else "not connected"


def _title(data: Pathfinder) -> str:
    config = data.config
    return (
        f"Pathfinder, paths of {config.length} paddles, {config.size} x {config.size} pixels, "
        f"seed {data.seed}, {data.split}"
    )
