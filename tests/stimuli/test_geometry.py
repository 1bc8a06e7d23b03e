import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from hgru_vision.stimuli.geometry import core_distance_squared, draw_turn, sine_cosine
from hgru_vision.stimuli.random import SCENE, STREAM_SIZE, open_stream


def test_sine_and_cosine_are_accurate():
    for angle in np.linspace(-20, 20, 4001):
        sine, cosine = sine_cosine(angle)
        assert abs(sine - math.sin(angle)) < 2e-15 * max(1, abs(angle))
        assert abs(cosine - math.cos(angle)) < 2e-15 * max(1, abs(angle))


angles = st.floats(-math.pi, math.pi)


@given(st.floats(-6, 6), st.floats(-6, 6), angles, angles, st.floats(0.1, 4))
def test_distance_of_cores_is_that_of_dense_points_on_them(dx, dy, first, second, half):
    got = core_distance_squared(
        dx, dy, math.cos(first), math.sin(first), math.cos(second), math.sin(second), half
    )
    along = np.linspace(-half, half, 401)
    a = np.stack([along * math.cos(first), along * math.sin(first)], axis=1)
    b = np.stack([dx + along * math.cos(second), dy + along * math.sin(second)], axis=1)
    dense = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1).min())
    step = along[1] - along[0]
    crossing = abs(math.sin(first - second))
    # Lines that cross at less than 1e-6 count as parallel, which misses as much at the ends.
    missed = 2 * half * crossing if crossing < 1.01e-6 else 0.0
    assert dense - step <= math.sqrt(got) <= dense + missed + 1e-9


def drawn_turns(continuity, squared, count=20_000):
    stream = np.empty(STREAM_SIZE, np.uint64)
    open_stream(stream, 0, 0, SCENE)
    return np.array([draw_turn(stream, continuity, squared) for _ in range(count)])


def test_turns_have_the_density_of_the_paper():
    continuity = 1.8
    turns = drawn_turns(continuity, False)

    def cumulative(turn):  # the integral of cos(c * turn), from -90 degrees / c
        return (1 + np.sin(np.clip(continuity * turn, -np.pi / 2, np.pi / 2))) / 2

    assert kstest(turns, cumulative).pvalue > 1e-3
    assert abs(np.rad2deg(turns.std()) - 21.8) < 0.4


def test_squared_turns_are_those_of_the_released_program():
    turns = drawn_turns(1.8, True)

    def cumulative(turn):
        angle = np.clip(1.8 * turn, -np.pi / 2, np.pi / 2)
        return 0.5 + (angle + np.sin(2 * angle) / 2) / np.pi

    assert kstest(turns, cumulative).pvalue > 1e-3
    assert abs(np.rad2deg(turns.std()) - 18.1) < 0.4
