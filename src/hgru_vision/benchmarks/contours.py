"""Speed of drawing synthetic contours, ours against plain numpy."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.table import Table

from hgru_vision.benchmarks import WrongResultError
from hgru_vision.papers import linsley2018
from hgru_vision.stimuli._types import Array, Bytes
from hgru_vision.stimuli.contour_reference import images_in_numpy
from hgru_vision.stimuli.contours import ContourConfig, images
from hgru_vision.stimuli.scenes import CHUNK, available_threads

CANVASES = (linsley2018.CONTOUR_CANVAS, linsley2018.CONTOUR_EXPERIMENT_CANVAS)
LENGTHS = (linsley2018.CONTOUR_LENGTHS[0], linsley2018.CONTOUR_LENGTHS[-1])
SHEAR = linsley2018.LARGEST_SHEAR
SECONDS = 2.0  # of drawing for each number
CHECKED = 2 * CHUNK  # images compared with the reference


def check() -> None:
    """Images drawn on all cores are those that plain numpy draws."""
    for config in _conditions():
        together = images(config, 1, np.arange(CHECKED))
        some = np.arange(0, CHECKED, 9)
        if not np.array_equal(together[some], images_in_numpy(config, 1, some)):
            raise WrongResultError(
                f"contours of length {config.length} at {config.canvas} pixels differ from those "
                "that plain numpy draws"
            )


def tables() -> dict[str, Callable[[], Table]]:
    """Name the table."""
    return {"drawing": measure}


def measure() -> Table:
    """Give images a second: plain numpy, then ours on one core and on all."""
    cores = available_threads()
    table = Table(title="Synthetic contours a second")
    for column in ("pixels", "length", "numpy", "one core", f"{cores} cores", "x numpy", "ratio"):
        table.add_column(column, justify="right")
    for config in _conditions():
        plain = rate(partial(images_in_numpy, config, 0), batch=8)
        one, every = (_fast(config, threads) for threads in (1, cores))
        rates = (f"{plain:,.0f}", f"{one:,.0f}", f"{every:,.0f}")
        ratios = (f"{one / plain:.0f}", f"{every / one:.2f}")
        table.add_row(str(config.canvas), str(config.length), *rates, *ratios)
    return table


def rate(draw: Callable[[Array], Bytes], batch: int) -> float:
    """Images a second, from the second call on."""
    draw(np.arange(batch))
    drawn, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        draw(np.arange(drawn, drawn + batch))
        drawn += batch
    return drawn / (time.perf_counter() - began)


def _fast(config: ContourConfig, threads: int) -> float:
    return rate(partial(images, config, 0, threads=threads), batch=CHUNK * 4 * threads)


def _conditions() -> list[ContourConfig]:
    return [
        ContourConfig(length=length, shear=SHEAR, canvas=canvas)
        for canvas in CANVASES
        for length in LENGTHS
    ]
