"""A small network on a small canvas: learnt from scratch on two cores in minutes."""

from hgru_vision.papers import linsley2018
from hgru_vision.training.config import RunConfig, Source, Stage

__all__ = ["quick"]

# The paper's task at a size that a laptop learns: short paths, few distractors, a small canvas.
SMALL = Source(
    length=3,
    changes={
        "canvas": 32,
        "edge_margin": 3,
        "seed_radius": 5,
        "marker_radius": 1.5,
        "distractor_length": 2,
        "distractor_paddles": 8,
        "antialias": True,
    },
)


def quick(*, model: str = "hgru_small", images: int = 36_000, seed: int = 0) -> RunConfig:
    """Train a small hGRU, or another network, on a small Pathfinder.

    Examples
    --------
    >>> run = quick()
    >>> run.model, run.task.changes["canvas"]
    ('hgru_small', 32)
    """
    return RunConfig(
        recipe="quick",
        model=model,
        options={"drive_gain": 1.0} if model == "hgru_small" else {},
        seed=seed,
        stages=(Stage(sources=(SMALL,), images=images),),
        learning_rate=5e-3,
        cool_down=images // (3 * linsley2018.BATCH_SIZE),
        clip=1.0,
        evaluate_every=125,
        evaluation_images=1_000,
        test_images=2_000,
        statistics_batches=20,
        checkpoint_every=125,
        stuck_after=max(1, images // 2),
    )
