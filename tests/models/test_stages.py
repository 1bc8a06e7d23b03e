import math

import pytest
import torch
import torch.nn.functional as F

from hgru_vision.models.filters import gabor_bank, released_bank
from hgru_vision.models.stages import (
    InputStage,
    PoolFirstReadout,
    Readout,
    StandardNetwork,
    check_images,
    enlarged,
    pixel_readout,
    xavier,
)


def generator():
    return torch.Generator().manual_seed(0)


def test_the_input_stage_squares_and_scales():
    image = torch.rand(2, 1, 20, 31, generator=generator())
    stage = InputStage(gain=0.5)
    expected = 0.5 * F.conv2d(image, gabor_bank(), padding=3) ** 2
    torch.testing.assert_close(stage(image), expected)
    torch.testing.assert_close(stage(-image), expected)
    assert stage.weight.requires_grad
    assert "gain=0.5" in repr(stage)


def test_the_input_stage_can_have_a_bias_which_starts_at_zero():
    image = torch.rand(2, 1, 20, 31, generator=generator())
    stage = InputStage(gain=0.5, bias=True)
    torch.testing.assert_close(stage(image), InputStage(gain=0.5)(image))
    with torch.no_grad():
        stage.bias.fill_(2)
    torch.testing.assert_close(
        stage(image), 0.5 * (F.conv2d(image, gabor_bank(), padding=3) + 2) ** 2
    )
    assert stage.bias.requires_grad
    assert [name for name, _ in InputStage().named_parameters()] == ["weight"]


def test_the_input_stage_can_start_from_other_filters():
    stage = InputStage()
    stage.start_from(released_bank())
    assert torch.equal(stage.weight, released_bank())
    assert stage.weight.requires_grad
    stage.double().start_from(released_bank())
    assert stage.weight.dtype == torch.float64


@pytest.mark.parametrize("gain", [0, -1.0, math.inf, math.nan])
def test_a_gain_that_is_no_positive_number_is_refused(gain):
    with pytest.raises(ValueError, match=f"gain of the drive is {gain}; it must be a positive"):
        InputStage(gain=gain)


