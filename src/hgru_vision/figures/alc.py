"""Fig. 3b: area under the learning curve of each network on each path length."""

from matplotlib.figure import Figure

from hgru_vision.analysis.study import Study
from hgru_vision.figures.names import MAIN
from hgru_vision.figures.panels import figure_of_panels

__all__ = ["alc"]


def alc(study: Study) -> Figure:
    """Draw the ALC by network and length, of the most accurate run as in the paper.

    For runs of several stages it is that of the last stage, and the axis says so.
    """
    return figure_of_panels(study, MAIN, "alc", columns=3)
