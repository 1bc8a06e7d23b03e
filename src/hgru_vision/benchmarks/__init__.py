"""Benchmarks: one registry, one runner.

A suite is a module with two functions. ``check()`` raises `WrongResultError` if what is to be
timed gives a wrong result: then no speed is printed. ``tables()`` names what can be measured, each
with the function that does it: times, as ratios wherever two ways are compared in the same run.
"""

from collections.abc import Iterable
from importlib import import_module

from rich.console import Console

SUITES = {
    "pathfinder": "drawing Pathfinder images, by preset and number of threads",
    "contours": "drawing synthetic contours: ours against plain numpy",
    "hgru": "the hGRU, on the GPU if there is one: ours against plain PyTorch",
}


class WrongResultError(ValueError):
    """What should be timed does not agree with its reference."""


def run(suite: str, console: Console, only: Iterable[str] = ()) -> None:
    """Check a suite, then print its tables; only some of them if they are named."""
    if suite not in SUITES:
        raise ValueError(f"no suite {suite!r}; there are {', '.join(SUITES)}")
    module = import_module(f"hgru_vision.benchmarks.{suite}")
    tables = module.tables()
    chosen = tuple(only) or tuple(tables)
    for name in chosen:
        if name not in tables:
            raise ValueError(f"{suite} has no table {name!r}; it has {', '.join(tables)}")
    module.check()
    for name in chosen:
        console.print(tables[name]())
