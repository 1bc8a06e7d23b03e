import numpy as np
import pytest

from hgru_vision.stimuli.contour_reference import images_in_numpy
from hgru_vision.stimuli.contours import ContourConfig, images


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 17, "shear": -0.6},
        {"canvas": 150, "shear": 0.6, "contrast": 0.7},
        {"canvas": 67, "cells": 7, "paddle_length": 0.25, "thickness": 0.2, "length": 3},
        {"antialias": False, "thickness": 0.1},
        {"antialias": False, "thickness": 0.06, "contrast": 0.3, "canvas": 150, "scattered": False},
    ],
)
def test_the_compiled_painting_is_that_of_plain_numpy(changes):
    config = ContourConfig(**changes)
    indices = np.array([0, 1, 7, 2**41])
    expected = images_in_numpy(config, 3, indices)
    assert expected.any(axis=(1, 2)).all()
    np.testing.assert_array_equal(images(config, 3, indices), expected)
