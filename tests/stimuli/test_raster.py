import math

import numpy as np
import pytest

from hgru_vision.stimuli.raster import draw_bar, draw_disc, mean_reduce


def bar(x, y, angle, length, thickness, antialias, size=40, value=255.0):
    image = np.zeros((size, size), np.uint8)
    draw_bar(
        image, x, y, math.cos(angle), math.sin(angle), length / 2, thickness / 2, value, antialias
    )
    return image


@pytest.mark.parametrize("angle", np.linspace(0, math.pi, 13))
def test_antialiased_ink_is_the_area(angle):
    image = bar(20.3, 19.8, angle, 9.0, 3.0, True)
    assert abs(image.sum() / 255 - 27) < 1.0


def test_binary_bar_lights_pixels_whose_centre_it_covers():
    image = bar(20.0, 20.5, 0.0, 6.0, 1.0, False)
    expected = np.zeros_like(image)
    expected[20, 17:23] = 255
    np.testing.assert_array_equal(image, expected)


def test_binary_bar_agrees_with_every_pixel_tested_alone():
    x, y, angle, length, thickness = 20.37, 18.11, 0.7, 11.0, 4.0
    row, column = np.indices((40, 40))
    dx, dy = column + 0.5 - x, row + 0.5 - y
    u = dx * math.cos(angle) + dy * math.sin(angle)
    v = dy * math.cos(angle) - dx * math.sin(angle)
    inside = (abs(u) <= length / 2) & (abs(v) <= thickness / 2)
    np.testing.assert_array_equal(bar(x, y, angle, length, thickness, False) == 255, inside)


def test_the_brighter_stays():
    image = bar(20, 20, 0, 10, 3, False, value=100.0)
    before = image.copy()
    draw_bar(image, 20, 20, 1.0, 0.0, 5.0, 1.5, 50.0, False)
    np.testing.assert_array_equal(image, before)


def test_shapes_over_the_border_are_cut():
    image = bar(0.0, 39.0, 0.5, 20, 5, True)
    draw_disc(image, 40.0, 0.0, 6.0, 255.0, True)
    assert image[39, 0] == 255
    assert image[0, 39] == 255


@pytest.mark.parametrize("antialias", [False, True])
def test_ink_of_a_disc_is_its_area(antialias):
    image = np.zeros((40, 40), np.uint8)
    draw_disc(image, 20.2, 19.7, 8.0, 255.0, antialias)
    assert abs(image.sum() / 255 - math.pi * 64) < 4


def test_mean_reduce_takes_rounded_means():
    image = np.array([[0, 255, 1, 1], [0, 255, 1, 2], [9, 9, 0, 0], [9, 9, 0, 1]], np.uint8)
    out = np.empty((2, 2), np.uint8)
    mean_reduce(image, 2, out)
    np.testing.assert_array_equal(out, [[128, 1], [9, 0]])
