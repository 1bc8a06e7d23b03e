"""A sheet of synthetic contours, the contour in red as in the paper's supplement."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from hgru_vision.stimuli._types import Array
from hgru_vision.stimuli.contours import CONTOUR, ContourStimulus

RED = np.array([1.0, 0.25, 0.2])
INCHES, DPI = 2.6, 200  # twice the pixels of an image of 256


def contour_sheet_figure(
    stimuli: Sequence[ContourStimulus], columns: int = 4, show_contour: bool = True
) -> Figure:
    """Draw stimuli side by side, each with its length, shear and label.

    Parameters
    ----------
    stimuli
        What to show; they may be of several conditions.
    columns
        Stimuli in a row.
    show_contour
        Paint contours red.

    Examples
    --------
    >>> from hgru_vision.stimuli.contours import ContourConfig, draw
    >>> pair = [draw(ContourConfig(length=5, shear=0.2), 0, index) for index in (0, 1)]
    >>> sorted(axes.get_title() for axes in contour_sheet_figure(pair, columns=2).axes)
    ['absent, 5 paddles, shear 0.2', 'present, 5 paddles, shear 0.2']
    """
    columns = min(columns, len(stimuli))
    rows = -(-len(stimuli) // columns)
    figure = Figure(figsize=(columns * INCHES, rows * (INCHES + 0.2)), dpi=DPI)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, stimulus in zip(grid.flat, stimuli, strict=False):
        picture = reddened(stimulus) if show_contour else stimulus.image / 255
        # Not "nearest": paddles are three pixels long, and would be as uneven as the enlargement.
        axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="hanning")
        config = stimulus.config
        presence = "present" if stimulus.label else "absent"
        what = f"{presence}, {config.length} paddles, shear {config.shear:g}"
        axes.set_title(what, fontsize=8, pad=3)
    figure.tight_layout(pad=0.4)
    return figure


def reddened(stimulus: ContourStimulus) -> Array:
    """Paint the contour of an image red, (H, W, 3) in [0, 1]."""
    picture = np.repeat(stimulus.image[:, :, None] / 255, 3, axis=2)
    contour = stimulus.masks[CONTOUR]
    picture[contour] = np.minimum(2 * picture[contour], 1) * RED  # red is darker than white
    return picture
