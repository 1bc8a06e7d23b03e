"""How far a circuit sees."""

import pytest
import torch

from hgru_vision import create_model
from hgru_vision.analysis.reach import reach

IMAGES = torch.rand(2, 1, 24, 30, generator=torch.Generator().manual_seed(3))


def small(seed=0, **options):
    return create_model("hgru_small", seed=seed, **options)


def test_it_is_the_norm_of_the_whole_derivative():
    network = small(timesteps=3).double()
    drive = network.input(IMAGES.double()).detach()

    def middle(drive):
        return network.features(drive)[:, :, 12, 15].sum(dim=0)  # images do not interact

    whole = torch.autograd.functional.jacobian(middle, drive).square().sum(dim=(0, 1, 2))
    expected = []
    for inner in (0, 4, 8):
        pixels = [
            whole[y, x]
            for y in range(24)
            for x in range(30)
            if inner <= max(abs(y - 12), abs(x - 15)) < inner + 4
        ]
        expected.append(torch.stack(pixels).mean().sqrt())
    expected = torch.stack(expected)
    found = reach(network, IMAGES, ring=4, draws=400)
    torch.testing.assert_close(found, expected / expected[0], rtol=0.1, atol=0)


def test_one_step_sees_as_far_as_its_two_convolutions():
    # 7x7 kernels: H1[1] has seen its own pixel (H2[0] is zero), H2[1] what is 3 pixels around it.
    found = reach(small(timesteps=1), IMAGES, ring=4)
    assert found[0] == 1 and not found[1:].any()
    further = reach(small(timesteps=2), IMAGES, ring=4)
    assert (further > 0).all()


def test_the_network_is_left_as_it_is():
    network = small().train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    found = reach(network, IMAGES, ring=4)
    assert torch.equal(found, reach(network, IMAGES, ring=4))
    assert network.training and network.features.backend == "auto"
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert all(value.grad is None for value in network.parameters())
    assert next(network.parameters()).dtype == torch.float32


def test_what_does_not_fit_is_refused():
    message = "rings of 8 pixels do not fit twice into the half of an image of 24 x 30"
    with pytest.raises(ValueError, match=message):
        reach(small(), IMAGES, ring=8)
    with pytest.raises(TypeError, match="has no recurrent circuit `features`"):
        reach(create_model("resnet18"), IMAGES, ring=4)
    for name in ("ring", "draws"):
        with pytest.raises(ValueError, match=f"{name} is 0; it must be 1 or more"):
            reach(small(), IMAGES, **{"ring": 4, name: 0})
