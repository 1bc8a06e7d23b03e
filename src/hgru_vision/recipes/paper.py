"""The paper's own protocol."""

from difflib import get_close_matches

from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.papers import linsley2018
from hgru_vision.references import is_reference
from hgru_vision.training.config import RunConfig, Source, Stage

__all__ = ["paper"]

EVALUATION_IMAGES = 4_000  # with 10,000, 56 evaluations take a tenth of a run on a GPU


def paper(
    *,
    model: str = "hgru",
    preset: str = "paper",
    length: int = linsley2018.PATH_LENGTHS[-1],
    seed: int = 0,
) -> RunConfig:
    """Train as Main, "Model implementation", and Supp., "Model architecture details" say.

    From scratch, Adam at 1e-3, batches of 32, two epochs over 900,000 images (four for residual and
    per-pixel networks), an evaluation every 1,000 batches, judged on 100,000 images. An evaluation
    on the way looks at 4,000 held-out images of its own. A network of one's own gets two epochs.
    TF32 is allowed, of which the paper says nothing.

    Examples
    --------
    >>> paper(model="resnet18").stages[0].images
    3600000
    """
    if model not in CATALOGUE and not is_reference(model):
        near = get_close_matches(model, CATALOGUE, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"no model {model!r} among the paper's networks for Pathfinder ('hgru models' lists "
            f"them; networks for natural images are trained by the recipe boundaries){hint}"
        )
    images = round(linsley2018.TRAIN_FRACTION * linsley2018.IMAGES)
    epochs = CATALOGUE[model].epochs if model in CATALOGUE else linsley2018.EPOCHS
    source = Source(preset=preset, length=length)
    return RunConfig(
        recipe="paper",
        model=model,
        seed=seed,
        stages=(Stage(sources=(source,), images=epochs * images, unique=images),),
        precision="tf32",
        evaluation_images=EVALUATION_IMAGES,
        test_images=linsley2018.IMAGES - images,
        stuck_after=images // 2,
    )
