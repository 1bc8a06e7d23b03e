"""hgru bench: speed on this machine."""

from typing import Annotated

import tyro
from rich.console import Console

from hgru_vision.benchmarks import run


def bench(
    suite: Annotated[str, tyro.conf.Positional] = "pathfinder", only: tuple[str, ...] = ()
) -> None:
    """Measure speed on this machine, after checking that the results are right.

    Example: hgru bench pathfinder

    Parameters
    ----------
    suite
        pathfinder, contours or hgru.
    only
        Some of the suite's tables, such as network-32 of hgru on a GPU; all if none is named.
    """
    run(suite, Console(), only)
