import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from hgru_vision.cli import main
from hgru_vision.recipes import make_run
from hgru_vision.training.checkpoint import build
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.data import final_data
from hgru_vision.training.evaluate import as_input
from hgru_vision.training.files import write_json


@pytest.fixture
def save_run(tmp_path, monkeypatch):
    """Give a function that writes the folder of a run that no training made."""
    monkeypatch.chdir(tmp_path)

    def save(name, config, network):
        write_json(tmp_path / name / "config.json", config.to_json())
        save_file(network.state_dict(), tmp_path / name / "weights.safetensors")
        return name

    return save


def test_pictures_and_numbers_of_a_network(save_run, decisive, tmp_path, capsys):
    config = make_run("quick")
    images = as_input(torch.from_numpy(final_data(config).batch(np.arange(16))))
    name = save_run("runs/small", config, decisive(build(config), images))
    arguments = ["figures", "dynamics", "--networks", name, "--out", "out"]
    assert main(arguments) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "dynamics.png",
        "dynamics.json",
    }
    found = json.loads((tmp_path / "out/dynamics.json").read_text())[name]
    assert (found["task"], found["data_seed"]) == (config.task.name, config.data_seed)
    assert [image["label"] for image in found["images"]] == [1, 0]
    connected, apart = (image["probability"][-1] for image in found["images"])
    assert connected > 0.5 > apart
    said = capsys.readouterr().out
    assert f"runs/small, test images of {config.task.name}:" in said
    assert f"item {found['images'][0]['item']}, connected; probability of connected by" in said
    assert "wrote out/dynamics.json" in said


def test_what_cannot_be_followed_is_named(save_run, tmp_path, capsys):
    (tmp_path / "net.py").write_text("import torch\ndef load():\n    return torch.nn.Identity()\n")
    config = make_run("quick")
    stage = Stage(sources=(Source(dataset="contours", length=5),), images=64)
    deep = RunConfig(model="resnet18", stages=config.stages)
    contours = RunConfig(model="hgru_small", stages=(stage,))
    untrained = save_run("runs/untrained", config, build(config))
    for network, text in (
        ("net.py:load", "net.py:load: the network does not say what it was trained on; give"),
        (save_run("runs/deep", deep, build(deep)), "runs/deep: ResNet has no recurrent circuit"),
        (
            save_run("runs/contours", contours, build(contours)),
            "runs/contours: dynamics is drawn for networks that label a Pathfinder drawn on the "
            "fly; this one was trained on contours-5, target 'label'",
        ),
        (untrained, "runs/untrained: of the first 256 test images it gets none with label 1"),
    ):
        assert main(["figures", "dynamics", "--networks", network]) == 2
        assert text in capsys.readouterr().err
    assert main(["figures", "dynamics"]) == 2
    assert "dynamics needs --networks: names of trained weights" in capsys.readouterr().err
