import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from hgru_vision.analysis.matching import (
    Neighbourhood,
    _assign,
    match,
    match_places,
    match_reference,
)
from hgru_vision.analysis.thinning import thin


def lines(seed, shape=(40, 60)):
    """Thin curves: the zero crossings of smooth noise, and a few single pixels."""
    random = np.random.default_rng(seed)
    smooth = gaussian_filter(random.standard_normal(shape), 3)
    return thin(np.abs(smooth) < 0.25 * smooth.std()) | (random.random(shape) < 0.005)


def pair(seed):
    """Two pictures that share most of their curves, one of them shifted."""
    detected = lines(seed)
    annotated = np.roll(detected, seed % 3, axis=1) & (
        np.random.default_rng(seed).random(detected.shape) < 0.8
    )
    return detected, annotated | lines(seed + 100) if seed % 2 else annotated


def least_cost(detected, annotated, near, width):
    """The same problem as a full matrix, each detected pixel with a column to stay alone in."""
    rows, columns = (np.stack(divmod(each, width)) for each in (detected, annotated))
    distance = np.hypot(*(rows[:, :, None] - columns[:, None, :]))
    cost = np.where(distance <= near.alone / 1e4, np.rint(100 * distance), 1e9)
    whole = np.concatenate([cost, np.full((len(detected), len(detected)), near.alone)], axis=1)
    return whole[linear_sum_assignment(whole)].sum()


@pytest.mark.parametrize("radius", [0.02, 0.06])
@pytest.mark.parametrize("seed", range(6))
def test_the_correspondence_is_the_cheapest(seed, radius):
    maps = pair(seed)
    near = Neighbourhood.of(maps[0].shape, radius)
    width = maps[0].shape[1] + 2 * near.border
    detected, annotated = (near.places(each) for each in maps)
    for rows, columns in ((detected, annotated), (annotated, detected)):
        partner = _assign(rows, columns, near.size, near.steps, near.costs, near.alone)
        found = partner >= 0
        taken = partner[found]
        assert len(np.unique(taken)) == len(taken)
        ends = np.stack(divmod(rows[found], width)), np.stack(divmod(columns[taken], width))
        distance = np.hypot(*(ends[0] - ends[1]))
        assert distance.max() <= radius * np.hypot(*maps[0].shape)
        cost = np.rint(100 * distance).sum() + near.alone * (~found).sum()
        assert cost == least_cost(rows, columns, near, width)


@pytest.mark.parametrize("seed", range(6))
def test_the_reference_finds_as_many_pairs(seed):
    maps = pair(seed)
    for radius in (0.0075, 0.03, 0.1):
        ours, theirs = match(*maps, radius), match_reference(*maps, radius)
        assert ours[0].sum() == ours[1].sum() == theirs[0].sum() == theirs[1].sum() > 0
        assert not (ours[0] & ~maps[0]).any() and not (ours[1] & ~maps[1]).any()


def test_two_calls_agree():
    maps = pair(3)
    for first, second in zip(match(*maps, 0.05), match(*maps, 0.05), strict=True):
        np.testing.assert_array_equal(first, second)


def test_places_keep_their_order_whichever_is_more():
    near = Neighbourhood.of((10, 30), 0.05)
    few, many = np.zeros((2, 10, 30), bool)
    few[5, [3, 20]] = many[5, [4, 10, 11, 12]] = True
    for first, second, expected in (
        (few, many, ([True, False], [True, False, False, False])),
        (many, few, ([True, False, False, False], [True, False])),
    ):
        found = match_places(near.places(first), near.places(second), near)
        assert (found[0].tolist(), found[1].tolist()) == expected


@pytest.mark.parametrize(("length", "alone"), [(90, 0), (130, 1)])
def test_one_pixel_stays_alone_where_moving_all_costs_more(length, alone):
    # Two lines, one shifted by a pixel. All pairs cost a pixel each; all but one cost nothing,
    # and the one alone 100 radii of 1.1 pixels.
    detected, annotated = np.zeros((2, 4, 200), bool)
    detected[2, 20 : 20 + length] = annotated[2, 21 : 21 + length] = True
    radius = 1.1 / np.hypot(4, 200)
    for solve in (match, match_reference):
        found, _ = solve(detected, annotated, radius)
        assert found.sum() == length - alone


def test_pictures_without_boundaries_have_no_pairs():
    empty, some = np.zeros((8, 9)), np.ones((8, 9))
    for detected, annotated in ((empty, some), (some, empty), (empty, empty)):
        assert not any(found.any() for found in match(detected, annotated))


def test_what_cannot_be_matched_is_refused():
    with pytest.raises(ValueError, match=r"two pictures of one size .* \(3, 4\) and \(4, 3\)"):
        match(np.zeros((3, 4)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"radius must be between 0 and 1, .* got 4\.3"):
        match(np.zeros((3, 4)), np.zeros((3, 4)), radius=4.3)
