import io

import numpy as np
import pytest
from rich.console import Console

from hgru_vision.benchmarks import WrongResultError, pathfinder, run


def test_it_prints_a_table(monkeypatch):
    monkeypatch.setattr(pathfinder, "SECONDS", 0.01)
    out = io.StringIO()
    run("pathfinder", Console(file=out, width=120))
    assert "x released program" in out.getvalue()
    assert out.getvalue().count("authors") == 3


def test_ratios_are_over_one_core_and_over_the_released_program(monkeypatch):
    monkeypatch.setattr(pathfinder, "available_threads", lambda: 4)
    monkeypatch.setattr(pathfinder, "rate", lambda name, length, threads: {1: 63, 4: 189}[threads])
    columns = pathfinder.measure().columns
    rows = [row[2:] for row in zip(*(column.cells for column in columns), strict=True)]
    ours = ("63", "189", "3.00")
    assert rows == 6 * [(*ours, "")] + [(*ours, "10"), (*ours, "10"), (*ours, "17")]


def test_no_speed_is_printed_for_wrong_images(monkeypatch):
    monkeypatch.setattr(
        pathfinder,
        "images",
        lambda config, seed, indices, threads=None: np.full(len(indices), threads),
    )
    out = io.StringIO()
    with pytest.raises(
        WrongResultError, match="preset 'paper' draws other images on several threads"
    ):
        run("pathfinder", Console(file=out))
    assert out.getvalue() == ""
