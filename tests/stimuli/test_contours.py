"""Synthetic contours, checked by code that shares nothing with their drawing."""

import hashlib
import math
import re
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2_contingency, kstest

from hgru_vision.stimuli import UnsatisfiableError
from hgru_vision.stimuli.contours import (
    CONTOUR,
    RANDOM,
    SCATTERED,
    ContourConfig,
    conditions,
    draw,
    images,
    labels,
    scenes,
    segmentations,
)

FEW = np.arange(12)
SMALL = ContourConfig(length=3, canvas=32, cells=8, eccentricity=0.5)
EVERY = [pytest.param(config, id=f"{config.length}{config.shear:+}") for config in conditions()]


def degrees(config, points):
    """Positions from the middle of the image, in degrees."""
    return (points - config.canvas / 2) / config.pixels_per_degree


def contour(config, stimulus):
    """Places (l, 2) of a contour's paddles in order, in degrees."""
    chosen = stimulus.paddles[stimulus.paddles["path"] == CONTOUR]
    places = degrees(config, np.stack([chosen["x"], chosen["y"]], axis=1))
    return places[np.argsort(places[:, 1])]


@pytest.mark.parametrize("config", EVERY)
def test_a_contour_is_a_straight_row_of_evenly_spaced_paddles_wholly_in_the_image(config):
    for index in FEW:
        stimulus = draw(config, 0, int(index))
        places = contour(config, stimulus)
        assert len(places) == (config.length if stimulus.label else 0)
        if not stimulus.label:
            continue
        steps = np.diff(places, axis=0)
        np.testing.assert_allclose(steps, steps[:1].repeat(len(steps), 0), atol=1e-9)
        assert np.hypot(*steps[0]) == pytest.approx(config.spacing)
        # Its paddles point along it.
        angles = stimulus.paddles["angle"][stimulus.paddles["path"] == CONTOUR]
        along = math.atan2(*steps[0][::-1])
        np.testing.assert_allclose(np.sin(angles - along), 0, atol=1e-9)
        assert np.hypot(*places.mean(0)) <= config.eccentricity + 1e-9
        tip = config.paddle_length / 2 * np.abs(steps[0]) / np.hypot(*steps[0])
        assert (np.abs(places) + tip <= config.field / 2).all()


def test_spacing_grows_with_shear_as_the_captions_say():
    spacings = [ContourConfig(shear=shear).spacing for shear in (-0.6, -0.4, 0.0, 0.2, 0.6)]
    assert spacings == sorted(spacings)
    assert ContourConfig(shear=0).spacing == pytest.approx(0.25 * math.sqrt(2))
    assert ContourConfig(shear=-0.6).spacing == pytest.approx(math.hypot(0.1, 0.25))
    assert ContourConfig(shear=0.0).relative_spacing == pytest.approx(1)


@pytest.mark.parametrize("shear", [-1.0, -0.6, 0.0, 0.3, 0.6, 1.0])
def test_density_is_the_same_at_every_shear(shear):
    config = ContourConfig(length=5, shear=shear)
    for places in scenes(config, 1, FEW).paddles[..., :2]:
        assert len(places) == 1024
        assert places.min() >= 0
        assert places.max() <= 256
        inside = np.sum(np.all((places > 64) & (places < 192), axis=1))
        assert inside == pytest.approx(256, abs=16)
        # No two closer than the rows of the grid are.
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        np.fill_diagonal(apart, np.inf)
        interior = np.all((places > 8) & (places < 248), axis=1)
        assert apart[interior][:, interior].min() >= 8 - 1e-9


def test_without_shear_the_grid_is_that_of_the_paper():
    places = scenes(ContourConfig(), 0, [3]).paddles[0, :, :2]
    centres = 4.0 + 8 * np.arange(32)
    expected = {(x, y) for x in centres for y in centres}
    assert {(x, y) for x, y in places.round(9)} == expected


def test_the_grid_says_nothing_of_the_label():
    config = ContourConfig(length=9, shear=0.4)
    count = np.arange(2000)
    label = labels(config, 0, count)
    directions = scenes(config, 0, count).directions.round(6)
    kinds = sorted(set(directions))
    assert len(kinds) == 4  # both diagonals, sheared along x or along y
    table = [[np.sum((directions == d) & (label == c)) for d in kinds] for c in (0, 1)]
    assert chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize("shear", [-0.6, 0.0, 0.6])
def test_without_sheared_columns_there_are_two_directions_at_every_shear(shear):
    config = ContourConfig(length=5, shear=shear, shear_columns=False)
    grown = scenes(config, 0, np.arange(200))
    steep = np.arctan2(1, 1 + shear)
    assert sorted(set(grown.directions.round(6))) == [round(steep, 6), round(np.pi - steep, 6)]
    rows = grown.paddles[..., 1].reshape(200, 32, 32)
    assert (np.ptp(rows, axis=2) == 0).all()  # what was moved are rows


