"""A progress bar with the rate and the time left."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class RateColumn(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        """Render the rate, or nothing before there is one."""
        return Text(f"{task.speed:,.0f} images/s" if task.speed else "")


@contextlib.contextmanager
def progress_bar(
    total: int, *, description: str = "Writing", console: Console | None = None
) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar on standard error; yield the `progress` argument of `store.write`.

    Yields None, and shows nothing, where the console is no terminal.

    Parameters
    ----------
    total
        Items in all.
    description
        Words before the bar.
    console
        Where to draw, if not on standard error.

    Examples
    --------
    >>> import io
    >>> with progress_bar(100, console=Console(file=io.StringIO())) as progress:
    ...     print(progress)
    None
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(description, total=total)

        def update(done: int) -> None:
            progress.update(task, completed=done)

        yield update
