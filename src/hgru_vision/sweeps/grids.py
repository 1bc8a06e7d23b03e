"""Grids that have a name. What comes first is run first."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product as combinations
from typing import Any

from hgru_vision.analysis.psychophysics_study import study_runs
from hgru_vision.models.catalogue import CATALOGUE, Family
from hgru_vision.papers.linsley2018 import PATH_LENGTHS, RUNS
from hgru_vision.recipes import make_run
from hgru_vision.recipes.quick import SMALL
from hgru_vision.sweeps.grid import Grid, product
from hgru_vision.training.config import RunConfig, Stage

__all__ = [
    "GRIDS",
    "MAIN",
    "contours",
    "contours_wide",
    "curriculum",
    "networks",
    "paper",
    "paper14",
    "recurrent",
    "released14",
    "tiny",
]

FEW_SEEDS = range(3)  # of runs that take hours
MAIN = ("hgru", "hgru_6", "hgru_4", "hgru_no_linear", "hgru_no_quadratic", "gru")
"""The recurrent networks of Fig. 3."""

# Of each condition, 100 batches; the learning rate falls over the last 25. The paper trains on
# 900,000, and on labels alone. With 16,000 hardly any condition is hard (docs/contours.md).
CONTOUR_IMAGES, CONTOUR_COOL_DOWN, CONTOUR_TEST_IMAGES = 3_200, 25, 2_000

# 2.06 degrees, in the paper's field of 8. Five paddles so far apart have too few places in it.
WIDE_LENGTHS, WIDE_SHEAR = (3, 4), 0.8
WIDE = {"cells": 8, "cell": 1.0, "eccentricity": 3.0}


# With batch norm before the maximum a U-Net did not leave chance (docs/reproduce).
OPTIONS: dict[Family, dict[str, Any]] = {"per-pixel": {"pool_first": True}}


def recurrent() -> Iterator[RunConfig]:
    """Compare the recurrent networks of the paper, lesions and shorter hGRUs among them."""
    models = [entry.name for entry in CATALOGUE.values() if entry.family == "recurrent"]
    return _screened(models, FEW_SEEDS)


def networks() -> Iterator[RunConfig]:
    """Compare all networks, the paper's own before others.

    But for `hgru_small`, which is made for another canvas.
    """
    entries = sorted(CATALOGUE.values(), key=lambda entry: entry.family == "beyond")
    return _screened([each.name for each in entries if each.name != "hgru_small"], range(RUNS))


def _screened(models: Iterable[str], seeds: Iterable[int]) -> Iterator[RunConfig]:
    """Give each network all lengths in turn, before the next one has any.

    The run of a length begins as that of the length before (see `jobs`): in this order length 14
    is reached soonest, and 6 and 9 cost a test each.
    """
    for seed, model in combinations(seeds, models):
        options = OPTIONS.get(CATALOGUE[model].family, {})
        for run in product("screen", models=[model], lengths=PATH_LENGTHS, seeds=[seed]):
            yield replace(run, options=options)


def paper() -> Iterator[RunConfig]:
    """Train the recurrent networks of Fig. 3 exactly as the paper does; `paper14` is part of it."""
    return product("paper", models=MAIN, lengths=PATH_LENGTHS, seeds=FEW_SEEDS)


def paper14() -> Iterator[RunConfig]:
    """Train the hGRU exactly as the paper does, on its longest paths."""
    return product("paper", lengths=PATH_LENGTHS[-1:], seeds=FEW_SEEDS)


def released14() -> Iterator[RunConfig]:
    """Train the authors' released network on images of their released program, as `paper14` is."""
    return product(
        "paper",
        models=["hgru_released"],
        lengths=PATH_LENGTHS[-1:],
        seeds=FEW_SEEDS,
        preset="authors",
    )


def curriculum() -> Iterator[RunConfig]:
    """Train the hGRU by curriculum with as many seeds as the paper has runs."""
    return product("curriculum", seeds=range(RUNS))


def contours() -> Iterator[RunConfig]:
    """Train the network for natural images further on each of 28 conditions of the contours."""
    return study_runs(seeds=FEW_SEEDS, recipe=_contours)


def contours_wide() -> Iterator[RunConfig]:
    """Train it on paddles two degrees apart, where people are at chance; same as `contours`."""
    return product(_contours, lengths=WIDE_LENGTHS, seeds=FEW_SEEDS, shear=WIDE_SHEAR, changes=WIDE)


def _contours(
    *, length: int, shear: float, seed: int, changes: dict[str, Any] | None = None
) -> RunConfig:
    run = make_run(
        "contours",
        start="contour_hgru.bsds500",
        length=length,
        shear=shear,
        masks=True,
        shear_columns=False,
        changes=changes,
        images=CONTOUR_IMAGES,
        seed=seed,
    )
    return replace(
        run,
        cool_down=CONTOUR_COOL_DOWN,
        evaluate_every=25,
        evaluation_images=500,
        test_images=CONTOUR_TEST_IMAGES,
    )


def tiny() -> Iterator[RunConfig]:
    """Give twelve runs of seconds, to try a sweep with; too short to learn much."""
    return product(_tiny, models=("hgru", "gru"), seeds=range(6))


def _tiny(*, model: str, seed: int) -> RunConfig:
    stage = Stage(sources=(SMALL,), images=320)
    return RunConfig(
        recipe="tiny",
        model=model,
        options={"timesteps": 2},
        seed=seed,
        stages=(stage,),
        batch=16,
        evaluate_every=10,
        evaluation_images=64,
        test_images=64,
        statistics_batches=2,
        checkpoint_every=5,
    )


GRIDS: dict[str, Grid] = {
    grid.__name__: grid
    for grid in (
        tiny,
        recurrent,
        networks,
        paper,
        paper14,
        released14,
        curriculum,
        contours,
        contours_wide,
    )
}
