import io
import sys

import pytest
from rich.console import Console

from hgru_vision.training.display import Display, open_tensorboard
from hgru_vision.training.result import Point

POINT = Point(stage=0, batch=5, images=40, loss=0.5, accuracy=0.75, seconds=3.0)


def console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=120)


def test_a_line_an_evaluation_where_there_is_no_terminal(tiny):
    with Display(tiny(), console=console(False)) as display:
        assert not display.due()
        display.point(POINT)
    assert "40 images  loss 0.500  accuracy 75.0%  3 s" in display.console.file.getvalue()


def test_a_live_line_on_a_terminal(tiny):
    stages = tiny().stages * 2
    with Display(tiny(stages=stages), console=console(True)) as display:
        assert display.due() and not display.due()
        display.point(POINT)
        display.loss(1, 48, 0.25, 1234.5)
        display.skip(10)
        display.say("a note [for] people")
    shown = display.console.file.getvalue()
    assert "stage 2 of 2 (paper-3)  loss 0.250  accuracy 75.0%  1,234 images/s" in shown
    assert "a note [for] people" in shown


def test_nothing_where_nothing_is_wanted(tiny):
    with Display(tiny(), shown=False, console=console(True)) as display:
        display.point(POINT)
        display.loss(0, 40, 0.5, 1.0)
        display.say("hush")
    assert display.console.file.getvalue() == ""


def test_a_missing_tensorboard_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="tensorboard is not installed; pip install tensorboard"):
        open_tensorboard(tmp_path)


def test_scalars_go_to_tensorboard(tiny, tmp_path, monkeypatch):
    written = []

    class Writer:
        def add_scalar(self, *scalar):
            written.append(scalar)

        def close(self):
            written.append("closed")

    monkeypatch.setattr("hgru_vision.training.display.open_tensorboard", lambda _: Writer())
    with Display(tiny(), shown=False, tensorboard=tmp_path) as display:
        display.point(POINT)
    assert written == [("loss", 0.5, 40), ("accuracy", 0.75, 40), "closed"]
