"""What every network of the study must do. The networks come one by one, each built once."""

import pytest
import torch
from safetensors.torch import load, save

from hgru_vision.models import create_model, list_models
from hgru_vision.models.catalogue import NETWORKS

SIZES = [(32, 32), (33, 47)]
LARGE_SIZES = [(64, 32), (97, 160), (150, 150)]

# What a network is made with where its size does not matter and its own takes seconds.
SMALLER = {"contour_hgru": {"kernel_size": 5, "timesteps": 3}}


def make(name, **keywords):
    return create_model(name, **(SMALLER.get(name, {}) | keywords))


def images(count, height=32, width=32):
    return torch.rand(count, 1, height, width, generator=torch.Generator().manual_seed(7))


@pytest.fixture(scope="module", params=list_models())
def name(request):
    return request.param


@pytest.fixture(scope="module")
def network(name, decisive):
    return decisive(make(name))


@pytest.fixture
def evaluated(network):
    with torch.no_grad():
        yield network.eval()


def assert_every_parameter_learns(network, output):
    assert output.isfinite().all()
    labels = torch.tensor([0, 1]).view(2, *(1,) * (output.ndim - 2)).expand(2, *output.shape[2:])
    torch.nn.functional.cross_entropy(output, labels).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert parameter.grad.isfinite().all(), f"the gradient of {name} is not finite"
    learning = [parameter.grad.any() for parameter in network.parameters()]
    assert sum(learning) > 0.9 * len(learning)
    network.zero_grad()


def test_parameters_are_those_of_the_arithmetic(name):
    network = create_model(name)
    assert sum(p.numel() for p in network.parameters()) == NETWORKS[name].parameters
    assert all(p.requires_grad and p.device.type == "cpu" for p in network.parameters())


def test_two_logits_and_a_finite_gradient_for_every_parameter(network):
    output = network.train()(images(2))
    assert output.shape == (2, 2)
    assert_every_parameter_learns(network, output)


def test_two_logits_a_pixel(name):
    network = make(name, head="pixels")
    output = network(images(2, 33, 47))
    assert output.shape == (2, 2, 33, 47)
    assert_every_parameter_learns(network, output)


@pytest.mark.parametrize(
    "size", [*SIZES, *(pytest.param(s, marks=pytest.mark.slow) for s in LARGE_SIZES)]
)
def test_any_size(evaluated, size):
    output = evaluated(images(1, *size))
    assert output.shape == (1, 2)
    assert output.isfinite().all()


def test_an_image_does_not_see_the_others_of_its_batch(evaluated):
    batch = images(3)
    alone = torch.cat([evaluated(batch[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(evaluated(batch), alone, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(alone[0], alone[1], rtol=1e-6, atol=0)


def test_what_is_saved_and_loaded_gives_the_same_output(name, evaluated, decisive):
    before = torch.get_rng_state()
    other = decisive(make(name, seed=1)).eval()
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(other(images(2)), evaluated(images(2)))
    other.load_state_dict(load(save(evaluated.state_dict())))
    assert torch.equal(other(images(2)), evaluated(images(2)))


def test_images_of_another_dtype_are_refused(evaluated):
    message = "images are torch.float64 and the network torch.float32; convert one of them: images"
    with pytest.raises(TypeError, match=message):
        evaluated(images(1).double())


@pytest.mark.parametrize("shape", [(1, 32, 32), (2, 2, 32, 32), (0, 1, 32, 32), (1, 1, 0, 32)])
def test_what_is_no_batch_of_grey_images_is_refused(evaluated, shape):
    with pytest.raises(ValueError, match=r"images have shape .* this network takes \(B, 1, H, W\)"):
        evaluated(torch.zeros(shape))
