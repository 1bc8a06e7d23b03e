"""What a run shows while it lasts: a live line on a terminal, a line an evaluation elsewhere."""

import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hgru_vision.training.config import RunConfig
from hgru_vision.training.result import Point

__all__ = ["Display", "open_tensorboard"]

REFRESH = 0.5  # seconds


class Display:
    """Stage, loss, accuracy, images a second and time left.

    Parameters
    ----------
    config
        Of the run.
    shown
        Whether to show anything at all.
    tensorboard
        Folder for TensorBoard's scalars, if they are wanted.
    console
        Where to, if not standard error.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        shown: bool = True,
        tensorboard: Path | None = None,
        console: Console | None = None,
    ) -> None:
        self.config, self.shown = config, shown
        self.console = console or Console(stderr=True)
        self.live = shown and self.console.is_terminal
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("time left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=self.console, disable=not self.live)
        self._task = self._bar.add_task(
            "starting", total=sum(stage.images for stage in config.stages)
        )
        self._accuracy = ""
        self._last = 0.0
        self._writer: Any = None if tensorboard is None else open_tensorboard(tensorboard)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
        if self._writer is not None:
            self._writer.close()

    def due(self) -> bool:
        """Say whether it is time to show the loss again, which makes a GPU wait."""
        now = time.perf_counter()
        if not self.live or now - self._last < REFRESH:
            return False
        self._last = now
        return True

    def loss(self, stage: int, images: int, loss: float, rate: float) -> None:
        """Show how the training goes."""
        self._bar.update(
            self._task,
            completed=images,
            description=f"{self._stage(stage)}loss {loss:.3f}{self._accuracy}  "
            f"{rate:,.0f} images/s",
        )

    def point(self, point: Point) -> None:
        """Show an evaluation."""
        self._accuracy = f"  accuracy {point.accuracy:.1%}"
        if self.shown and not self.live:
            self.say(
                f"{self._stage(point.stage)}{point.images:,} images  loss {point.loss:.3f}"
                f"{self._accuracy}  {point.seconds:,.0f} s"
            )
        if self._writer is not None:
            self._writer.add_scalar("loss", point.loss, point.images)
            self._writer.add_scalar("accuracy", point.accuracy, point.images)

    def say(self, text: str) -> None:
        """Tell something, above the live line."""
        if self.shown:
            self._bar.console.print(text, markup=False, highlight=False)

    def skip(self, images: int) -> None:
        """Take the rest of a stage, after a promotion, out of what is left to do."""
        total = self._bar.tasks[0].total or 0
        self._bar.update(self._task, total=total - images)

    def _stage(self, number: int) -> str:
        stages = self.config.stages
        if len(stages) == 1:
            return ""
        return f"stage {number + 1} of {len(stages)} ({stages[number].name})  "


def open_tensorboard(folder: Path) -> Any:
    """Open TensorBoard's writer, if it is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ImportError(
            "tensorboard is not installed; pip install tensorboard, or train without --tensorboard"
        ) from None
    return SummaryWriter(str(folder))
