"""Recipes: a function that returns a complete run.

A recipe takes keywords such as ``model``, ``length`` and ``seed`` and returns a `RunConfig`. Those
here have a name; a user's own is given as FILE.py:FUNCTION.
"""

import inspect
from collections.abc import Callable
from typing import Any

from hgru_vision.recipes.boundaries import boundaries
from hgru_vision.recipes.contours import contours
from hgru_vision.recipes.curriculum import curriculum
from hgru_vision.recipes.paper import paper
from hgru_vision.recipes.quick import quick
from hgru_vision.recipes.screen import screen
from hgru_vision.references import find_function, told_with_its_place
from hgru_vision.training.config import RunConfig
from hgru_vision.training.fields import from_json

__all__ = ["RECIPES", "Recipe", "make_run"]

Recipe = Callable[..., RunConfig]

# Types of keywords whose values are looked at here, before a recipe uses them.
_CHECKED = (bool, int, float, str, str | None, dict[str, Any] | None)

RECIPES: dict[str, Recipe] = {
    "paper": paper,
    "curriculum": curriculum,
    "screen": screen,
    "quick": quick,
    "boundaries": boundaries,
    "contours": contours,
}


def make_run(reference: str | Recipe, **keywords: Any) -> RunConfig:
    """Make the run of a recipe.

    Parameters
    ----------
    reference
        Name, FILE.py:FUNCTION, or the function itself.
    **keywords
        For the recipe; any that it does not take is refused, and a value of another type.

    Examples
    --------
    >>> make_run("quick", seed=2).model
    'hgru_small'
    >>> make_run("quick", length=14)
    Traceback (most recent call last):
    TypeError: the recipe quick takes no length; it takes model, images, seed
    """
    recipe = reference
    if isinstance(recipe, str):
        recipe = find_function(recipe, "recipe", RECIPES)
    who = getattr(recipe, "__name__", reference)  # what functools.partial makes has no name
    takes = inspect.signature(recipe).parameters
    any_other = any(each.kind is each.VAR_KEYWORD for each in takes.values())
    for keyword, value in keywords.items():
        if keyword not in takes:
            if any_other:
                continue
            raise TypeError(f"the recipe {who} takes no {keyword}; it takes {', '.join(takes)}")
        if takes[keyword].annotation in _CHECKED:
            keywords[keyword] = from_json(takes[keyword].annotation, value, keyword)
    with told_with_its_place(reference, "recipe"):
        run = recipe(**keywords)
    if not isinstance(run, RunConfig):
        raise TypeError(f"the recipe {who} returned {type(run).__name__}, not a RunConfig")
    return run
