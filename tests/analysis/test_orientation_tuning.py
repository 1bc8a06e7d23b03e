import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgru_vision.analysis.orientation_tuning import filter_tuning, measure_tuning
from hgru_vision.models.filters import gabor_bank, gabor_orientations
from hgru_vision.models.stages import InputStage


def gabor(degrees, size=9, phase=0.0, wavelength=4.5):
    offsets = np.arange(size) - size // 2
    y, x = offsets[:, None], offsets
    across = y * np.cos(np.deg2rad(degrees)) - x * np.sin(np.deg2rad(degrees))
    window = np.exp(-(x**2 + y**2) / (2 * 1.8**2))
    return window * np.cos(2 * np.pi * across / wavelength + phase)


def error(measured, true):
    """Largest angle between orientations in degrees."""
    turn = np.rad2deg(measured) - np.rad2deg(true)
    return abs((turn + 90) % 180 - 90).max()


def test_the_input_stage_starts_with_the_orientations_that_it_was_made_with():
    tuning = measure_tuning(InputStage(gain=0.5))
    assert error(tuning.preferred[:24], gabor_orientations().numpy()) < 0.5
    assert tuning.selectivity[:24].min() > 0.79
    assert tuning.selectivity[24] < 1e-3  # the difference of Gaussians
    oriented = tuning.oriented(0.25)
    assert np.flatnonzero(np.isnan(oriented)).tolist() == [24]
    assert np.array_equal(oriented[:24], tuning.preferred[:24])


@pytest.mark.parametrize("phase", [0.0, 0.7, np.pi / 2])
def test_any_orientation_is_found_whatever_the_phase(phase):
    degrees = np.array([0.0, 7.0, 37.0, 90.0, 128.5, 179.0])
    filters = np.stack([gabor(each, phase=phase) for each in degrees])[:, None]
    tuning = filter_tuning(filters)
    assert error(tuning.preferred, np.deg2rad(degrees)) < 1
    assert np.allclose(filter_tuning(3 * filters).strength, 9 * tuning.strength, rtol=1e-4)
    assert np.allclose(filter_tuning(3 * filters).selectivity, tuning.selectivity, atol=1e-5)


def test_plain_filters_and_a_stage_agree():
    filters, stage = filter_tuning(gabor_bank()), measure_tuning(InputStage())
    assert np.allclose(filters.response, stage.response, atol=1e-6)


def test_what_does_not_depend_on_the_grating_does_not_count():
    weight = gabor_bank()
    lit = measure_tuning(lambda images: F.conv2d(images, weight).square() + 3, size=7)
    assert np.allclose(lit.response, filter_tuning(weight).response, atol=1e-5)


def test_a_rectified_stage_of_colours_that_halves_the_image():
    kernels = torch.tensor(np.stack([gabor(30), gabor(120)]), dtype=torch.float32)
    weight = kernels[:, None].expand(-1, 3, -1, -1)
    tuning = measure_tuning(
        lambda images: F.max_pool2d(F.conv2d(images, weight, padding=4).relu(), 2), channels=3
    )
    assert error(tuning.preferred, np.deg2rad([30, 120])) < 3
    assert tuning.selectivity.min() > 0.5


def test_a_silent_and_a_suppressed_channel_have_no_orientation():
    weight = torch.zeros(2, 1, 5, 5)
    weight[1] = 1
    tuning = measure_tuning(lambda images: -F.conv2d(images, weight).square(), size=5)
    assert tuning.selectivity.tolist() == [0, 0]
    assert np.isnan(tuning.oriented(0.25)).all()


def test_bad_filters_are_refused():
    with pytest.raises(ValueError, match=r"filters have shape \(7, 7\); they must be \(K, cha"):
        filter_tuning(torch.ones(7, 7))
    with pytest.raises(ValueError, match="the response to a grating is not a finite number"):
        filter_tuning(torch.full((2, 1, 7, 7), torch.nan))
