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
