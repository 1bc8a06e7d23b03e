import json

import pytest

from hgru_vision.cli import main
from hgru_vision.commands.quickstart import _curve_figure
from hgru_vision.training.result import Point


@pytest.fixture(autouse=True)
def _brief(monkeypatch):
    """Evaluate sooner, on fewer images, and audit a handful."""
    from dataclasses import replace

    from hgru_vision.commands import quickstart

    quick = quickstart.quick

    def brief(**keywords):
        small = {"evaluate_every": 20, "evaluation_images": 64, "statistics_batches": 2}
        return replace(quick(**keywords), test_images=100, **small)

    monkeypatch.setattr(quickstart, "quick", brief)
    monkeypatch.setattr("hgru_vision.training.outcome.AUDIT_IMAGES", 200)


def test_it_ends_in_a_report_and_goes_on_where_it_stopped(tmp_path, capsys):
    command = ["quickstart", "--out", str(tmp_path), "--images", "640"]
    assert main(command) == 0
    assert "of 100 new images right" in capsys.readouterr().out
    report = (tmp_path / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 3
    result = json.loads((tmp_path / "result.json").read_text())
    assert [point["images"] for point in result["curve"]] == [640]
    assert 0.5 < result["shortcut"]["accuracy"] <= 1
    assert f"{result['shortcut']['accuracy']:.1%}" in report
    before = (tmp_path / "weights.safetensors").stat().st_mtime_ns
    assert main(command) == 0
    assert (tmp_path / "weights.safetensors").stat().st_mtime_ns == before


def test_a_curve_of_one_evaluation_is_seen():
    point = Point(stage=0, batch=20, images=640, loss=0.7, accuracy=0.6, seconds=1.0)
    assert _curve_figure([point]).axes[0].lines[0].get_marker() == "o"


def test_a_stop_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hgru_vision.commands.quickstart.train", lambda *_, **__: None)
    assert main(["quickstart", "--out", str(tmp_path), "--images", "640"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Stopped; the same command goes on." in out


def test_too_few_images_are_refused(tmp_path, capsys):
    assert main(["quickstart", "--out", str(tmp_path), "--images", "100"]) == 2
    assert "--images must be 640 or more; got 100" in capsys.readouterr().err
