import pytest
import torch
from torch import nn

from hgru_vision.models import create_model
from hgru_vision.training.diagnosis import find_cause


@pytest.fixture
def images():
    """Noise, all of it in the middle: the border is the same in every image."""
    images = torch.zeros(16, 1, 32, 32)
    images[..., 12:20, 12:20] = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    return images


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("pool_first", [True, False])
def test_a_readout_whose_maps_are_turned_round_looks_at_the_background(
    images, training, pool_first
):
    network = create_model("ff_small_1", pool_first=pool_first).train(training)
    with torch.no_grad():
        network.readout.maps.weight.abs_()  # features are 0 or more, and 0 in the background
    assert find_cause(network, images) is None
    with torch.no_grad():
        network.readout.maps.weight[0].neg_()
    assert find_cause(network, images) is None  # the other map sees the images
    with torch.no_grad():
        network.readout.maps.weight[1].neg_()
    assert find_cause(network, images) == "background"
    assert network.training == training
    assert not network.readout._forward_pre_hooks
    assert not network.readout.maps._forward_hooks


def test_maxima_that_differ_little_are_the_background_for_either_readout(images):
    """The one that pools first sees them in units of how much they differ."""
    causes = []
    for pool_first in (True, False):
        network = create_model("ff_small_1", pool_first=pool_first)
        with torch.no_grad():
            network.readout.maps.weight.abs_().neg_()
            images[:, :, 0, 0] = 1e-3 * torch.arange(16)[:, None]  # so that maxima differ at all
            if pool_first:  # statistics of these maxima
                strongest = network.readout.maps(network.features(network.input(images))).amax(
                    (2, 3)
                )
                network.readout.normalise.running_mean.copy_(strongest.mean(0))
                network.readout.normalise.running_var.copy_(strongest.var(0))
        causes.append(find_cause(network, images))
    assert causes == ["background", "background"]


@pytest.mark.parametrize("training", [True, False])
def test_what_hardly_differs_is_silent(images, training):
    network = create_model("ff_small_1").train(training)
    maps = network.readout.maps
    with torch.no_grad():
        maps.weight.abs_()
        spread = maps(network.features(network.input(images))).std(dim=(0, 2, 3)).max()
        maps.weight.mul_(1.1e-4 / spread)
    assert find_cause(network, images) is None
    with torch.no_grad():
        maps.weight.mul_(0.8)
    assert find_cause(network, images) == "silent"  # the signal has faded
    network = create_model("ff_small_1").train(training)
    with torch.no_grad():
        network.features[0].bias.fill_(-1e6)
    assert find_cause(network, images) == "silent"  # all units have died


def test_activity_that_is_everywhere_feeds_itself(images):
    network = create_model("hgru_small")
    assert find_cause(network, images) != "self-excited"
    with torch.no_grad():  # an excitation that spreads from pixel to pixel and does not fade
        network.features.w.pairs.fill_(0.1)
        network.features.beta.fill_(1)
        network.features.b2.fill_(3)
    assert find_cause(network, images) == "self-excited"
    assert find_cause(network, torch.ones_like(images)) != "self-excited"  # no place is empty


def test_activity_is_looked_at_before_the_batch_norm_that_follows_the_released_circuit(images):
    network = create_model("hgru_released", timesteps=4)
    with torch.no_grad():  # what is 0 in empty places is no longer 0 after it
        network.features.norm.bias.fill_(10)
    assert find_cause(network, images) != "self-excited"
    with torch.no_grad():
        network.features.w.fill_(0.1)
        network.features.kappa.fill_(1)
        network.features.gamma.fill_(1)
        network.features.b2.fill_(-3)
        network.features.eta.fill_(1)
    assert find_cause(network, images) == "self-excited"


def test_without_a_circuit_there_is_nothing_that_feeds_itself(images):
    network = create_model("ff_small_1")
    with torch.no_grad():
        network.features[0].bias.fill_(100)
    assert find_cause(network, images) != "self-excited"


class Own(nn.Module):
    """A network of a user's own, which reads out so many times."""

    def __init__(self, times):
        super().__init__()
        self.network, self.times = create_model("ff_small_1"), times

    def forward(self, images):
        features = self.network.features(self.network.input(images))
        return sum((self.network.readout(features) for _ in range(self.times)), torch.zeros(2))


def test_a_readout_may_be_used_several_times_or_not_at_all(images):
    network = Own(2)
    with torch.no_grad():
        network.network.readout.maps.weight.abs_().neg_()
    assert find_cause(network, images) == find_cause(network.network, images) == "background"
    network.times = 0
    assert find_cause(network, images) is None


def test_a_network_without_the_readout_is_not_judged(images):
    network = nn.Sequential(nn.Flatten(), nn.Linear(1024, 2))
    assert find_cause(network, images) is None
