"""Runs of networks of a user's own."""

import shutil
from pathlib import Path

import pytest
import torch

from hgru_vision.training.checkpoint import load_run
from hgru_vision.training.files import read_config


@pytest.fixture
def own(tiny, nets):
    """Give a function that makes a run of a network of the file."""
    return lambda **changes: tiny(**{"model": "nets.py:leaky", "options": {}} | changes)


def test_a_run_keeps_a_copy_of_the_file_and_is_loaded_from_it(own, quiet, nets):
    assert quiet(own(options={"channels": 3}), Path("run")).outcome == "finished"
    assert Path("run/nets.py").read_bytes() == nets.read_bytes()
    nets.write_text("def leaky(channels):\n    return None\n")
    network, config = load_run("run")
    assert network.drive.out_channels == 3
    assert config.hash == read_config(Path("run")).hash and config.reference == "run/nets.py:leaky"
    shutil.move("run", "moved")
    nets.unlink()
    assert load_run("moved")[1].reference == "moved/nets.py:leaky"


def test_a_run_is_a_function_of_its_configuration(own, quiet, assert_same, weights, nets):
    for folder, seed in (("one", 0), ("two", 0), ("other", 1)):
        torch.rand(3)  # a global state that was moved
        quiet(own(seed=seed), Path(folder))
    assert_same(Path("one"), Path("two"))
    one, other = weights(Path("one")), weights(Path("other"))
    assert not torch.equal(one["drive.weight"], other["drive.weight"])


def test_a_network_that_cannot_be_trained_leaves_no_trace(own, quiet, nets):
    with pytest.raises(ValueError, match=r"nets\.py:leaky must give two logits a pixel"):
        quiet(own(target="segmentation"), Path("run"))
    assert not Path("run").exists()


def test_a_changed_file_is_told_and_the_copy_goes_on_to_the_same_bits(
    own, quiet, assert_same, nets
):
    quiet(own(), Path("whole"))
    assert quiet(own(), Path("run"), budget=0) is None
    nets.write_text(nets.read_text() + "# a word\n")
    with pytest.raises(ValueError) as refused:
        quiet(own(), Path("run"), resume=True)
    assert str(refused.value) == (
        "nets.py has changed since the run in run began. To go on with the copy from then: hgru "
        "train --config run --out run --resume. For the changed network give another folder"
    )
    quiet(read_config(Path("run")), Path("run"), resume=True)
    assert_same(Path("whole"), Path("run"))


def test_a_run_resumes_where_its_file_is_gone(own, quiet, assert_same, nets):
    config = own()
    quiet(config, Path("whole"))
    assert quiet(config, Path("run"), budget=0) is None
    nets.unlink()
    quiet(config, Path("run"), resume=True)
    assert_same(Path("whole"), Path("run"))


def test_what_a_network_draws_goes_on_after_a_stop(own, quiet, assert_same, nets):
    with nets.open("a") as file:
        file.write("\ndef noisy():\n    return nn.Sequential(nn.Dropout(0.5), Leaky(4))\n")
    config = own(model="nets.py:noisy")
    quiet(config, Path("whole"))
    assert quiet(config, Path("run"), budget=0) is None
    quiet(config, Path("run"), resume=True)
    assert_same(Path("whole"), Path("run"))


def test_a_run_begins_from_the_weights_of_another(own, quiet, weights, nets):
    quiet(own(), Path("first"))
    quiet(own(start="first", learning_rate=1e-9, seed=3), Path("second"))
    first, second = weights(Path("first")), weights(Path("second"))
    torch.testing.assert_close(second["drive.weight"], first["drive.weight"], atol=1e-6, rtol=0)


def test_layers_may_share_their_weights(own, quiet, nets):
    with nets.open("a") as file:
        file.write(
            "\ndef tied():\n    network = Leaky(1)\n    network.again = network.spread\n"
            "    return network\n"
        )
    quiet(own(model="nets.py:tied"), Path("run"))
    network, _ = load_run("run")
    assert network.again.weight is network.spread.weight
