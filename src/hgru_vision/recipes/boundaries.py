"""Contours in natural images: BSDS500, as the paper's supplement has it."""

from typing import Any

from hgru_vision.papers import linsley2018
from hgru_vision.training.config import RunConfig, Source, Stage

__all__ = ["boundaries"]

# What the paper does not give:
BATCH = 8
CLIP = 5.0  # norm of the gradient
WARM_UP = 500  # batches at most, and at most a tenth of the run
COOL_DOWN_SHARE = 5  # the learning rate falls over a fifth of the run

# A quarter of the learning rate for 15x15 kernels over 128 channels. In small trials (16 channels,
# 2,800 crops) hGRUs whose kernels had a quarter or the whole of it were a little better than their
# control without recurrence, one with a fifteenth a little worse (rows not kept).
FULL_RATE_INPUTS = 7_200


def boundaries(
    *,
    root: str = "BSR",
    vgg: str | None = None,
    model: str = "contour_hgru",
    epochs: int = linsley2018.BSDS_EPOCHS,
    options: dict[str, Any] | None = None,
    changes: dict[str, Any] | None = None,
    balance: bool = True,
    seed: int = 0,
) -> RunConfig:
    """Train a network to find contours, by Supp., "Visualizing horizontal connections".

    1,000 epochs of BSDS500's 200 training images, crops of 300x300 pixels turned by up to 30
    degrees and mirrored, cross-entropy a pixel, Adam at 1e-3. What the paper does not say: batches
    of 8; the gradient clipped at a norm of 5; a learning rate that rises over the first 500 batches
    (Adam's first steps have its full size for every weight, a sixth of what those of a 15x15 kernel
    over 128 channels start with, and VGG's are trained already) and falls to 0 over the last fifth
    of the run, so that the last batches do not move the weights as much as any; a quarter of that
    rate for 15x15 kernels over 128 channels (`RunConfig.full_rate_inputs`); which pixels count
    (`BoundarySettings`) and how much (`balance`).

    Parameters
    ----------
    root
        Folder of BSDS500.
    vgg
        File with the layers of VGG16, as `load_vgg16` takes it. Without one these layers, too,
        start from random values, which the paper's did not.
    model
        contour_hgru, or its controls contour_vgg and contour_feedforward.
    epochs
        Of 200 crops each.
    options
        Keywords of the network, such as ``{"channels": 32}``.
    changes
        Fields of `BoundarySettings`, such as ``{"target": "annotator"}``.
    balance
        As `RunConfig.balance`.
    seed
        Of the network's starting values.

    Examples
    --------
    >>> run = boundaries(epochs=10)
    >>> run.model, run.stages[0].images, run.batch, run.cool_down
    ('contour_hgru', 2000, 8, 50)
    """
    from hgru_vision.data.bsds_files import SPLIT_SIZES  # with it comes SciPy

    source = Source(dataset="bsds500", path=root, changes=changes or {})
    images = epochs * SPLIT_SIZES["train"]
    return RunConfig(
        recipe="boundaries",
        model=model,
        options=options or {},
        seed=seed,
        stages=(Stage(sources=(source,), images=images),),
        target="segmentation",
        balance=balance,
        batch=BATCH,
        full_rate_inputs=FULL_RATE_INPUTS,
        warm_up=min(WARM_UP, images // (10 * BATCH)),
        cool_down=images // (COOL_DOWN_SHARE * BATCH),
        clip=CLIP,
        precision="tf32",
        evaluate_every=500,
        evaluation_images=SPLIT_SIZES["val"],
        test_images=SPLIT_SIZES["test"],
        checkpoint_every=500,
        start=vgg,
    )
