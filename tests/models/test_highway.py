import pytest
import torch
import torch.nn.functional as F

from hgru_vision.models import create_model
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.models.highway import Highway


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_depth(depth):
    layers = list(create_model(f"highway_{depth}").features)
    assert [type(layer) for layer in layers] == depth * [Highway]


def test_a_layer_mixes_what_it_computes_with_what_it_carries():
    layer = Highway(3, 8, generator())
    x = torch.randn(2, 3, 20, 17, generator=generator())
    padded = F.pad(x, (3, 4, 3, 4))
    transform = F.conv2d(padded, layer.transform.weight, layer.transform.bias).relu()
    gate = F.conv2d(padded, layer.gate.weight, layer.gate.bias).sigmoid()
    expected = transform * gate + x * (1 - gate)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_network_takes_autocast(dtype):
    network = create_model("highway_3", head="pixels")
    images = torch.rand(1, 1, 16, 16, generator=generator())
    with torch.autocast("cpu", dtype=dtype):
        logits = network(images)
    logits.float().sum().backward()
    torch.testing.assert_close(logits.float(), network(images), rtol=0.05, atol=0.02)


def test_a_new_layer_carries_most_of_its_input():
    layer = Highway(3, 8, generator())
    assert (layer.gate.bias == -1).all()
    assert not layer.transform.bias.any()


def test_one_layer_has_about_as_many_parameters_as_the_hgru():
    hgru = CATALOGUE["hgru"].parameters
    sizes = [25 * 49 + 2 * (25 * 25 * size**2 + 25) + 60 for size in range(5, 12)]
    nearest = min(sizes, key=lambda size: abs(size - hgru))
    assert CATALOGUE["highway_1"].parameters == nearest
