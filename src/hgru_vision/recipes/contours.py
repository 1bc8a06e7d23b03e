"""A network for natural images, trained further on a condition of the Synthetic Contours."""

from typing import Any

from hgru_vision.papers import linsley2018
from hgru_vision.recipes.boundaries import FULL_RATE_INPUTS
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.start import config_of

__all__ = ["contours"]


def contours(
    *,
    start: str | None = None,
    model: str | None = None,
    length: int = linsley2018.CONTOUR_LENGTHS[1],
    shear: float = 0.0,
    canvas: int = linsley2018.CONTOUR_EXPERIMENT_CANVAS,
    images: int = round(linsley2018.TRAIN_FRACTION * linsley2018.IMAGES),
    masks: bool = False,
    shear_columns: bool = True,
    changes: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    seed: int = 0,
) -> RunConfig:
    """Train on one condition, by Supp., "hGRU explains human contour detection".

    The readout is new: two logits an image in the place of two a pixel. The paper fine-tunes on
    900,000 images of 150x150 pixels; how often it goes through them it does not say. Horizontal
    kernels learn more slowly than the rest, as in `boundaries`.

    Parameters
    ----------
    start
        Folder of a `boundaries` run, or the name of shipped weights. Model and options are then
        that run's. Without one the network starts from random values.
    model, options
        The network, `contour_hgru` as it is in the catalogue, if there is no start.
    length, shear, canvas
        The condition.
    images
        To train on, each seen once.
    masks
        Show where the contours lie beside the labels (`Stage.mask_weight`), which is no part of the
        paper. A label reaches one of thousands of places, the largest of a map: a few thousand
        labels alone leave the network at chance (docs/contours.md).
    shear_columns
        Without it contours have two directions at every shear (`ContourConfig`). With it they have
        more at large shears than without one: the more there is to learn.
    changes
        Other fields of `ContourConfig`, such as ``{"cells": 8, "cell": 1.0}``.
    seed
        Of the new readout.

    Examples
    --------
    >>> run = contours(length=5, shear=0.2, images=640)
    >>> run.task.name, run.task.changes["shear"]
    ('contours-5', 0.2)
    """
    if start is not None:
        first = config_of(start)
        if model not in (None, first.model) or options not in (None, first.options):
            raise ValueError(f"model and options are those of {start}; give them without a start")
        model, options = first.reference, first.options
    condition: dict[str, Any] = {"shear": shear, "canvas": canvas, **(changes or {})}
    if not shear_columns:
        condition["shear_columns"] = False
    source = Source(dataset="contours", length=length, changes=condition)
    return RunConfig(
        recipe="contours",
        model=model or "contour_hgru",
        options=options or {},
        seed=seed,
        stages=(Stage(sources=(source,), images=images, mask_weight=float(masks)),),
        full_rate_inputs=FULL_RATE_INPUTS,
        clip=5.0,
        precision="tf32",
        evaluate_every=250,
        start=start,
        start_readout=start is None,
    )
