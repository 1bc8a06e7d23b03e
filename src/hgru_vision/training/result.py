"""What came of a run."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from hgru_vision.training.fields import from_json, to_json

__all__ = ["Outcome", "Point", "Result"]

Outcome = Literal["finished", "diverged"]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One evaluation: a point of the learning curve.

    Parameters
    ----------
    stage
        Number of the stage, from 0; the accuracy is on this stage's held-out images.
    batch, images
        Trained on so far, over all stages.
    loss
        Mean over the batches since the point before.
    accuracy
        Share of the held-out images that are right.
    seconds
        Since the start, evaluations and interrupted sessions included.
    """

    stage: int
    batch: int
    images: int
    loss: float
    accuracy: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a ledger row holds of a run.

    Parameters
    ----------
    outcome
        "finished", or "diverged" if the loss was no longer a finite number.
    accuracy, correct, test_images
        On the test split of the run's task; ``None, 0, 0`` if it diverged.
    alc
        Area under the learning curve: mean accuracy over the evaluations of the last stage, which
        are those on the run's task. None if there are none, or if it diverged.
    stuck
        Whether the accuracy is within what chance gives.
    curve
        The evaluations.
    images, seconds, images_per_second
        Trained on, time in all, and the speed of training alone.
    waiting
        Share of the training time spent waiting for images.
    peak_memory
        Bytes: of the GPU's allocator, or of the process on a CPU.
    parameters
        Trained parameters.
    device, versions, commit
        Where and with what; the commit of the checkout, if it is one.
    shortcut
        ``{"accuracy", "probe"}``: how well the task's label is read without following a path (see
        `hgru audit`); None for files, one marker or segmentation.
    """

    outcome: Outcome
    accuracy: float | None
    correct: int
    test_images: int
    alc: float | None
    stuck: bool
    curve: tuple[Point, ...]
    images: int
    seconds: float
    images_per_second: float
    waiting: float
    peak_memory: int
    parameters: int
    device: str
    versions: dict[str, str]
    commit: str | None = None
    shortcut: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Give all fields as JSON can hold them."""
        return to_json(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Make a result of what `to_json` gave; unknown keys and wrong types are refused."""
        return from_json(cls, value)
