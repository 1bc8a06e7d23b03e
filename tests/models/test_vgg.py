import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from hgru_vision.models.vgg import VGG16Encoder

CONVOLUTIONS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)  # places in torchvision's features
POOLINGS = (4, 9, 16, 23, 30)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def encoder():
    return VGG16Encoder(generator=seeded())


@pytest.fixture(scope="module")
def images():
    return torch.rand(1, 1, 64, 70, generator=seeded())


@pytest.fixture(scope="module")
def encoding(encoder, images):
    with torch.no_grad():
        return encoder(images)


def test_names_and_number_of_parameters_are_those_of_torchvision():
    encoder = VGG16Encoder(in_channels=3, generator=seeded())
    names = [f"features.{place}.{kind}" for place in CONVOLUTIONS for kind in ("weight", "bias")]
    assert list(encoder.state_dict()) == names
    assert sum(p.numel() for p in encoder.parameters()) == 14_714_688
    normalised = VGG16Encoder(in_channels=3, generator=seeded(), batch_norm=True)
    assert sum(p.numel() for p in normalised.parameters()) == 14_723_136  # of vgg16_bn
    assert "features.41.running_var" in normalised.state_dict()  # its last


def test_output_is_that_of_torchvision():
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:  # RuntimeError: made for another torch
        pytest.skip(f"torchvision cannot be imported: {error}")
    with torch.random.fork_rng(devices=[]):
        theirs = models.vgg16()
    ours = VGG16Encoder(in_channels=3, generator=seeded())
    ours.features.load_state_dict(theirs.features.state_dict())
    images = torch.rand(2, 3, 75, 64, generator=seeded())
    with torch.no_grad():
        torch.testing.assert_close(
            ours(images).pooled, theirs.features(images), rtol=1e-5, atol=1e-5
        )


def test_a_relu_follows_each_convolution_and_a_pooling_each_block():
    encoder = VGG16Encoder(fraction=1e-2, generator=seeded())
    images = torch.randn(1, 1, 75, 64, generator=seeded())
    x = images
    with torch.no_grad():
        for place in sorted(CONVOLUTIONS + POOLINGS):
            if place in POOLINGS:
                x = F.max_pool2d(x, 2)
            else:
                layer = encoder.features[place]
                nn.init.uniform_(layer.bias, -0.1, 0.1, generator=seeded(place))
                x = F.conv2d(x, layer.weight, layer.bias, padding=1).relu()
        torch.testing.assert_close(encoder(images).pooled, x)
    assert x.any()


def test_the_start_is_xavier_uniform_without_bias(encoder):
    layers = [layer for layer in encoder.features if isinstance(layer, nn.Conv2d)]
    assert len(layers) == 13
    for layer in layers:
        bound = math.sqrt(6 / (9 * (layer.in_channels + layer.out_channels)))
        assert layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert (layer.bias == 0).all()


def test_activities_are_those_of_the_last_convolution_of_each_block(encoder, images, encoding):
    x, tapped = images, []
    with torch.no_grad():
        for place, layer in enumerate(encoder.features):
            x = layer(x)
            if place in (3, 8, 15, 22, 29):  # the ReLU of conv1_2, 2_2, 3_3, 4_3 and 5_3
                tapped.append(x)
    for activity, expected in zip(encoding.activities, tapped, strict=True):
        assert torch.equal(activity, expected)
    assert torch.equal(encoding.pooled, x)


def test_indices_are_the_places_of_the_maxima(encoding):
    for activity, places in zip(encoding.activities, encoding.indices, strict=True):
        maxima = activity.flatten(2).gather(2, places.flatten(2)).view_as(places)
        assert torch.equal(maxima, F.max_pool2d(activity, 2))


def test_odd_sides_lose_their_last_row_or_column():
    encoder = VGG16Encoder(fraction=1e-3, generator=seeded())
    encoding = encoder(torch.rand(1, 1, 150, 33, generator=seeded()))
    sizes = [tuple(activity.shape[-2:]) for activity in encoding.activities]
    assert sizes == [(150, 33), (75, 16), (37, 8), (18, 4), (9, 2)]
    assert encoding.pooled.shape[-2:] == (4, 1)


def test_a_fraction_narrows_every_block_by_its_square_root():
    encoder = VGG16Encoder(fraction=1 / 4, generator=seeded())
    assert encoder.channels == (32, 64, 128, 256, 256)
    assert encoder.features[28].weight.shape == (256, 256, 3, 3)
    assert VGG16Encoder(fraction=1e-9, generator=seeded()).channels == (1, 1, 1, 1, 1)


@pytest.mark.parametrize("fraction", [0, 2])
def test_impossible_fraction_is_refused(fraction):
    with pytest.raises(
        ValueError, match=f"fraction is {fraction}; it must be above 0 and at most 1"
    ):
        VGG16Encoder(fraction=fraction, generator=seeded())
