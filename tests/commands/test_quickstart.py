import json

import pytest
import torch

from hgru_vision.cli import main
from hgru_vision.commands.quickstart import SMALL, SmallNetwork, evaluate
from hgru_vision.data.datasets import Pathfinder


def test_it_ends_in_a_report(tmp_path, capsys):
    assert main(["quickstart", "--out", str(tmp_path), "--images", "1600"]) == 0
    out = capsys.readouterr().out
    assert "of 2,000 new images right" in out
    report = (tmp_path / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 3
    result = json.loads((tmp_path / "result.json").read_text())
    assert [point["images"] for point in result["curve"]] == [1600]
    assert result["interval"][0] < result["accuracy"] < result["interval"][1]
    assert 0.5 < result["shortcut"]["accuracy"] < 1
    assert f"{result['shortcut']['accuracy']:.1%}" in report


@pytest.mark.slow
def test_the_small_network_learns_the_small_task(tmp_path):
    assert main(["quickstart", "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "result.json").read_text())["accuracy"] > 0.85


def test_a_run_is_a_function_of_its_seed(tmp_path, monkeypatch):
    monkeypatch.setattr("hgru_vision.commands.quickstart.AUDIT", 100)
    for name in ("a", "b"):
        main(["quickstart", "--out", str(tmp_path / name), "--images", "1600", "--seed", "3"])
    first, second = (json.loads((tmp_path / n / "result.json").read_text()) for n in ("a", "b"))
    assert first["curve"] == second["curve"]


def test_evaluation_leaves_the_network_in_training_mode():
    network = SmallNetwork(4, 5, 2, seed=0)
    assert 0 <= evaluate(network, Pathfinder(count=20, config=SMALL)) <= 1
    assert network.training
    assert network(torch.zeros(2, 1, 32, 32)).shape == (2, 2)


def test_too_few_images_are_refused(tmp_path, capsys):
    assert main(["quickstart", "--out", str(tmp_path), "--images", "10"]) == 2
    assert "--images must be 1600 or more; got 10" in capsys.readouterr().err
