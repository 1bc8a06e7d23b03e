"""The figures of results by name, each with its place in the paper; modules load when drawn."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hgru_vision.analysis.study import Study

__all__ = ["FIGURES", "check_name", "draw"]

FIGURES = {
    "accuracy": "Fig. 2a: accuracy by network and path length",
    "alc": "Fig. 2b: area under the learning curve",
    "parameters": "Fig. 2c: accuracy against the multiple of the hGRU's parameters",
    "exemplars": "Fig. 2d: images of each path length",
    "supplement": "Supplement: the hGRU and additional control networks",
    "beyond": "Networks that the paper does not have",
    "curves": "Learning curves of all runs",
    "seeds": "Accuracy of every run, and how many failed",
}
"""What each figure shows. Its module and its function have its name."""


def check_name(name: str) -> str:
    """Return the name of a figure; refuse another and suggest the nearest."""
    if name not in FIGURES:
        near = get_close_matches(name, FIGURES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no figure {name!r}; there are {', '.join(FIGURES)}{hint}")
    return name


def draw(name: str, study: Study) -> Figure:
    """Draw a figure of a study.

    Raises
    ------
    NothingToDraw
        If the study has nothing of what the figure shows.
    """
    module = import_module(f"hgru_vision.figures.{check_name(name)}")
    return getattr(module, name)(study)
