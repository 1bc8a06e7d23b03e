"""How far a run has come."""

from dataclasses import dataclass, field
from typing import Any, Self

from hgru_vision.training.fields import from_json, to_json
from hgru_vision.training.result import Point

__all__ = ["Position"]


@dataclass(kw_only=True)
class Position:
    """Where a run stands: a checkpoint's place in the data, and its clocks.

    Parameters
    ----------
    stage, batch
        Stage, and batches done in it.
    batches
        Done in all stages together.
    seconds, training, waiting
        Time in all, in training steps, and of the latter waiting for images.
    passed
        Whether the stage is over before its last image: it is learnt, or given up.
    told_stuck
        Whether the user has been told that the run is at chance in this stage.
    curve
        Evaluations so far.
    shared
        What was taken over from a run that begins alike; see `Result.shared`.
    """

    stage: int = 0
    batch: int = 0
    batches: int = 0
    seconds: float = 0.0
    training: float = 0.0
    waiting: float = 0.0
    passed: bool = False
    told_stuck: bool = False
    curve: list[Point] = field(default_factory=list)
    shared: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Give all as JSON can hold it."""
        return to_json(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Make a position of what `to_json` gave."""
        return from_json(cls, value)
