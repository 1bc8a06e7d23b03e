"""hgru bench: speed on this machine."""

import sys
from typing import Annotated

import tyro
from rich.console import Console

from hgru_vision.benchmarks import run

_WIDE = 160  # columns of a file or a pipe, which rich takes for a narrow terminal


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
    run(suite, Console(width=None if sys.stdout.isatty() else _WIDE), only)