def test_of_a_pair_exactly_one_has_a_contour():
    found = labels(SMALL, 3, np.arange(1000)).reshape(-1, 2)
    assert (found.sum(1) == 1).all()
    assert 200 < found[:, 0].sum() < 300  # by a coin, not by turns
    for index in FEW:
        assert draw(SMALL, 3, int(index)).label == labels(SMALL, 3, [index])[0]


def test_other_paddles_point_anywhere():
    config = ContourConfig(length=17, shear=0.6)
    grown = scenes(config, 0, FEW)
    angles = grown.paddles[..., 2][grown.kinds == RANDOM]
    assert len(angles) == 12 * (1024 - 17)
    assert kstest(angles, "uniform", args=(0, 2 * np.pi)).pvalue > 1e-3


@pytest.mark.parametrize("scattered", [True, False])
def test_contour_absent_images_have_the_same_directions_or_any(scattered):
    config = ContourConfig(length=14, scattered=scattered)
    grown = scenes(config, 0, np.arange(40))
    absent = labels(config, 0, np.arange(40)) == 0
    assert (grown.kinds[absent] != CONTOUR).all()
    counts = (grown.kinds[absent] == SCATTERED).sum(1)
    assert (counts == (14 if scattered else 0)).all()
    for row in np.flatnonzero(absent):
        angles = grown.paddles[row, grown.kinds[row] == SCATTERED, 2]
        np.testing.assert_array_equal(angles, grown.directions[row])


@pytest.mark.parametrize("shear", [-0.6, 0.5])
def test_contours_begin_at_every_place_from_which_they_lie_wholly_in_the_image(shear):
    config = ContourConfig(length=5, shear=shear, canvas=64, cells=8, eccentricity=0.8)
    count = np.arange(1000)
    grown, label = scenes(config, 0, count), labels(config, 0, count)
    found = set(np.argmax(grown.kinds[label == 1] == CONTOUR, axis=1).tolist())
    expected = set()
    step = np.array([1 + shear, 1]) / math.hypot(1 + shear, 1)
    half = np.array([config.paddle_length, config.thickness]) / config.cell / 2
    for row in range(8):
        for column in range(-16, 16):  # rows wrap around
            first = np.array([column - 3.5 + shear * (row - 3.5), row - 3.5])  # from the middle
            last = first + 4 * np.array([1 + shear, 1])
            corners = half[0] * np.abs(step) + half[1] * np.abs(step[::-1])
            inside = (np.maximum(np.abs(first), np.abs(last)) + corners <= 4).all()
            if inside and np.hypot(*(first + last) / 2) * config.cell <= 0.8:
                expected.add(8 * row + column % 8)
    assert found == expected


def test_scattered_paddles_lie_where_those_of_contours_do():
    config = ContourConfig(length=5, shear=0.2)
    count = np.arange(12_000)
    grown, label = scenes(config, 0, count), labels(config, 0, count)
    where = [np.sum(grown.kinds[label == c] != RANDOM, axis=0) for c in (0, 1)]
    assert where[0].sum() == where[1].sum() == 30_000
    table = np.array(where)[:, np.sum(where, axis=0) > 10]
    assert table.shape[1] > 50
    assert chi2_contingency(table).pvalue > 1e-3


def test_what_is_not_the_contour_does_not_depend_on_how_absence_looks():
    with_contour = [i for i in FEW if labels(SMALL, 0, [i])[0]]
    other = ContourConfig(length=3, canvas=32, cells=8, eccentricity=0.5, scattered=False)
    np.testing.assert_array_equal(images(SMALL, 0, with_contour), images(other, 0, with_contour))


@pytest.mark.parametrize("shear", [0.0, -0.6])
def test_the_image_is_the_paddles_and_nothing_else(shear):
    config = ContourConfig(length=5, shear=shear, canvas=200, thickness=0.04, antialias=False)
    stimulus = draw(config, 2, 5)
    expected = np.zeros((200, 200), bool)
    y, x = np.mgrid[0:200, 0:200] + 0.5
    half = np.array([config.paddle_length, config.thickness]) * 25 / 2
    for paddle in stimulus.paddles:
        cosine, sine = math.cos(paddle["angle"]), math.sin(paddle["angle"])
        dx, dy = x - paddle["x"], y - paddle["y"]
        along, across = dx * cosine + dy * sine, dy * cosine - dx * sine
        expected |= (np.abs(along) <= half[0]) & (np.abs(across) <= half[1])
    # Rounding may decide about a pixel whose centre is on an edge.
    assert np.sum((stimulus.image == 255) != expected) <= 2
    assert set(np.unique(stimulus.image)) == {0, 255}
    assert config.binary


def test_masks_make_up_the_image():
    config = ContourConfig(length=9)
    for index in (0, 1):
        stimulus = draw(config, 0, index)
        np.testing.assert_array_equal(stimulus.masks.any(0), stimulus.image > 0)
        assert (stimulus.masks.sum(0) <= 1).all()  # paddles never touch
        assert stimulus.masks[CONTOUR].any() == (stimulus.label == 1)
        assert stimulus.masks[SCATTERED].any() == (stimulus.label == 0)
        assert Counter(stimulus.paddles["path"].tolist())[RANDOM] == 1024 - 9
        np.testing.assert_array_equal(stimulus.segmentation, stimulus.masks[CONTOUR])
        np.testing.assert_array_equal(segmentations(config, 0, [index])[0], stimulus.segmentation)


