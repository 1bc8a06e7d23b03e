"""Fig. 3a: accuracy of each network on each path length, a panel a class of networks."""

from matplotlib.figure import Figure

from hgru_vision.analysis.study import Study
from hgru_vision.figures.names import MAIN
from hgru_vision.figures.panels import figure_of_panels

__all__ = ["accuracy"]


def accuracy(study: Study) -> Figure:
    """Draw accuracy by network and length: the best run, and mean and deviation over runs.

    Dotted lines show how well the label is read without following a path: an accuracy below them
    says nothing of tracing.
    """
    return figure_of_panels(study, MAIN, "accuracy", columns=3)
