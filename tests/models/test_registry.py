import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

import hgru_vision as hv
from hgru_vision.models import registry
from hgru_vision.models.catalogue import CATALOGUE, NATURAL, NETWORKS
from hgru_vision.models.filters import released_bank
from hgru_vision.models.stages import PoolFirstReadout


def test_names_are_in_natural_order():
    assert hv.list_models("resnet???") == ["resnet152"]
    names = hv.list_models("resnet*")
    assert names.index("resnet18") < names.index("resnet50") < names.index("resnet152")
    assert hv.list_models("hgru_?") == ["hgru_4", "hgru_6"]
    assert hv.list_models("no such model") == []
    assert set(hv.list_models()) == set(NETWORKS) == set(CATALOGUE) | set(NATURAL)


def test_the_networks_of_the_paper_are_all_there():
    families = [entry.family for entry in CATALOGUE.values()]
    counts = {family: families.count(family) for family in families if family != "beyond"}
    assert counts == {
        "recurrent": 10,
        "feedforward": 15,
        "highway": 3,
        "residual": 6,
        "per-pixel": 6,
    }


def test_residual_and_per_pixel_networks_train_for_four_epochs_and_the_papers_others_for_two():
    for name, entry in CATALOGUE.items():
        if entry.family != "beyond":
            assert entry.epochs == (4 if entry.family in ("residual", "per-pixel") else 2), name


def test_an_unknown_name_gets_the_nearest():
    message = r"no model 'hgru_no_quadratc' \(.*\); did you mean 'hgru_no_quadratic'\?"
    with pytest.raises(ValueError, match=message):
        hv.create_model("hgru_no_quadratc")
    with pytest.raises(ValueError, match=r"no model 'zzz' \('hgru models', .* names all \d+\)$"):
        hv.create_model("zzz")
    for name in (None, 18, ["hgru"]):
        with pytest.raises(ValueError, match=f"no model {re.escape(repr(name))} "):
            hv.create_model(name)


def test_an_unknown_keyword_gets_the_nearest_and_all_that_there_are():
    with pytest.raises(TypeError) as caught:
        hv.create_model("hgru", timestep=8)
    assert str(caught.value) == (
        "hgru has no keyword 'timestep' (it takes seed, head, pool_first, released_filters, "
        "timesteps, drive_gain, least_time_gain, most_time_gain, mostly_new, backend); did you "
        "mean 'timesteps'?"
    )
    message = r"'timesteps' \(it takes seed, head, pool_first, released_filters\)$"
    with pytest.raises(TypeError, match=message):
        hv.create_model("ff_small_1", timesteps=8)
    with pytest.raises(TypeError, match="hgru has no keyword 'generator'"):
        hv.create_model("hgru", generator=torch.Generator())


def test_the_readout_of_the_released_code_is_for_networks_with_the_papers():
    for name in ("unet_tenth", "ff_small_1", "highway_1", "contour_vgg"):
        network, usual = hv.create_model(name, pool_first=True), hv.create_model(name)
        assert type(network.readout) is PoolFirstReadout
        assert torch.equal(network.readout.maps.weight, usual.readout.maps.weight)
    message = "pool_first is for the paper's readout stage, which resnet18 has not"
    with pytest.raises(ValueError, match=message):
        hv.create_model("resnet18", pool_first=True)
    message = "pool_first is for the paper's readout stage, which head pixels has not"
    with pytest.raises(ValueError, match=message):
        hv.create_model("hgru", pool_first=True, head="pixels")
    with pytest.raises(TypeError, match="pool_first is 1; it must be true or false"):
        hv.create_model("hgru", pool_first=1)


def test_the_filters_of_the_released_code_are_for_networks_with_the_papers_input_stage():
    for name in ("hgru", "ff_small_1", "highway_1", "cornet_block"):
        network = hv.create_model(name, released_filters=True)
        assert torch.equal(network.input.weight, released_bank())
    small = hv.create_model("hgru_small", released_filters=True, head="pixels").input.weight
    assert torch.equal(small[2:4], released_bank()[6:8])  # 45 degrees
    message = "released_filters is for the paper's input stage, which resnet18 has not"
    with pytest.raises(ValueError, match=message):
        hv.create_model("resnet18", released_filters=True)
    with pytest.raises(TypeError, match="released_filters is 1; it must be true or false"):
        hv.create_model("hgru", released_filters=1)


@pytest.mark.parametrize(
    ("name", "keyword", "value", "message"),
    [
        ("hgru", "timesteps", "abc", "timesteps is 'abc'; it must be a whole number"),
        ("hgru", "timesteps", 2.0, r"timesteps is 2\.0; it must be a whole number"),
        ("hgru", "timesteps", True, "timesteps is True; it must be a whole number"),
        ("hgru", "drive_gain", "1", "drive_gain is '1'; it must be a number"),
        ("contour_vgg", "train_vgg", 1, "train_vgg is 1; it must be true or false"),
        ("contour_feedforward", "kernel_size", 0, "kernel_size is 0; it must be 1 or more"),
        ("resnet18", "in_channels", 0, "in_channels is 0; it must be 1 or more"),
        ("hgru_crbp", "steps", -4, "steps is -4; it must be 1 or more"),
    ],
)
def test_what_a_keyword_cannot_be_is_refused(name, keyword, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        hv.create_model(name, **{keyword: value})


def test_an_unknown_head_is_refused():
    with pytest.raises(ValueError, match="head is 'pixel'; choose one of classify, pixels"):
        hv.create_model("hgru", head="pixel")


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5, "0"])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match=rf"seed is {seed!r}; it must be a whole number from 0 to"):
        hv.create_model("hgru", seed=seed)


def test_a_seed_of_numpy_is_a_seed():
    ours, theirs = (hv.create_model("hgru_4", seed=seed) for seed in (5, np.int64(5)))
    assert torch.equal(ours.features.w(), theirs.features.w())


def test_the_seed_is_all_that_the_start_depends_on():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = hv.create_model("gru", seed=3).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    again, other = (hv.create_model("gru", seed=seed).state_dict() for seed in (3, 4))
    assert all(torch.equal(again[key], first[key]) for key in first)
    assert not torch.equal(other["features.w"], first["features.w"])


@pytest.mark.parametrize("name", ["hgru", "hgru_bn", "fcn", "contour_vgg"])
def test_a_network_is_on_the_cpu_whatever_the_default_device(name):
    with torch.device("meta"):
        network = hv.create_model(name, pool_first=True, released_filters=name.startswith("hgru"))
    values = [*network.parameters(), *network.buffers()]
    assert {value.device.type for value in values} == {"cpu"}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_function_names_its_arguments(name):
    parameters = inspect.signature(registry._builder(name)).parameters.values()
    assert {"generator", "head"} <= {parameter.name for parameter in parameters}
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters)


def test_listing_loads_no_torch():
    code = "import sys, hgru_vision as hv; hv.list_models(); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
