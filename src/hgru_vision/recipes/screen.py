"""All networks on the same small budget."""

from hgru_vision.papers import linsley2018
from hgru_vision.recipes.curriculum import FIRST_LENGTH, lengths_up_to
from hgru_vision.training.config import FULL_RATE_INPUTS, RunConfig, Source, Stage

__all__ = ["screen"]

# Of the stages; an eighth of the paper's images, all in all.
LENGTHS = FIRST_LENGTH, *linsley2018.PATH_LENGTHS
IMAGES = dict(zip(LENGTHS, (16_000, 48_000, 48_000, 112_000), strict=True))


def screen(
    *,
    model: str = "hgru",
    preset: str = "paper",
    length: int = linsley2018.PATH_LENGTHS[-1],
    seed: int = 0,
) -> RunConfig:
    """Train a network on a budget that is the same for all.

    The stages of `curriculum` without promotion: every network sees the same images in the same
    order, 16,000 of length 3, 48,000 of length 6, 48,000 of length 9, then 112,000 of length 14, in
    batches of 32 and at the same precision. A length beyond these gets as many as 14.

    Examples
    --------
    >>> sum(stage.images for stage in screen(length=14).stages)
    224000
    """
    longest = max(IMAGES.values())
    stages = tuple(
        Stage(
            sources=(Source(preset=preset, length=each),),
            images=IMAGES.get(each, longest),
        )
        for each in lengths_up_to(length)
    )
    return RunConfig(
        recipe="screen",
        model=model,
        seed=seed,
        stages=stages,
        full_rate_inputs=FULL_RATE_INPUTS,
        clip=5.0,
        precision="tf32",
        evaluate_every=250,
    )
