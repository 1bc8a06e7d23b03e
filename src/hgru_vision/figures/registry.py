"""The figures of results by name, each with its place in the paper; modules load when drawn."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hgru_vision.analysis.study import Study

__all__ = [
    "COMPARISONS",
    "FIGURES",
    "LEDGER_PAGES",
    "NETWORK_FIGURES",
    "check_name",
    "draw",
    "figures_of",
]

FIGURES = {
    "accuracy": "Fig. 3a: accuracy by network and path length",
    "alc": "Fig. 3b: area under the learning curve",
    "parameters": "Fig. 3c: accuracy against the multiple of the hGRU's parameters",
    "exemplars": "Fig. 3d: images of each path length",
    "supplement": "Supplement: the hGRU and additional control networks",
    "beyond": "Networks that the paper does not have",
    "curves": "Learning curves of all runs",
    "seeds": "Accuracy of every run, and how many failed",
}
"""What each figure shows. Its module and its function have its name."""

COMPARISONS = ("accuracy", "alc", "parameters", "supplement", "beyond")
"""Those that compare networks. Of one network alone they are drawn if asked for by name."""

LEDGER_PAGES = {
    "claims": "What the paper says about recurrent networks, and what our runs say",
    "generalisation": "Trained networks on images of other kinds",
    "contours": "Accuracy on synthetic contours against their spacing, as people are tested",
    "boundaries": "Precision and recall of the networks for natural images",
}
"""What is not of one study: of all rows, or of what lies in a folder of its name beside them."""

NETWORK_FIGURES = {
    "eigenconnectivity": "Supplement: patterns of the learnt horizontal connections",
    "dynamics": "Activity of recurrent networks over their steps",
}
"""Figures of trained networks, which a ledger does not hold. The module of the same name in
`hgru_vision.commands` has `measure`, which takes a network, and `draw`, which takes all."""

_WITHOUT_CHANCE = ("exemplars",)  # all others have a line at 50 %


def check_name(name: str) -> str:
    """Return the name of a figure; refuse another and suggest the nearest."""
    known = FIGURES | LEDGER_PAGES | NETWORK_FIGURES
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no figure {name!r}; there are {', '.join(known)}{hint}")
    return name


def figures_of(study: Study) -> list[str]:
    """Name the figures of a study that are drawn without being asked for by name."""
    alone = len({network.model for network in study.networks}) == 1
    return [name for name in FIGURES if not (alone and name in COMPARISONS)]


def draw(name: str, study: Study) -> Figure:
    """Draw a figure of a study.

    Raises
    ------
    NothingToDraw
        If the study has nothing of what the figure shows, or its accuracy is another.
    """
    from hgru_vision.figures.style import NothingToDraw

    if not study.pathfinder:
        raise NothingToDraw("its runs are on no Pathfinder")
    if study.segmentation and check_name(name) not in _WITHOUT_CHANCE:
        raise NothingToDraw("its runs are judged by pixels, for which chance is not 50 %")
    module = import_module(f"hgru_vision.figures.{check_name(name)}")
    return getattr(module, name)(study)
