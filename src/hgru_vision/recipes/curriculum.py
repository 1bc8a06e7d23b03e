"""Short paths first: a network at length 14 in a fifth of the paper's images."""

from hgru_vision.papers import linsley2018
from hgru_vision.training.config import RunConfig, Source, Stage

__all__ = ["curriculum", "lengths_up_to"]

# At most; a stage ends as soon as it is learnt.
FIRST, NEXT, LAST = 96_000, 64_000, 240_000  # images
PROMOTE_AT = 0.92
COOL_DOWN = 4_000  # batches

# Networks that learnt length 6 had 94 % after 32,000 to 80,000 images; one that was at chance after
# 96,000 went on to length 9 in vain.
STUCK_AFTER = 64_000  # images of a stage


def curriculum(
    *,
    model: str = "hgru",
    preset: str = "paper",
    length: int = linsley2018.PATH_LENGTHS[-1],
    seed: int = 0,
) -> RunConfig:
    """Train on the paper's lengths from the shortest to the one wanted.

    Weights and the optimiser go on from stage to stage. From scratch, length 14 stays at chance for
    hundreds of thousands of images; length 6 does not. A run that is still at chance after 64,000
    images of a stage ends there.

    Examples
    --------
    >>> run = curriculum()
    >>> [stage.sources[0].length for stage in run.stages], sum(s.images for s in run.stages)
    ([6, 9, 14], 400000)
    """
    lengths = lengths_up_to(length)
    stages = [
        Stage(
            sources=(Source(preset=preset, length=each),),
            images=NEXT if number else FIRST,
            promote_at=PROMOTE_AT,
        )
        for number, each in enumerate(lengths[:-1])
    ]
    last = Stage(sources=(Source(preset=preset, length=length),), images=LAST)
    return RunConfig(
        recipe="curriculum",
        model=model,
        seed=seed,
        stages=(*stages, last),
        cool_down=COOL_DOWN,
        clip=5.0,
        precision="tf32",
        evaluate_every=250,
        stuck_after=STUCK_AFTER,
        stop_when_stuck=True,
    )


def lengths_up_to(length: int) -> list[int]:
    """Give the paper's lengths below one, and that one.

    Examples
    --------
    >>> lengths_up_to(9), lengths_up_to(20)
    ([6, 9], [6, 9, 14, 20])
    """
    return [*(each for each in linsley2018.PATH_LENGTHS if each < length), length]