def test_the_readout_is_the_papers(decisive):
    readout = decisive(Readout(3, generator()))
    features = torch.rand(4, 3, 9, 8, generator=generator())
    maps = torch.einsum("oc,bchw->bohw", readout.maps.weight[:, :, 0, 0], features)
    mean, variance = maps.mean(dim=(0, 2, 3)), maps.var(dim=(0, 2, 3), correction=0)
    scaled = (maps - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
    expected = scaled.amax(dim=(2, 3)) @ readout.decide.weight.T + readout.decide.bias
    torch.testing.assert_close(readout(features), expected)
    # The running statistics go slowly: 2 % of the way a batch.
    torch.testing.assert_close(readout.normalise.running_mean, 0.02 * mean)


def test_a_strong_feature_counts_wherever_it_is(decisive):
    readout = decisive(Readout(3, generator())).eval()
    features = torch.rand(1, 3, 8, 8, generator=generator())
    torch.testing.assert_close(readout(features.roll((3, 5), (2, 3))), readout(features))


@pytest.mark.parametrize("seed", range(5))
def test_an_untrained_network_is_undecided(seed):
    # With a large first loss the maps turn round, and the network never leaves chance.
    generator = torch.Generator().manual_seed(seed)
    network = StandardNetwork(torch.nn.Sigmoid(), 25, "classify", generator)
    logits = network(torch.rand(8, 1, 32, 32, generator=generator))
    assert torch.equal(logits, torch.zeros(8, 2))
    loss = F.cross_entropy(logits, torch.arange(8) % 2)
    assert loss.item() == pytest.approx(math.log(2))
    # The classifier learns from the first batch, and through it all the rest from the second.
    loss.backward()
    assert network.readout.decide.weight.grad.all()
    assert network.readout.maps.weight.grad.eq(0).all()


def test_a_readout_that_pools_first_normalises_the_maxima_of_a_batch():
    readout = PoolFirstReadout(3, generator())
    features = torch.rand(5, 3, 6, 7, generator=generator())
    maps = torch.einsum("oc,bchw->bohw", readout.maps.weight[:, :, 0, 0], features)
    largest = maps.amax(dim=(2, 3))
    mean, variance = largest.mean(dim=0), largest.var(dim=0, unbiased=False)
    scaled = (largest - mean) / torch.sqrt(variance + 1e-5)
    expected = scaled @ readout.decide.weight.T
    torch.testing.assert_close(readout(features), expected)
    torch.testing.assert_close(readout.normalise.running_mean, 0.02 * mean)


def test_a_readout_that_pools_first_starts_from_xaviers_values():
    usual, pooled = Readout(25, generator()), PoolFirstReadout(25, generator())
    assert torch.equal(usual.maps.weight, pooled.maps.weight)
    assert not usual.decide.weight.any()
    assert pooled.decide.weight.all() and not pooled.decide.bias.any()
    assert pooled.decide.weight.abs().max() <= math.sqrt(6 / 4)


def test_a_readout_made_of_another_has_its_maps_and_draws_a_classifier():
    usual = Readout(3, generator())
    pooled = PoolFirstReadout.of(usual, generator())
    decide = torch.nn.Linear(2, 2)
    xavier(decide, generator())
    assert pooled.maps is usual.maps
    assert torch.equal(pooled.decide.weight, decide.weight)


def test_the_pixel_readout_is_a_map_of_each_pixel():
    readout = pixel_readout(3, generator())
    features = torch.rand(1, 3, 8, 8, generator=generator())
    torch.testing.assert_close(readout(features)[..., 2:3, 4:5], readout(features[..., 2:3, 4:5]))


def test_the_standard_network_joins_the_stages(decisive):
    network = StandardNetwork(torch.nn.Sigmoid(), 25, "classify", generator(), gain=2.0)
    network = decisive(network).eval()
    image = torch.rand(2, 1, 32, 32, generator=generator())
    expected = network.readout(torch.sigmoid(2 * F.conv2d(image, gabor_bank(), padding=3) ** 2))
    torch.testing.assert_close(network(image), expected)


def test_a_readout_that_pools_first_is_not_trained_on_one_image():
    readout, features = PoolFirstReadout(3, generator()), torch.rand(1, 3, 6, 7)
    message = "a batch of 1 image; a readout that pools first .* training needs 2 or more"
    with pytest.raises(ValueError, match=message):
        readout(features)
    assert readout.eval()(features).shape == (1, 2)


def test_images_are_checked():
    check_images(torch.zeros(1, 1, 32, 40), least=32)
    check_images(torch.zeros(1, 3, 32, 40), channels=3)
    message = r"images have shape \(2, 3, 8, 8\); this network takes \(B, 1, H, W\), none of them 0"
    with pytest.raises(ValueError, match=message):
        check_images(torch.zeros(2, 3, 8, 8))
    message = "images are 31 x 40 pixels; this network takes 32 x 32 or more"
    with pytest.raises(ValueError, match=message):
        check_images(torch.zeros(1, 1, 31, 40), least=32)
    with pytest.raises(ValueError, match="images are 40 x 31 pixels; this network takes 32 x 32"):
        check_images(torch.zeros(1, 1, 40, 31), least=32)
    message = (
        r"images are torch.uint8; this network takes floats from 0 to 1: images.float\(\) / 255"
    )
    with pytest.raises(TypeError, match=message):
        check_images(torch.zeros(1, 1, 32, 32, dtype=torch.uint8))
    with pytest.raises(TypeError, match="images are ndarray; this network takes a torch tensor"):
        check_images(torch.zeros(1, 1, 32, 32).numpy())
    double, network = torch.zeros(1, 1, 32, 32).double(), torch.nn.Linear(1, 1)
    message = r"images are torch.float64 and the network torch.float32; .* images.to\(torch.float32"
    with pytest.raises(TypeError, match=message):
        check_images(double, like=network)
    with torch.autocast("cpu", torch.bfloat16):
        check_images(double.bfloat16(), like=network)
    check_images(double, like=network.double())


def test_maps_are_enlarged_without_displacing_a_pixel():
    ramp = torch.arange(4.0).expand(1, 2, 4, 4)
    large = enlarged(ramp, torch.Size((7, 7)))
    assert large.shape == (1, 2, 7, 7)
    assert torch.allclose(large[0, 0, 0], torch.tensor([0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75]))
    assert torch.equal(enlarged(ramp, torch.Size((4, 4))), ramp)


@pytest.mark.parametrize("kind", [Readout, PoolFirstReadout])
def test_a_readout_gives_its_maps_in_training_alone(kind):
    readout = kind(3, torch.Generator().manual_seed(0))
    features = torch.rand(2, 3, 5, 4)
    readout.gives_maps = True
    logits, maps = readout(features)
    assert logits.shape == (2, 2)
    assert torch.equal(maps, readout.maps(features))
    assert readout.eval()(features).shape == (2, 2)
