"""A grid: the runs of a sweep, in the order in which they are wanted.

A grid is a function without arguments that returns configurations. Those of `grids.py` have a name;
a user's own is given as FILE.py:FUNCTION.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import product as combinations
from typing import Any

from hgru_vision.recipes import Recipe, make_run
from hgru_vision.references import find_function, told_with_its_place
from hgru_vision.training.config import RunConfig

__all__ = ["Grid", "load_grid", "product"]

Grid = Callable[[], Iterable[RunConfig]]


def product(
    recipe: str | Recipe,
    *,
    models: Iterable[str] | None = None,
    lengths: Iterable[int] | None = None,
    seeds: Iterable[int] = (0,),
    **keywords: Any,
) -> Iterator[RunConfig]:
    """Combine networks, lengths and seeds under one recipe.

    Every network and length has its first seed before any has its second, so that a sweep which is
    stopped early compares the networks fairly.

    Parameters
    ----------
    recipe
        Name of a recipe, FILE.py:FUNCTION, or the function itself.
    models, lengths
        What to combine; the recipe's own if not given. Networks vary fastest, then lengths.
    seeds
        Of the networks' starting values; they vary slowest.
    **keywords
        For the recipe, such as ``preset="matched"``.

    Examples
    --------
    >>> runs = product("screen", models=["hgru", "gru"], lengths=[6], seeds=[0, 1])
    >>> [(run.model, run.seed) for run in runs]
    [('hgru', 0), ('gru', 0), ('hgru', 1), ('gru', 1)]
    """
    axes = {"seed": seeds, "length": lengths, "model": models}
    given = {name: list(values) for name, values in axes.items() if values is not None}
    for values in combinations(*given.values()):
        yield make_run(recipe, **dict(zip(given, values, strict=True)), **keywords)


def load_grid(reference: str) -> list[RunConfig]:
    """Give the runs of a grid.

    Parameters
    ----------
    reference
        A name of `grids.GRIDS`, or FILE.py:FUNCTION.

    Raises
    ------
    ValueError, FileNotFoundError
        If there is no such grid, it fails, or it has no runs.
    TypeError
        If it returns anything but configurations.

    Examples
    --------
    >>> len(load_grid("tiny"))
    12
    """
    from hgru_vision.sweeps.grids import GRIDS  # which is made with `product`

    grid = find_function(reference, "grid", GRIDS)
    with told_with_its_place(reference, "grid"):
        made = grid()
        runs = list(made) if isinstance(made, Iterable) else None
    if runs is None:
        raise TypeError(f"the grid {reference} returned {type(made).__name__}, not RunConfigs")
    if not runs:
        raise ValueError(f"the grid {reference} has no runs")
    for number, run in enumerate(runs):
        if not isinstance(run, RunConfig):
            raise TypeError(
                f"run {number} of the grid {reference} is {type(run).__name__}, not RunConfig"
            )
    return runs
