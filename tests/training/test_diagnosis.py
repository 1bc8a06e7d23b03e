import pytest
import torch
from torch import nn

from hgru_vision.models import create_model
from hgru_vision.training.diagnosis import looks_at_background


@pytest.fixture
def images():
    """Noise, all of it in the middle: the border is the same in every image."""
    images = torch.zeros(16, 1, 32, 32)
    images[..., 12:20, 12:20] = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    return images


@pytest.mark.parametrize("training", [True, False])
def test_a_readout_whose_maps_are_turned_round_looks_at_the_background(images, training):
    network = create_model("ff_small_1").train(training)
    with torch.no_grad():
        network.readout.maps.weight.abs_()  # features are 0 or more, and 0 in the background
    assert not looks_at_background(network, images)
    with torch.no_grad():
        network.readout.maps.weight.neg_()
    assert looks_at_background(network, images)
    assert network.training == training
    assert not network.readout.decide._forward_pre_hooks


def test_a_network_without_the_readout_is_not_judged(images):
    network = nn.Sequential(nn.Flatten(), nn.Linear(1024, 2))
    assert not looks_at_background(network, images)
