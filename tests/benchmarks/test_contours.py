import io

import numpy as np
import pytest
from rich.console import Console

from hgru_vision.benchmarks import WrongResultError, contours, run


def test_it_prints_a_table(monkeypatch):
    monkeypatch.setattr(contours, "SECONDS", 0.01)
    monkeypatch.setattr(contours, "CHECKED", 18)
    out = io.StringIO()
    run("contours", Console(file=out, width=120))
    assert "x numpy" in out.getvalue()
    canvases = [line.split()[1] for line in out.getvalue().splitlines() if line.startswith("│")]
    assert canvases == ["256", "256", "150", "150"]


def test_ratios_are_over_numpy_and_over_one_core(monkeypatch):
    def rate(draw, batch):
        on_one_core = {contours.images_in_numpy: 3, contours.images: 60}[draw.func]
        return on_one_core * draw.keywords.get("threads", 1)

    monkeypatch.setattr(contours, "available_threads", lambda: 4)
    monkeypatch.setattr(contours, "rate", rate)
    rows = zip(*(column.cells for column in contours.measure().columns), strict=True)
    assert {row[2:] for row in rows} == {("3", "60", "240", "20", "4.00")}


def test_no_speed_is_printed_for_wrong_images(monkeypatch):
    def shifted(config, seed, indices, threads=None):
        return contours.images_in_numpy(config, seed, np.asarray(indices) + 1)

    monkeypatch.setattr(contours, "images", shifted)
    monkeypatch.setattr(contours, "CHECKED", 9)
    out = io.StringIO()
    message = "contours of length 5 at 256 pixels differ from those that plain numpy draws"
    with pytest.raises(WrongResultError, match=message):
        run("contours", Console(file=out))
    assert out.getvalue() == ""
