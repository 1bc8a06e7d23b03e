from rich.table import Table

from hgru_vision.benchmarks import contours
from hgru_vision.cli import main


def test_an_unknown_suite_is_refused(capsys):
    assert main(["bench", "pathfinders"]) == 2
    assert "no suite 'pathfinders'; there are pathfinder, contours, hgru" in capsys.readouterr().err


def test_an_unknown_table_is_refused_before_anything_is_measured(capsys):
    assert main(["bench", "contours", "--only", "drawing", "speed"]) == 2
    captured = capsys.readouterr()
    assert "contours has no table 'speed'; it has drawing" in captured.err
    assert captured.out == ""


def test_a_file_has_room_for_whole_numbers(capsys, monkeypatch):
    table = Table(*(f"column {number}" for number in range(12)))
    table.add_row(*(f"0.{number:06}" for number in range(12)))
    monkeypatch.setattr(contours, "tables", lambda: {"wide": lambda: table})
    monkeypatch.setattr(contours, "check", lambda: None)
    assert main(["bench", "contours"]) == 0
    assert "0.000011" in capsys.readouterr().out


def test_some_tables_alone(capsys, monkeypatch):
    named = {"one": lambda: "first", "two": lambda: "second"}
    monkeypatch.setattr(contours, "tables", lambda: named)
    monkeypatch.setattr(contours, "check", lambda: None)
    assert main(["bench", "contours", "--only", "two"]) == 0
    assert capsys.readouterr().out.split() == ["second"]
    assert main(["bench", "contours"]) == 0
    assert capsys.readouterr().out.split() == ["first", "second"]
