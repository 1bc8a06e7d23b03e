import numpy as np
import pytest

from hgru_vision.analysis.nonmaxima import suppress_nonmaxima


def ridge(angle, width=2.0, size=41):
    """Make a broad line through the middle, at an angle to the x axis."""
    y, x = np.indices((size, size)) - size // 2
    across = -x * np.sin(angle) + y * np.cos(angle)
    return 0.9 * np.exp(-(across**2) / (2 * width**2)), np.abs(across)


@pytest.mark.parametrize("degrees", [0, 20, 45, 70, 90, 135, 160])
def test_of_a_line_its_crest_stays(degrees):
    broad, distance = ridge(np.deg2rad(degrees))
    kept = suppress_nonmaxima(broad)
    inside = np.zeros_like(kept, bool)
    inside[6:-6, 6:-6] = True
    assert (distance[inside & (kept > 0.05)] <= 1).all()
    assert (kept > 0)[inside & (distance < 0.3)].all()  # the crest has no holes
    assert set(np.unique(kept)) <= {0.0, *np.unique(broad)}


def test_two_lines_that_thinning_would_merge_stay_two():
    x = np.arange(41.0)
    profile = np.exp(-((x - 16) ** 2) / 8) + np.exp(-((x - 24) ** 2) / 8)
    kept = suppress_nonmaxima(np.tile(profile, (41, 1)) / 2)
    assert np.flatnonzero(kept[20] > 0.1).tolist() == [16, 24]


def test_an_even_map_stays_as_it_is():
    assert np.array_equal(suppress_nonmaxima(np.full((8, 9), 0.3)), np.full((8, 9), 0.3))
