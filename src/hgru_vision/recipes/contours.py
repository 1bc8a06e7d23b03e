"""A network for natural images, trained further on the Synthetic Contours."""

from typing import Any

from hgru_vision.papers import linsley2018
from hgru_vision.recipes.boundaries import FULL_RATE_INPUTS
from hgru_vision.stimuli.contours import conditions
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.start import config_of

__all__ = ["contour_masks", "contours"]

CLIP = 5.0  # norm of the gradient
WARM_UP = 100  # batches of `contour_masks`


def contours(
    *,
    start: str | None = None,
    model: str = "contour_hgru",
    length: int = linsley2018.CONTOUR_LENGTHS[1],
    shear: float = 0.0,
    canvas: int = linsley2018.CONTOUR_EXPERIMENT_CANVAS,
    images: int = round(linsley2018.TRAIN_FRACTION * linsley2018.IMAGES),
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
        Folder of a run, such as one of `boundaries` or `contour_masks`, or the name of shipped
        weights. Model and options are then that run's. Without one the network starts from random
        values.
    model, options
        The network, if there is no start.
    length, shear, canvas
        The condition.
    images
        To train on, each seen once.
    seed
        Of the new readout.

    Examples
    --------
    >>> run = contours(length=5, shear=0.2, images=640)
    >>> run.task.name, run.task.changes["shear"]
    ('contours-5', 0.2)
    """
    model, options = _network(start, model, options)
    source = _source(length, shear, canvas)
    return RunConfig(
        recipe="contours",
        model=model,
        options=options,
        seed=seed,
        stages=(Stage(sources=(source,), images=images),),
        full_rate_inputs=FULL_RATE_INPUTS,
        clip=CLIP,
        precision="tf32",
        evaluate_every=250,
        start=start,
        start_readout=start is None,
    )


def contour_masks(
    *,
    start: str | None = None,
    model: str = "contour_hgru",
    canvas: int = linsley2018.CONTOUR_EXPERIMENT_CANVAS,
    images: int = 16_000,
    options: dict[str, Any] | None = None,
    seed: int = 0,
) -> RunConfig:
    """Show a network where contours lie, in all 28 conditions together; no part of the paper.

    For `contours` to begin from. A label says little about where to look: a maximum over thousands
    of places lets it reach one of them. With their masks contours are found after a few thousand
    images, and labels are learnt quickly from there (docs/contours.md).

    Parameters
    ----------
    start
        Folder of a `boundaries` run, or the name of shipped weights. Model and options are then
        that run's. Without one the network starts from random values.
    model, options
        The network, if there is no start.
    canvas
        Height and width of the images.
    images
        To train on, each seen once.
    seed
        Of the network's starting values, if there is no start.

    Examples
    --------
    >>> run = contour_masks(images=640)
    >>> len(run.stages[0].sources), run.target, run.task.name
    (28, 'segmentation', 'contours-17')
    """
    model, options = _network(start, model, options)
    sources = tuple(_source(each.length, each.shear, canvas) for each in conditions())
    return RunConfig(
        recipe="contour_masks",
        model=model,
        options=options,
        seed=seed,
        stages=(Stage(sources=sources, images=images),),
        target="segmentation",
        balance=True,
        full_rate_inputs=FULL_RATE_INPUTS,
        warm_up=WARM_UP,
        clip=CLIP,
        precision="tf32",
        evaluate_every=250,
        test_images=2_000,
        start=start,
    )


def _network(
    start: str | None, model: str, options: dict[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Give name and options of the network that a run begins with."""
    if start is None:
        return model, options or {}
    first = config_of(start)
    return first.model, first.options


def _source(length: int, shear: float, canvas: int) -> Source:
    changes = {"shear": shear, "canvas": canvas}
    return Source(dataset="contours", length=length, changes=changes)
