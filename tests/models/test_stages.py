import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgru_vision.models.stages import (
    InputStage,
    PoolFirstReadout,
    Readout,
    StandardNetwork,
    check_images,
    enlarged,
    gabor_bank,
    gabor_orientations,
    pixel_readout,
)
from hgru_vision.stimuli.raster import draw_bar

SPACING = math.pi / 12
WAVELENGTH = 4.0


def generator():
    return torch.Generator().manual_seed(0)


def grating(angle, phase=0.0, size=41):
    """Stripes along an angle, from the x axis towards the y axis, with `phase` at the centre."""
    offsets = torch.arange(size) - size // 2
    y, x = torch.meshgrid(offsets, offsets, indexing="ij")
    across = y * math.cos(angle) - x * math.sin(angle)
    return torch.cos(2 * math.pi / WAVELENGTH * across - phase)[None, None]


def responses(image):
    """Give the input stage's output at the centre of an image, (25,)."""
    with torch.no_grad():
        drive = InputStage()(image)
    return drive[0, :, image.shape[2] // 2, image.shape[3] // 2]


# -- The Gabor bank --------------------------------------------------------------------------------


def test_kernels_have_zero_mean_and_unit_norm():
    bank = gabor_bank()
    assert bank.shape == (25, 1, 7, 7)
    assert bank.mean(dim=(2, 3)).abs().max() < 1e-7
    torch.testing.assert_close(bank.square().sum(dim=(1, 2, 3)), torch.ones(25))


def test_orientation_tuning_peaks_at_the_stated_orientation():
    angles = np.deg2rad(np.arange(180))
    phases = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    tuning = torch.stack(
        [sum(responses(grating(angle, phase)) for phase in phases) for angle in angles]
    )  # (180, 25)
    peaks = torch.from_numpy(angles)[tuning[:, :24].argmax(0)]
    error = (peaks - gabor_orientations() + math.pi / 2) % math.pi - math.pi / 2
    assert error.abs().max() < SPACING / 2
    assert (tuning[:, :24].amin(0) < 0.1 * tuning[:, :24].amax(0)).all()


def test_orientations_are_evenly_spaced_pairs():
    expected = torch.arange(12).repeat_interleave(2) * SPACING
    torch.testing.assert_close(gabor_orientations(), expected)


def test_a_paddle_drives_the_pair_of_its_own_angle_most():
    for i in range(12):
        image = np.zeros((21, 21), np.uint8)
        draw_bar(image, 10.5, 10.5, math.cos(i * SPACING), math.sin(i * SPACING), 4, 0.5, 255, True)
        drive = responses(torch.from_numpy(image).float().div(255)[None, None])
        energy = drive[:24].view(12, 2).sum(1)
        assert energy.argmax() == i


def test_pairs_are_in_quadrature():
    pairs = gabor_bank()[:24].view(12, 2, 49)
    assert (pairs[:, 0] * pairs[:, 1]).sum(-1).abs().max() < 1e-6
    # So the energy of a pair does not depend on the phase of a grating, though each filter's does.
    for i in range(12):
        drive = torch.stack(
            [responses(grating(i * SPACING, phase)) for phase in np.linspace(0, np.pi, 9)]
        )[:, 2 * i : 2 * i + 2]
        energy = drive.sum(1)
        assert energy.max() - energy.min() < 0.05 * energy.mean()
        assert (drive.amin(0) < 0.01 * drive.amax(0)).all()


def test_the_last_kernel_is_radially_symmetric_with_a_bright_centre():
    blob = gabor_bank()[24, 0]
    for turned in (blob.T, blob.flip(0), blob.rot90()):
        torch.testing.assert_close(turned, blob)
    assert blob.argmax() == 24
    assert blob[3, 3] > 0 > blob[3, 1]


# -- Input and readout stage -----------------------------------------------------------------------


def test_the_input_stage_squares_and_scales():
    image = torch.rand(2, 1, 20, 31, generator=generator())
    stage = InputStage(gain=0.5)
    expected = 0.5 * F.conv2d(image, gabor_bank(), padding=3) ** 2
    torch.testing.assert_close(stage(image), expected)
    torch.testing.assert_close(stage(-image), expected)
    assert stage.weight.requires_grad
    assert "gain=0.5" in repr(stage)


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


def test_images_are_checked():
    check_images(torch.zeros(1, 1, 32, 40), least=32)
    check_images(torch.zeros(1, 3, 32, 40), channels=3)
    message = r"images have shape \(2, 3, 8, 8\); this network takes \(B, 1, H, W\), none of them 0"
    with pytest.raises(ValueError, match=message):
        check_images(torch.zeros(2, 3, 8, 8))
    message = "images are 31 x 40 pixels; this network takes 32 x 32 or more"
    with pytest.raises(ValueError, match=message):
        check_images(torch.zeros(1, 1, 31, 40), least=32)
    message = (
        r"images are torch.uint8; this network takes floats from 0 to 1: images.float\(\) / 255"
    )
    with pytest.raises(TypeError, match=message):
        check_images(torch.zeros(1, 1, 32, 32, dtype=torch.uint8))


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
