import json
from types import SimpleNamespace

import numpy as np
import pytest

from hgru_vision.cli import main
from hgru_vision.commands import audit as audit_command
from hgru_vision.data.datasets import SPLIT_START
from hgru_vision.stimuli import cues, preset
from hgru_vision.stimuli.audit import audit
from hgru_vision.stimuli.contour_audit import audit_contours
from hgru_vision.stimuli.contours import ContourConfig

NETWORK = """
import torch
class Ink(torch.nn.Module):
    def forward(self, image):
        ink = image.mean(dim=(1, 2, 3))
        return torch.stack([ink, ink.mean().expand_as(ink)], dim=1)
"""


def test_an_audit_ends_in_a_table_a_picture_and_numbers(tmp_path, capsys):
    (tmp_path / "net.py").write_text(NETWORK)
    arguments = ["audit", "pathfinder", "--length", "6", "--count", "600"]
    arguments += ["--network", f"{tmp_path}/net.py:Ink", "--confidence", "0.8"]
    arguments += ["--figure", str(tmp_path / "a.png"), "--json", str(tmp_path / "a.json")]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "it is 80% sure" in out
    assert "Label read without following a path" in out
    assert "The network, by what the probe says" in out
    assert (tmp_path / "a.png").stat().st_size > 20_000
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["best"]["accuracy"] > 0.85  # the paper's Pathfinder leaks


@pytest.mark.parametrize("what", ["pathfinder", "contours"])
def test_a_picture_that_cannot_be_written_is_refused_before_any_work(capsys, what):
    assert main(["audit", what, "--figure", "a.jpg"]) == 2
    assert "pictures end in .svg, .pdf, .png; got a.jpg" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["pathfinder", "contours"])
def test_a_confidence_that_is_none_is_refused_before_any_work(capsys, what):
    assert main(["audit", what, "--confidence", "2"]) == 2
    captured = capsys.readouterr()
    assert "confidence must be above 0.5 and below 1" in captured.err and captured.out == ""


def test_a_network_that_is_none_is_refused(capsys):
    assert main(["audit", "pathfinder", "--network", "nets"]) == 2
    assert "no network 'nets'; give the folder of a run (hgru train)" in capsys.readouterr().err


def test_an_audit_of_contours_ends_in_a_table_a_picture_and_numbers(tmp_path, capsys):
    (tmp_path / "net.py").write_text(NETWORK)
    arguments = ["--length", "3", "--canvas", "40", "--cells", "8", "--count", "400"]
    arguments += ["--eccentricity", "0.5", "--no-scattered"]
    arguments += ["--network", f"{tmp_path}/net.py:Ink"]
    arguments += ["--figure", str(tmp_path / "a.png"), "--json", str(tmp_path / "a.json")]
    assert main(["audit", "contours", *arguments]) == 0
    out = capsys.readouterr().out
    assert "Contour told without linking paddles" in out
    assert "aligned neighbours and longest aligned run: the task itself" in out
    assert "The network, by what the probe says" in out
    assert (tmp_path / "a.png").stat().st_size > 20_000
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["n"] == 400
    assert report["best"]["accuracy"] > 0.85  # directions that were not scattered tell


def test_a_pathfinder_is_audited_on_the_test_split(tmp_path):
    arguments = [
        "--length",
        "3",
        "--count",
        "60",
        "--seed",
        "7",
        "--json",
        str(tmp_path / "a.json"),
    ]
    assert main(["audit", "pathfinder", *arguments]) == 0
    numbers = SPLIT_START["test"] + np.arange(60)
    here = audit(cues(preset("paper", length=3), 7, numbers), seed=7)
    assert (tmp_path / "a.json").read_text() == here.to_json() + "\n"


@pytest.mark.parametrize("what", ["pathfinder", "contours"])
def test_the_network_sees_the_images_that_are_audited(monkeypatch, what):
    seen = []

    def look(network, data, progress):
        seen.append((data.split, data.seed, len(data)))
        return SimpleNamespace(right=np.ones(len(data), bool))

    monkeypatch.setattr(audit_command, "evaluate", look)
    arguments = ["--length", "3", "--count", "60", "--seed", "7", "--network", "hgru.pathfinder6"]
    assert main(["audit", what, *arguments]) == 0
    assert seen == [("test", 7, 60)]


def test_contours_are_audited_on_the_test_split(tmp_path):
    arguments = ["--length", "3", "--canvas", "40", "--cells", "8", "--count", "100"]
    arguments += ["--eccentricity", "0.5", "--json", str(tmp_path / "a.json")]
    assert main(["audit", "contours", *arguments]) == 0
    config = ContourConfig(length=3, canvas=40, cells=8, eccentricity=0.5)
    found = json.loads((tmp_path / "a.json").read_text())["rows"]
    here = audit_contours(config, count=100, first=SPLIT_START["test"])
    assert [row["accuracy"] for row in found] == [row.accuracy for row in here.rows]
