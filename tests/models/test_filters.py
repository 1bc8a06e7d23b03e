import math

import numpy as np
import pytest
import torch

from hgru_vision.models.filters import gabor_bank, gabor_orientations, released_bank
from hgru_vision.models.stages import InputStage
from hgru_vision.stimuli.raster import draw_bar

SPACING = math.pi / 12
WAVELENGTH = 4.0

# Grey levels of the authors' 2nd and 19th filter in the notebook that `released_bank` names, and
# the channels that they are here.
PICTURES = {
    2: """
        115 115 115 153 115 115 115
        115  16   0  10  42  85 115
        115 208 155  93  40   8 115
        137 195 239 255 239 195 137
        115   8  40  93 155 208 115
        115  85  42  10   0  16 115
        115 115 115 153 115 115 115""",
    13: """
        113 113 113  46 113 113 113
        113 115 252  44   2 207 113
        113 115 255  43   0 208 113
         27 115 255  43   0 209 150
        113 115 255  43   0 208 113
        113 115 252  44   2 207 113
        113 113 113  46 113 113 113""",
}


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


# -- The filters of this package -------------------------------------------------------------------


def test_kernels_have_zero_mean_and_unit_norm():
    bank = gabor_bank()
    assert bank.shape == (25, 1, 7, 7)
    assert bank.mean(dim=(2, 3)).abs().max() < 1e-7
    torch.testing.assert_close(bank.square().sum(dim=(1, 2, 3)), torch.ones(25))


def test_the_filters_are_those_of_their_definition():
    y, x = np.mgrid[-3:4, -3:4]
    square = x**2 + y**2
    window = np.exp(-square / (2 * 1.5**2))
    expected = []
    for angle in np.arange(12) * SPACING:
        across = 2 * math.pi / WAVELENGTH * (y * math.cos(angle) - x * math.sin(angle))
        for wave in (np.cos(across), np.sin(across)):
            expected.append(window * (wave - np.average(wave, weights=window)))
    centre, surround = (np.exp(-square / (2 * width**2)) for width in (0.75, 1.5))
    expected.append(centre / centre.sum() - surround / surround.sum())
    for kernel, theirs in zip(gabor_bank(), expected, strict=True):
        np.testing.assert_allclose(kernel[0], theirs / np.linalg.norm(theirs), rtol=0, atol=1e-6)


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


@pytest.mark.parametrize("bank", [gabor_bank, released_bank])
def test_the_dtype_is_the_default_one(bank):
    expected = bank()
    assert expected.dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        double = bank()
    finally:
        torch.set_default_dtype(torch.float32)
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), expected)


# -- The filters of the released code --------------------------------------------------------------


@pytest.mark.parametrize("channel", PICTURES)
def test_the_released_filters_look_as_theirs_do(channel):
    kernel = released_bank()[channel, 0]
    grey = 255 * (kernel - kernel.min()) / (kernel.max() - kernel.min())
    theirs = torch.tensor([int(level) for level in PICTURES[channel].split()]).view(7, 7)
    assert (grey - theirs).abs().max() < 1  # a level of 255


def test_the_last_released_filter_is_a_disc():
    disc = released_bank()[24, 0]
    assert (disc > 0).sum() == 29
    assert len(disc.unique()) == 2
    assert disc[3, 0] == disc[3, 3] > 0 > disc[0, 0]


def test_released_filters_have_zero_mean_and_unit_norm():
    bank = released_bank()
    assert bank.shape == (25, 1, 7, 7)
    assert bank.mean(dim=(2, 3)).abs().max() < 1e-7
    torch.testing.assert_close(bank.square().sum(dim=(1, 2, 3)), torch.ones(25))


def test_released_filters_are_in_the_order_of_ours():
    ours, theirs = gabor_bank()[:24:2].flatten(1), released_bank()[:24:2].flatten(1)
    assert torch.equal((ours @ theirs.T).argmax(dim=1), torch.arange(12))
