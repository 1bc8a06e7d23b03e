"""Short paths first: a network at length 14 in a fifth of the paper's images."""

from hgru_vision.papers import linsley2018
from hgru_vision.training.config import FULL_RATE_INPUTS, RunConfig, Source, Stage

__all__ = ["curriculum", "lengths_up_to"]

# Paddles of the first stage. Both markers of such a path lie within one 15x15 kernel; at length 6
# what a network should learn hardly shows in one that has learnt nothing yet.
FIRST_LENGTH = 3

# What to learn first where nothing starts the learning: a shortcut that is closed in the end.
BEGINNINGS = {"matched": "paper"}

# At most; a stage ends as soon as it is learnt.
FIRST, NEXT, LAST = 24_000, 28_000, 320_000  # images
PROMOTE_AT = 0.9
COOL_DOWN = 5_000  # batches

STUCK_AFTER = 24_000  # images of a stage; five seeds of five left chance within 8,000


def curriculum(
    *,
    model: str = "hgru",
    preset: str = "paper",
    length: int = linsley2018.PATH_LENGTHS[-1],
    images: int = LAST,
    mixed: bool = False,
    start: str | None = None,
    seed: int = 0,
) -> RunConfig:
    """Train on paths of 3 paddles, then on the paper's lengths up to the one wanted.

    Weights and the optimiser go on from stage to stage. From scratch, three seeds of three were at
    chance after 1,800,000 images of length 14. Horizontal kernels learn at a third of the rate of
    the rest. A run that is still at chance after 24,000 images of a stage ends there. For `matched`
    all stages but the last are of `paper`, one of the same length before it among them
    (docs/stuck.md).

    Parameters
    ----------
    model, preset, length, seed
        Network, Pathfinder, paddles in a path, and the seed of the network's starting values.
    images
        Of the last stage, which has no promotion.
    mixed
        Train on all these lengths together in the last stage: a network trained on one length in
        the end knows that length alone (docs/reproduce). It is judged on the longest.
    start
        Folder of a run, or the name of shipped weights, to begin from, readout and all: there is
        the last stage alone then. Of `matched`, weights of the same length of `paper` have more of
        it to begin with than the promotions of the stages ask for.

    Examples
    --------
    >>> run = curriculum()
    >>> [stage.sources[0].length for stage in run.stages], sum(s.images for s in run.stages)
    ([3, 6, 9, 14], 400000)
    """
    lengths = lengths_up_to(length)
    first = BEGINNINGS.get(preset)
    before = lengths[:-1] if first is None else lengths
    if start is not None:
        before = []
    stages = [
        Stage(
            sources=(Source(preset=first or preset, length=each),),
            images=NEXT if number else FIRST,
            promote_at=PROMOTE_AT,
        )
        for number, each in enumerate(before)
    ]
    together = lengths if mixed else [length]
    sources = tuple(Source(preset=preset, length=each) for each in together)
    last = Stage(sources=sources, images=images)
    return RunConfig(
        recipe="curriculum",
        model=model,
        seed=seed,
        stages=(*stages, last),
        full_rate_inputs=FULL_RATE_INPUTS,
        cool_down=min(COOL_DOWN, images // (2 * linsley2018.BATCH_SIZE)),
        clip=5.0,
        precision="tf32",
        evaluate_every=250,
        start=start,
        stuck_after=STUCK_AFTER,
        stop_when_stuck=True,
    )


def lengths_up_to(length: int) -> list[int]:
    """Give the lengths of the stages before one, and that one.

    Examples
    --------
    >>> lengths_up_to(9), lengths_up_to(20)
    ([3, 6, 9], [3, 6, 9, 14, 20])
    """
    before = FIRST_LENGTH, *linsley2018.PATH_LENGTHS
    return [*(each for each in before if each < length), length]
