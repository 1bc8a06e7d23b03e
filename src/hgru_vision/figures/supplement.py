"""The supplement's comparison: control networks by length, and against their size."""

from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from hgru_vision.analysis.study import Study
from hgru_vision.figures.names import SUPPLEMENT
from hgru_vision.figures.panels import draw_panels, key, require
from hgru_vision.figures.parameters import draw_against_parameters
from hgru_vision.figures.style import GREY, NothingToDraw, new_figure, style

__all__ = ["supplement"]


def supplement(study: Study) -> Figure:
    """Draw accuracy by length (above) and against the number of parameters (below)."""
    require(study, SUPPLEMENT, "accuracy")
    with style():
        figure = new_figure(height=6.6)
        halves = GridSpec(2, 1, figure=figure, height_ratios=(1, 1.05))
        above, below = (figure.add_subfigure(halves[row]) for row in range(2))
        draw_panels(above, study, SUPPLEMENT, "accuracy", columns=4)
        key(above, study, "accuracy")
        try:
            draw_against_parameters(below, study, SUPPLEMENT)
        except NothingToDraw as nothing:
            figure.set_figheight(3.6)
            halves.set_height_ratios((1, 0.1))  # a line needs no half
            axes = below.subplots()
            axes.set_axis_off()
            axes.text(0, 0.9, str(nothing), color=GREY)
    return figure
