from dataclasses import replace

import numpy as np
import pytest

from hgru_vision.analysis.dynamics import Unfolding
from hgru_vision.figures.dynamics import CLIPPED, SHOWN, dynamics_figure
from hgru_vision.figures.style import render


def unfolding(label=1, steps=8, names=("marked path", "other path")):
    rng = np.random.default_rng(label)
    paths = {name: np.zeros((20, 20), bool) for name in names}
    for row, path in enumerate(paths.values()):
        path[5 + 8 * row, 3:17] = True
    return Unfolding(
        item=3,
        image=rng.integers(0, 256, (20, 20), np.uint8),
        label=label,
        paths=paths,
        maps=rng.random((steps, 20, 20)),
        norm=rng.random(steps),
        change=rng.random(steps - 1),
        emphasis={name: 1 + rng.random(steps) for name in names},
        probability=np.linspace(0.2, 0.75, steps),
    )


@pytest.fixture(scope="module")
def pair():
    return [unfolding(1), unfolding(0, names=("marked path 1", "marked path 2"))]


def titled(figure):
    return {axes.get_title(): axes for axes in figure.axes if axes.get_title()}


def test_a_row_an_image_and_curves_below(pair):
    figure = dynamics_figure({"first": pair, "second": pair})
    # input and steps of both images, their scale, and four panels of curves, twice
    assert len(figure.axes) == 2 * (2 * (1 + 8) + 1 + 4)
    found = titled(figure)
    assert [f"step {t}" in found for t in (1, 8)] == [True, True]
    assert found["input"].get_ylabel() == "connected\nP = 0.750"
    assert len(found["input"].collections) == 2  # outlines of the paths
    assert render(figure, "png").startswith(b"\x89PNG")


def test_one_scale_for_all_maps_of_a_network_clipped_at_a_high_percentile(pair):
    bright = [replace(pair[0], maps=5 * pair[0].maps), pair[1]]
    figure = dynamics_figure({"one": bright})
    scales = {axes.images[0].get_clim() for axes in figure.axes if axes.images[:1]} - {(0, 255)}
    maps = np.concatenate([bright[0].maps, bright[1].maps])
    assert (0, np.percentile(maps, CLIPPED)) in scales
    steps = [axes for title, axes in titled(figure).items() if title.startswith("step")]
    assert len({axes.images[0].get_clim() for axes in steps}) == 1


def test_curves_are_those_of_the_images(pair):
    found = titled(dynamics_figure({"one": pair}))
    lines = {line.get_label(): line for line in found["activity on paths, connected"].lines}
    assert np.array_equal(lines["other path"].get_ydata(), pair[0].emphasis["other path"])
    drawn = [line.get_ydata() for line in found["P(connected)"].lines[:2]]
    assert np.array_equal(drawn, [image.probability for image in pair])
    change = found["change from the step before"].lines[1]
    assert np.array_equal(change.get_ydata(), pair[1].change)
    assert change.get_xdata()[0] == 2


def test_of_many_steps_eight_are_shown_from_first_to_last():
    found = titled(dynamics_figure({"long": [unfolding(steps=30)]}))
    steps = [title for title in found if title.startswith("step")]
    assert len(steps) == SHOWN
    assert (steps[0], steps[-1]) == ("step 1", "step 30")


def test_few_steps_beside_many_and_a_silent_circuit(pair):
    silent = replace(pair[0], maps=np.zeros((8, 20, 20)), change=np.zeros(7))
    figure = dynamics_figure({"few": [unfolding(steps=3), pair[1]], "silent": [silent]})
    assert render(figure, "svg").startswith(b"<?xml")


def test_nothing_to_draw():
    for nothing in ({}, {"one": []}):
        with pytest.raises(ValueError, match="there is no image to draw"):
            dynamics_figure(nothing)
