"""What came of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, Self

from hgru_vision.intervals import wilson_interval
from hgru_vision.training.fields import from_json, to_json

__all__ = ["Ending", "Point", "Result", "area_under_curve"]

Ending = Literal["finished", "stuck", "diverged"]


def area_under_curve(accuracies: Sequence[float]) -> float:
    """Mean accuracy over the evaluations during training: the paper's ALC.

    Parameters
    ----------
    accuracies
        One an evaluation, each from 0 to 1, at equal distances in training.

    Examples
    --------
    >>> area_under_curve([0.5, 0.75, 1.0])
    0.75
    """
    if not accuracies:
        raise ValueError("there is no evaluation to take the area under")
    for number, accuracy in enumerate(accuracies):
        if not 0 <= accuracy <= 1:
            raise ValueError(f"accuracies[{number}] must be from 0 to 1; got {accuracy}")
    return fmean(accuracies)


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
        Share of the held-out images that are right, or of their pixels for segmentation; for
        boundaries the pixel AUC, the mean over images (see `Evaluation.right`).
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
        "finished"; "stuck" if it was ended early at chance, as `stop_when_stuck` asks; or
        "diverged" if the loss was no longer a finite number.
    accuracy, correct, test_images
        On the test split of the run's task; ``None, 0, 0`` if it diverged. For segmentation the
        last two count pixels, most of which are background. For boundaries the accuracy is the
        pixel AUC, the mean over images, which these two do not give.
    alc
        Area under the learning curve of the last stage: mean accuracy over its evaluations, which
        are those on the run's task. For a run of one stage it is the paper's ALC. None if there
        are none, or if it diverged.
    stuck
        Whether it ended at chance, early or not.
    curve
        The evaluations.
    images, seconds, images_per_second
        Trained on, time in all, and the speed of training alone.
    waiting
        Share of the training time spent waiting for images.
    peak_memory
        Bytes: of the GPU's allocator, or of the process on a CPU.
    parameters
        Parameters of the network, those that are kept fixed included.
    device, versions, commit
        Where and with what; the commit of the checkout, if it is one, with "-dirty" behind it if
        the package's files were changed since.
    shortcut
        ``{"accuracy", "probe"}``: how well the task's label is read without following a path (see
        `hgru audit`); None for files, one marker or segmentation.
    overlap
        Mean over test images of the intersection over union of the true and the predicted mask;
        None where the target is the label.
    shared
        ``{"run", "images", "seconds"}`` where the first stages were not trained again but taken
        over from a run that begins alike: its hash, and how many of the images and seconds here
        were spent on that run. None else.
    """

    outcome: Ending
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
    overlap: float | None = None
    shared: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.accuracy is not None and not 0 <= self.accuracy <= 1:
            raise ValueError(f"accuracy must be from 0 to 1; got {self.accuracy}")

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson interval of the accuracy; None without one, and for pixels.

        Those of an image are not independent.
        """
        if self.accuracy is None or self.overlap is not None:
            return None
        return wilson_interval(self.correct, self.test_images)

    def to_json(self) -> dict[str, Any]:
        """Give all fields as JSON can hold them."""
        return to_json(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Make a result of what `to_json` gave; unknown keys and wrong types are refused."""
        return from_json(cls, value)
