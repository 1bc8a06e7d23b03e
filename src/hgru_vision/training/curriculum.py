"""When to go on to the next stage, and when a run is stuck at chance."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from hgru_vision.intervals import wilson_interval
from hgru_vision.papers.linsley2018 import PATH_LENGTHS
from hgru_vision.training.config import FULL_RATE_INPUTS, RunConfig, Stage
from hgru_vision.training.diagnosis import Cause
from hgru_vision.training.result import Point, Result

__all__ = ["CAUSES", "at_chance", "is_promoted", "stuck_message", "stuck_share"]

# How often a network that guesses may be taken for one that has learnt something.
RARELY = 1e-3

CAUSES: dict[Cause, str] = {
    "self-excited": "Its activity feeds itself: it is as strong where an image is empty as on its "
    "paths. Such a network has not been seen to come back; start anew.",
    "silent": "What reaches its readout hardly differs from place to place or from image to image: "
    "its units have died, or the signal fades over its layers. Take another seed, or batch norm "
    "between the layers (segnet: --set options.batch_norm=true).",
    "background": "Its readout has turned to the background: the strongest pixels are the same in "
    "every image. It will hardly start any more; take another seed.",
}


class Row(Protocol):
    """What is needed of a row of the ledger."""

    @property
    def config(self) -> RunConfig:
        """The run."""

    @property
    def result(self) -> Result:
        """What came of it."""


def is_promoted(stage: Stage, accuracy: float) -> bool:
    """Say whether a stage has done its work.

    Examples
    --------
    >>> from hgru_vision.training.config import Source
    >>> stage = Stage(sources=(Source(length=6),), images=64_000, promote_at=0.94)
    >>> is_promoted(stage, 0.93), is_promoted(stage, 0.95)
    (False, True)
    """
    return stage.promote_at is not None and accuracy >= stage.promote_at


def at_chance(curve: Sequence[Point], evaluation_images: int) -> bool:
    """Say whether the best of some evaluations is what guessing gives.

    It is, unless its Wilson interval lies above one half; the confidence is such that the best of
    so many guesses does so in one run of a thousand at most.

    Parameters
    ----------
    curve
        Evaluations on two classes of equal size.
    evaluation_images
        Images of each.

    Examples
    --------
    >>> def point(accuracy):
    ...     return Point(stage=0, batch=1, images=32, loss=0.7, accuracy=accuracy, seconds=1.0)
    >>> at_chance([point(0.52), point(0.51)], 1000), at_chance([point(0.52), point(0.58)], 1000)
    (True, False)
    """
    if not curve:
        return False
    best = max(point.accuracy for point in curve)
    confidence = 1 - 2 * RARELY / len(curve)  # half of what an interval leaves out lies above
    correct = round(best * evaluation_images)
    return wilson_interval(correct, evaluation_images, confidence)[0] <= 0.5


def stuck_share(rows: Iterable[Row], config: RunConfig) -> tuple[int, int]:
    """Count the runs that differ from this one in their seeds alone, and those that ended stuck.

    Runs that diverged do not count: whether they would have learnt is not known.

    Parameters
    ----------
    rows
        Of the ledger.
    config
        Of this run.

    Returns
    -------
    stuck, runs
        How many of how many.
    """
    wanted = config.experiment
    alike = [
        row.result
        for row in rows
        if row.result.outcome != "diverged" and row.config.experiment == wanted
    ]
    return sum(result.stuck for result in alike), len(alike)


def stuck_message(
    config: RunConfig,
    curve: Sequence[Point],
    rows: Iterable[Row],
    *,
    seen: int,
    cause: Cause | None = None,
    can_pool_first: bool = False,
) -> str:
    """Tell a user that a run is at chance, how usual that is, and what to try.

    Parameters
    ----------
    config
        Of the run.
    curve
        Evaluations of the stage that is not learnt.
    rows
        Of the ledger.
    seen
        Images of that stage.
    cause
        As `find_cause` found it.
    can_pool_first
        Whether the network can be made with another readout, `pool_first`, than it has.
    """
    last = curve[-1]
    stuck, runs = stuck_share(rows, config)
    known = (
        f"Of the runs like it in the ledger {stuck} of {runs} ended there."
        if runs
        else "The ledger has no run like it, so how usual that is, is not known."
    )
    best = max(point.accuracy for point in curve)
    stages = len(config.stages)
    where = "" if stages == 1 else f" of stage {last.stage + 1} of {stages}"
    ends = "\nThe run ends here (stop_when_stuck)." if config.stop_when_stuck else ""
    why = "" if cause is None else f"\n{CAUSES[cause]}"
    tries = "\n".join(f"  - {each}" for each in _advice(config, cause, can_pool_first))
    return (
        f"At chance after {seen:,} images{where}: loss {last.loss:.3f}, best accuracy "
        f"{best:.1%} on {config.evaluation_images:,} held-out images. {known}{why}{ends}\n"
        f"What to try (more in docs/stuck.md):\n{tries}"
    )


def _advice(config: RunConfig, cause: Cause | None, can_pool_first: bool) -> list[str]:
    """List what to try, the most promising first."""
    patience = "a public log from scratch has 60 % after 340,000 images of length 14"
    advice = ["another --seed"]
    if cause is None and config.stop_when_stuck:
        advice.append(f"--set stop_when_stuck=false in another folder: {patience}")
    elif cause is None:
        advice.insert(0, f"go on: {patience}")
    if can_pool_first:
        other = "the released code's readout, with which some networks start that do not with this"
        advice.insert(0, f"--set options.pool_first=true in another folder: {other}")
    if config.full_rate_inputs is None:
        slower = "horizontal kernels that learn more slowly, as in the recipe curriculum"
        advice.insert(0, f"--set full_rate_inputs={FULL_RATE_INPUTS} in another folder: {slower}")
    task = config.task
    drawn = task.dataset == "pathfinder" and task.path is None
    if len(config.stages) == 1 and drawn and task.length >= PATH_LENGTHS[0]:
        shorter = f"a curriculum of shorter paths before length {task.length}"
        advice.insert(0, f"{shorter}: hgru train curriculum")
    return advice
