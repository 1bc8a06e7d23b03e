"""Speed of drawing Pathfinder images."""

import time
from collections.abc import Callable

import numpy as np
from rich.table import Table

from hgru_vision.benchmarks import WrongResultError
from hgru_vision.stimuli import images, preset
from hgru_vision.stimuli.scenes import CHUNK, available_threads

PRESETS = ("paper", "matched", "authors")
LENGTHS = (6, 9, 14)
SECONDS = 2.0  # of drawing for each number

# What the authors' released program draws in a second on one core (docs/pathfinder.md).
RELEASED = {6: 6.3, 9: 6.1, 14: 3.8}


def check() -> None:
    """Images drawn on all cores are those drawn one by one."""
    for name in PRESETS:
        config = preset(name, length=6)
        together = images(config, 1, np.arange(2 * CHUNK))
        alone = [images(config, 1, [index], threads=1)[0] for index in range(0, 2 * CHUNK, 9)]
        if not np.array_equal(together[::9], alone):
            raise WrongResultError(f"preset {name!r} draws other images on several threads")


def tables() -> dict[str, Callable[[], Table]]:
    """Name the table."""
    return {"drawing": measure}


def measure() -> Table:
    """Give images a second on one core and on all."""
    cores = available_threads()
    table = Table(title="Pathfinder images a second")
    for column in ("preset", "length", "one core", f"{cores} cores", "ratio", "x released program"):
        table.add_column(column, justify="left" if column == "preset" else "right")
    for name in PRESETS:
        for length in LENGTHS:
            one, all_cores = rate(name, length, 1), rate(name, length, cores)
            against = f"{one / RELEASED[length]:,.0f}" if name == "authors" else ""
            rates = (f"{one:,.0f}", f"{all_cores:,.0f}", f"{all_cores / one:.2f}")
            table.add_row(name, str(length), *rates, against)
    return table


def rate(name: str, length: int, threads: int) -> float:
    """Images a second, from the second call on."""
    config = preset(name, length=length)
    batch = CHUNK * 4 * threads
    images(config, 0, np.arange(batch), threads)
    drawn, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        images(config, 0, np.arange(drawn, drawn + batch), threads)
        drawn += batch
    return drawn / (time.perf_counter() - began)
