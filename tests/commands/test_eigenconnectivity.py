import json

import pytest

from hgru_vision.cli import main

NETWORKS = """
import torch
from hgru_vision import create_model

def small():
    return create_model("hgru_small")

def deep():
    return create_model("resnet18")

def blind():
    network = create_model("hgru_small")
    torch.nn.init.zeros_(network.input.weight)
    return network
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(NETWORKS)
    return path


def test_pictures_and_numbers_of_a_network(file, tmp_path, capsys):
    out = tmp_path / "out"
    name = f"{file}:small"
    arguments = ["figures", "eigenconnectivity", "--networks", name, "--out", str(out)]
    assert main([*arguments, "--format", "png"]) == 0
    assert {path.name for path in out.iterdir()} == {
        "eigenconnectivity.png",
        "eigenconnectivity.json",
    }
    numbers = json.loads((out / "eigenconnectivity.json").read_text())[name]
    assert len(numbers["selectivity"]) == len(numbers["channels"]) == 8
    assert 0 <= numbers["excited"] <= 1
    said = capsys.readouterr().out
    assert "8 of 8 channels have an orientation" in said
    assert f"{numbers['collinearity']['value']:+.2g}" in said
    assert "positive weights excite (beta) in" in said


def test_what_has_no_connections_is_named(file, capsys):
    assert main(["figures", "eigenconnectivity", "--networks", f"{file}:deep"]) == 2
    assert "nets.py:deep: ResNet has no input stage" in capsys.readouterr().err
    assert main(["figures", "eigenconnectivity", "--networks", f"{file}:blind"]) == 2
    assert "nets.py:blind: 0 of 8 channels have an orientation" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(file, capsys):
    arguments = ["figures", "eigenconnectivity", "--networks", f"{file}:deep"]
    assert main([*arguments, "--out", str(file)]) == 2
    said = capsys.readouterr().err
    assert "eigenconnectivity.png cannot be written" in said and "nets.py is no folder" in said


def test_networks_are_for_this_figure_alone(capsys):
    assert main(["figures", "eigenconnectivity"]) == 2
    assert "eigenconnectivity needs --networks" in capsys.readouterr().err
    assert main(["figures", "accuracy", "--networks", "runs/a"]) == 2
    said = capsys.readouterr().err
    assert "--networks is for eigenconnectivity, dynamics; accuracy takes" in said
