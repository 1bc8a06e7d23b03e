import numpy as np
import pytest

from hgru_vision.analysis.association import Estimate, measure_association, relative_orientation
from hgru_vision.analysis.eigenconnectivity import inner_disc

ANGLES = np.deg2rad(np.arange(0, 180, 15).repeat(2).astype(float))


def cross(size, up, side):
    """A kernel with one value on the vertical axis and another on the horizontal one."""
    kernel = np.zeros((size, size))
    kernel[:, size // 2] = up
    kernel[size // 2] = side
    kernel[size // 2, size // 2] = 0
    return kernel


def test_relative_orientation_is_the_lesser_angle():
    angles = np.deg2rad([0, 30, 100, 175])
    assert np.rad2deg(relative_orientation(angles)[0]).round(6).tolist() == [0, 30, 80, 5]


def test_profiles_of_kernels_that_are_known():
    like = np.cos(2 * relative_orientation(ANGLES))
    aligned = like[:, :, None, None] * cross(5, 2.0, -1.0)
    found = measure_association(aligned, ANGLES, inner_disc(5))
    mean = like[relative_orientation(ANGLES) < np.deg2rad(20)].mean()
    # At distance 1 the wedge has the two places on the axis; at 2 as well, the disc ends there.
    assert found.along.at.tolist() == found.across.at.tolist() == [1, 2]
    assert np.allclose(found.along.mean, 2 * mean)
    assert np.allclose(found.across.mean, -mean)
    assert found.around.at.tolist() == [0, 1, 2]
    assert np.allclose(found.around.mean, [0, mean * 2 / 8, mean * 2 / 4])  # diagonals are 1 away
    assert found.along_by_angle.at.tolist() == list(range(0, 91, 15))
    cosine = np.cos(2 * np.deg2rad(found.along_by_angle.at))
    assert np.allclose(found.along_by_angle.mean, 2 * cosine)
    assert np.allclose(found.across_by_angle.mean, -cosine)
    assert np.isclose(found.collinearity.value, 3 * mean)
    assert np.isclose(found.likeness.value, 4 * mean)
    assert found.collinearity.low <= found.collinearity.value <= found.collinearity.high


def test_distances_are_rounded_to_the_nearest():
    corner = np.zeros((7, 7))
    corner[1, 1] = 1.0  # 2.83 away
    found = measure_association(np.broadcast_to(corner, (3, 3, 7, 7)), np.zeros(3), inner_disc(7))
    assert np.flatnonzero(found.around.mean).tolist() == [3]


@pytest.mark.parametrize(("near", "sign"), [(1.0, 1), (-1.0, -1)])
def test_nearness(near, sign):
    disc = inner_disc(9)
    offsets = np.arange(9) - 4
    inside = np.hypot(offsets[:, None], offsets) <= 2
    aligned = np.broadcast_to(np.where(inside, near, 0), (24, 24, 9, 9))
    found = measure_association(aligned, ANGLES, disc).nearness
    assert found == Estimate(sign, sign, sign)
    assert found.excludes_zero


def test_the_interval_is_of_channels_not_of_kernels():
    # One number a receiving channel: 24 independent values, however many kernels they are in.
    values = np.random.default_rng(0).standard_normal(24)
    aligned = values[:, None, None, None] * np.broadcast_to(cross(5, 1, 0), (24, 24, 5, 5))
    found = measure_association(aligned, np.zeros(24), inner_disc(5)).collinearity
    standard_error = values.std(ddof=1) / 24**0.5
    assert np.isclose(found.value, values.mean())
    assert 0.8 < (found.high - found.low) / (2 * 1.96 * standard_error) < 1.2


def test_kernels_of_channels_to_themselves_do_not_gain_weight_by_resampling():
    aligned = 10 * np.eye(12)[:, :, None, None] * cross(5, 1, 0)
    found = measure_association(aligned, np.zeros(12), inner_disc(5)).collinearity
    assert np.isclose(found.value, 10 / 12)
    assert found.high < 1.1  # drawn twice and counted four times they would make 1.6


def test_the_bootstrap_has_its_seed():
    aligned = np.random.default_rng(0).standard_normal((24, 24, 5, 5))
    first, again, other = (
        measure_association(aligned, ANGLES, inner_disc(5), seed=seed).along for seed in (0, 0, 1)
    )
    assert np.array_equal(first.low, again.low)
    assert not np.array_equal(first.low, other.low)


def test_too_few_pairs_have_no_number():
    angles = np.deg2rad([0.0, 50.0, 10.0, 95.0])  # 0 and 10 are orthogonal to 95, no others
    aligned = np.random.default_rng(0).standard_normal((4, 4, 5, 5))
    found = measure_association(aligned, angles, inner_disc(5))
    assert np.isnan(found.likeness).all()
    assert not found.likeness.excludes_zero
    assert np.isfinite(found.collinearity).all()
    assert found.along_by_angle.at.tolist() == [0, 45]  # one pair 15 apart, two 90
