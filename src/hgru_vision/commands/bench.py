"""hgru bench: speed on this machine."""

from typing import Annotated

import tyro
from rich.console import Console

from hgru_vision.benchmarks import run


def bench(suite: Annotated[str, tyro.conf.Positional] = "pathfinder") -> None:
    """Measure speed on this machine, after checking that the results are right.

    Example: hgru bench pathfinder

    Parameters
    ----------
    suite
        pathfinder, contours or hgru.
    """
    run(suite, Console())
