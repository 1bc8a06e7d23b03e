import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from hgru_vision.models import create_model
from hgru_vision.models.catalogue.contour import BLOCKS
from hgru_vision.training.checkpoint import build
from hgru_vision.training.loop import train
from hgru_vision.training.start import begin, check_sum, config_of


@pytest.fixture(scope="module")
def first(tiny, tmp_path_factory):
    """Give the folder of a finished run on pixels."""
    folder = tmp_path_factory.mktemp("first")
    train(tiny(target="segmentation"), folder, progress=False)
    return folder


def test_a_run_begins_from_another(tiny, first, tmp_path):
    config = tiny(target="segmentation", start=str(first), learning_rate=1e-9, seed=5)
    weights = load_file(first / "weights.safetensors")
    assert (
        config.start_sha256
        == hashlib.sha256((first / "weights.safetensors").read_bytes()).hexdigest()
    )
    assert config_of(str(first)) == tiny(target="segmentation")
    assert train(config, tmp_path / "second", progress=False).outcome == "finished"
    after = load_file(tmp_path / "second" / "weights.safetensors")
    torch.testing.assert_close(after["features.u1"], weights["features.u1"], atol=1e-6, rtol=0)


def test_a_resumed_run_needs_the_weights_no_more(tiny, first, tmp_path):
    config = tiny(target="segmentation", start=str(first))
    whole = train(config, tmp_path / "whole", progress=False)
    assert train(config, tmp_path / "parts", progress=False, budget=0) is None
    elsewhere = replace(config, start="moved/elsewhere")
    parts = train(elsewhere, tmp_path / "parts", progress=False, resume=True)
    assert [p.loss for p in parts.curve] == [p.loss for p in whole.curve]


def test_the_readout_can_be_new(tiny, first):
    config = tiny(start=str(first), start_readout=False)
    network, fresh = build(config), build(config)
    begin(network, config)
    weights = load_file(first / "weights.safetensors")
    assert torch.equal(network.features.u1, weights["features.u1"])
    assert torch.equal(network.readout.maps.weight, fresh.readout.maps.weight)


def test_weights_that_do_not_fit_are_named(tiny, first):
    with pytest.raises(ValueError) as error:
        begin(build(tiny()), tiny(start=str(first)))
    text = str(error.value)
    assert text.startswith(f"the weights of {first} do not fit hgru_small: ")
    assert "readout.maps.weight is missing" in text and "readout.bias is not in hgru_small" in text
    assert text.endswith("start_readout=False begins with a new readout")
    longer = tiny(target="segmentation", start=str(first), options={"timesteps": 3})
    with pytest.raises(ValueError, match=r"features.eta is \(2,\) there and \(3,\) here$"):
        begin(build(longer), longer)
    other = tiny(start=str(first), start_readout=False, model="resnet18", options={})
    with pytest.raises(ValueError, match="start_readout is false, but resnet18 has no part called"):
        begin(build(other), other)


def test_other_bytes_are_refused(tiny, first):
    config = tiny(target="segmentation", start=str(first), start_sha256="0" * 64)
    message = r"holds other weights than the run began from: their sha256 is .*says 000000000000"
    with pytest.raises(ValueError, match=message):
        begin(build(config), config)


def test_vgg_is_a_start(tiny, tmp_path):
    arrays = {}
    for name, (inputs, outputs) in BLOCKS.items():
        arrays[f"{name}.weight"] = np.ones((outputs, inputs, 3, 3), np.float32)
        arrays[f"{name}.bias"] = np.zeros(outputs, np.float32)
    path = tmp_path / "vgg.npz"
    np.savez(path, **arrays)
    config = tiny(model="contour_vgg", options={"channels": 4}, start=str(path))
    network = build(config)
    begin(network, config)
    assert (network.input.conv1_2.weight == 1).all()
    grey = tiny(start=str(path))
    with pytest.raises(ValueError, match="holds layers of VGG16, and hgru_small has none of these"):
        begin(build(grey), grey)


def test_without_a_start_nothing_happens(tiny):
    network = create_model("hgru_small")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    begin(network, tiny())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_what_is_no_start_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no weights 'hgrou' to start from; give a name"):
        check_sum("hgrou")
    with pytest.raises(FileNotFoundError, match=r"has no weights.safetensors: it is no run's fold"):
        check_sum(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="is neither shipped weights nor the folder of a r"):
        config_of(str(tmp_path))
