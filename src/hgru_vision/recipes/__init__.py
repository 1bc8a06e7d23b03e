"""Recipes: a function that returns a complete run.

A recipe takes keywords such as ``model``, ``length`` and ``seed`` and returns a `RunConfig`. Those
here have a name; a user's own is given as FILE.py:FUNCTION.
"""

import inspect
import runpy
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hgru_vision.recipes.curriculum import curriculum
from hgru_vision.recipes.paper import paper
from hgru_vision.recipes.quick import quick
from hgru_vision.recipes.screen import screen
from hgru_vision.training.config import RunConfig

__all__ = ["RECIPES", "Recipe", "find_recipe", "make_run"]

Recipe = Callable[..., RunConfig]

RECIPES: dict[str, Recipe] = {
    "paper": paper,
    "curriculum": curriculum,
    "screen": screen,
    "quick": quick,
}


def find_recipe(reference: str) -> Recipe:
    """Find a recipe by its name, or as FILE.py:FUNCTION.

    Examples
    --------
    >>> find_recipe("paper")(length=6, seed=1).task.name
    'paper-6'
    """
    if reference in RECIPES:
        return RECIPES[reference]
    path, colon, function = reference.rpartition(":")
    if not colon:
        near = get_close_matches(reference, RECIPES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"no recipe {reference!r} (there are {', '.join(RECIPES)}, or FILE.py:FUNCTION){hint}"
        )
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path} (from the recipe {reference})")
    names = runpy.run_path(path)
    if not callable(names.get(function)):
        raise ValueError(f"{path} defines no function {function!r}")
    found: Recipe = names[function]
    return found


def make_run(reference: str | Recipe, **keywords: Any) -> RunConfig:
    """Make the run of a recipe.

    Parameters
    ----------
    reference
        Name, FILE.py:FUNCTION, or the function itself.
    **keywords
        For the recipe; any that it does not take is refused.

    Examples
    --------
    >>> make_run("quick", seed=2).model
    'hgru_small'
    >>> make_run("quick", length=14)
    Traceback (most recent call last):
    TypeError: the recipe quick takes no length; it takes images, seed
    """
    recipe = find_recipe(reference) if isinstance(reference, str) else reference
    takes = list(inspect.signature(recipe).parameters)
    for keyword in keywords:
        if keyword not in takes:
            raise TypeError(
                f"the recipe {recipe.__name__} takes no {keyword}; it takes {', '.join(takes)}"
            )
    run = recipe(**keywords)
    if not isinstance(run, RunConfig):
        raise TypeError(
            f"the recipe {recipe.__name__} returned {type(run).__name__}, not a RunConfig"
        )
    return run
