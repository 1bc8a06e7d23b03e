from hashlib import sha256

import pytest
from safetensors.torch import save, save_file

from hgru_vision.commands.networks import open_network
from hgru_vision.recipes.quick import quick
from hgru_vision.training.checkpoint import build
from hgru_vision.training.files import write_json


def test_a_run_is_opened_with_its_configuration_and_result(tmp_path, result):
    config = quick()
    write_json(tmp_path / "config.json", config.to_json())
    save_file(build(config).state_dict(), tmp_path / "weights.safetensors")
    opened = open_network(str(tmp_path))
    assert opened.config == config and opened.result is None
    assert not opened.network.training
    write_json(tmp_path / "result.json", result().to_json())
    assert open_network(str(tmp_path)).result == result()


def test_trained_weights_are_opened_by_their_name(tmp_path, monkeypatch):
    config = quick()
    numbers = save(build(config).state_dict())
    result = {"outcome": "finished", "accuracy": 0.9, "correct": 9, "test_images": 10, "alc": None,
              "stuck": False, "curve": [], "images": 1, "seconds": 1.0, "images_per_second": 1.0,
              "waiting": 0.0, "peak_memory": 1, "parameters": 1, "device": "cpu",
              "versions": {}}  # fmt: skip
    card = {"schema": 1, "name": "hgru_small.x", "sha256": sha256(numbers).hexdigest(),
            "command": "", "note": "", "config": config.to_json(), "result": result}  # fmt: skip
    (tmp_path / "hgru_small.x.safetensors").write_bytes(numbers)
    write_json(tmp_path / "hgru_small.x.json", card)
    monkeypatch.setattr("hgru_vision.weights.FOLDER", tmp_path)
    opened = open_network("hgru_small.x")
    assert opened.config == config and opened.result.accuracy == 0.9
    assert not opened.network.training


def test_a_network_of_ones_own_is_opened(tmp_path):
    (tmp_path / "net.py").write_text("import torch\ndef load():\n    return torch.nn.Identity()\n")
    opened = open_network(f"{tmp_path}/net.py:load")
    assert type(opened.network).__name__ == "Identity" and opened.config is None


def test_a_run_of_a_network_of_ones_own_is_opened_from_its_copy(nets, tmp_path):
    config = quick(model="nets.py:leaky")
    write_json(tmp_path / "run" / "config.json", config.to_json())
    save_file(build(config).state_dict(), tmp_path / "run" / "weights.safetensors")
    nets.rename("run/nets.py")
    opened = open_network("run")
    assert type(opened.network).__name__ == "Leaky" and opened.config.hash == config.hash


def test_what_is_no_network_is_refused(tmp_path):
    (tmp_path / "net.py").write_text("def number():\n    return 3\n")
    with pytest.raises(TypeError, match=r"net\.py:number returned int, not a torch\.nn\.Module"):
        open_network(f"{tmp_path}/net.py:number")
    with pytest.raises(ValueError, match="defines no function 'load'; it has number"):
        open_network(f"{tmp_path}/net.py:load")


@pytest.mark.parametrize("name", ["hgrou", "runs/12:30", "nets.txt:load"])
def test_what_is_neither_is_refused(name):
    with pytest.raises(FileNotFoundError, match=rf"no network '{name}'; give the folder of a run"):
        open_network(name)