def test_an_image_is_a_function_of_seed_and_index():
    together = images(SMALL, 5, np.arange(150), threads=2)
    np.testing.assert_array_equal(together, images(SMALL, 5, np.arange(150), threads=1))
    order = np.random.default_rng(0).permutation(150)
    np.testing.assert_array_equal(images(SMALL, 5, order), together[order])
    np.testing.assert_array_equal(images(SMALL, 5, [77])[0], together[77])
    assert (images(SMALL, 6, FEW) != together[:12]).any((1, 2)).all()
    assert images(SMALL, 0, []).shape == (0, 32, 32)


# Whoever changes these raises GENERATOR_VERSION in data/contours.py.
@pytest.mark.parametrize(
    ("config", "digest"),
    [
        (ContourConfig(), "2bc98716faf5ccbe"),
        (ContourConfig(length=17, shear=-0.6, canvas=150, scattered=False), "83dd403041888e20"),
        (ContourConfig(length=14, shear=0.6, antialias=False), "762474441fccea21"),
        (ContourConfig(length=5, shear=0.4, shear_columns=False), "9a4813abe626fef5"),
    ],
)
def test_images_stay_as_they_are(config, digest):
    drawn = images(config, 7, np.arange(8)).tobytes()
    assert hashlib.sha256(drawn).hexdigest()[:16] == digest


def test_contrast_is_the_brightness_of_paddles():
    assert images(ContourConfig(contrast=0.5, antialias=False), 0, [0]).max() == 128


def test_the_conditions_of_the_paper():
    assert len(conditions()) == 28
    assert sorted({config.shear for config in conditions(20)}) == [-0.6, -0.3, 0.0, 0.3, 0.6]
    assert {config.length for config in conditions()} == {5, 9, 14, 17}
    assert {config.canvas for config in conditions(canvas=150)} == {150}
    with pytest.raises(ValueError, match="count must be 28 or 20; got 21"):
        conditions(21)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"length": 1}, ValueError, "length must be 2 or more; got 1"),
        ({"length": 5.0}, TypeError, "length must be of type int; got 5.0"),
        ({"shear": 1.5}, ValueError, "shear must be from -1 to 1; got 1.5"),
        ({"shear": math.nan}, ValueError, "shear must be from -1 to 1; got nan"),
        ({"canvas": 20}, ValueError, "canvas must be from 32 to 1024 pixels; got 20"),
        ({"cells": 200}, ValueError, "cells must be from 2 to 128 on this canvas; got 200"),
        ({"cell": 0.0}, ValueError, "cell must be greater than 0; got 0.0"),
        ({"paddle_length": 0.3}, ValueError, "paddle_length must be above 0 and at most a cell"),
        ({"thickness": 0}, ValueError, "thickness must be above 0 and at most a cell, 0.25; got 0"),
        ({"eccentricity": -1}, ValueError, "eccentricity must be 0 or more; got -1"),
        ({"contrast": 2}, ValueError, "contrast must be from 1/255 to 1; got 2"),
        (
            {"canvas": 150, "antialias": False},
            ValueError,
            "thickness must be 1 pixels or more, 0.0533 degrees on this canvas, so that no paddle "
            "is lost; antialias=True draws thinner ones; got 0.03125",
        ),
        (
            {"antialias": False, "paddle_length": 0.04},
            ValueError,
            "paddle_length must be 1.5 pixels or more, 0.0469 degrees on this canvas",
        ),
        ({"scattered": 1}, TypeError, "scattered must be of type bool; got 1"),
    ],
)
def test_bad_fields_are_refused(changes, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ContourConfig(**changes)


def test_a_contour_that_fits_nowhere_is_refused_with_what_would_fit():
    config = ContourConfig(length=40)
    with pytest.raises(
        UnsatisfiableError, match=r"length=40 does not fit.* has 0 places"
    ) as raised:
        images(config, 0, [0])
    advice = int(re.search(r"length=(\d+)(?!.*length=).*would fit", str(raised.value))[1])
    images(ContourConfig(length=advice), 0, [0])
    with pytest.raises(UnsatisfiableError, match="does not fit"):
        images(ContourConfig(length=advice + 1), 0, [0])


def test_too_few_places_to_scatter_over_are_refused():
    config = ContourConfig(length=9, eccentricity=0.2)
    message = r"has 4 places \(scattered=True needs more than 9\).*eccentricity=1.*scattered=False"
    with pytest.raises(UnsatisfiableError, match=message):
        images(config, 0, [0])
    assert images(ContourConfig(length=9, eccentricity=0.2, scattered=False), 0, [0]).any()


def test_a_huge_field_is_refused_in_a_moment():
    with pytest.raises(UnsatisfiableError, match="length=9 does not fit"):
        images(ContourConfig(cell=1e9, paddle_length=0.1), 0, [0])
    assert len(images(ContourConfig(eccentricity=1e200), 0, [0])) == 1
