"""Networks that the paper does not have, beside its hGRU."""

from matplotlib.figure import Figure

from hgru_vision.analysis.study import Study
from hgru_vision.figures.names import BEYOND, Panels, own
from hgru_vision.figures.panels import figure_of_panels, require

__all__ = ["beyond"]


def beyond(study: Study) -> Figure:
    """Draw accuracy by length of networks beyond the paper, those of the user's own among them."""
    (title, (reference, *models)) = next(iter(BEYOND.items()))
    models += own(study)
    require(study, {title: tuple(models)}, "accuracy")
    panels: Panels = {title: (reference, *models)}
    return figure_of_panels(study, panels, "accuracy", columns=1, width=4.5)
