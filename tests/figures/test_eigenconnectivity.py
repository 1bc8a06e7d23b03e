import numpy as np
import pytest

from hgru_vision.analysis.eigenconnectivity import eigenconnectivity
from hgru_vision.figures.eigenconnectivity import SHOWN, eigenconnectivity_figure
from hgru_vision.figures.style import render


@pytest.fixture(scope="module")
def found():
    generator = np.random.default_rng(0)
    angles = np.append(np.deg2rad(np.arange(0, 180, 30.0)), np.nan)
    return eigenconnectivity(generator.standard_normal((7, 7, 7, 7)), angles)


def test_maps_and_profiles_of_every_network(found):
    figure = eigenconnectivity_figure({"first": found, "second": found})
    assert len(figure.axes) == 2 * (SHOWN + 2 + 3)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles.count("mean") == 2
    assert f"1: {found.shares[0]:.1%}" in titles
    assert "6 of 7" in [axes.get_title() for axes in figure.axes]
    assert render(figure, "svg").startswith(b"<?xml")


def test_a_map_is_symmetric_about_white_and_hides_what_leaves_the_disc(found):
    figure = eigenconnectivity_figure({"one": found})
    (image,) = figure.axes[2].images
    low, high = image.get_clim()
    assert -low == high == abs(found.components[0]).max()
    shown = image.get_array()
    assert np.array_equal(np.ma.getmaskarray(shown), ~found.disc)
    assert np.allclose(shown[found.disc], found.components[0][found.disc])


def test_curves_are_the_profiles(found):
    distance, angle, spectrum = eigenconnectivity_figure({"one": found}).axes[-3:]
    lines = {line.get_label(): line.get_ydata() for line in distance.lines}
    assert np.array_equal(lines["along"], found.association.along.mean)
    assert np.array_equal(lines["across"], found.association.across.mean)
    assert "like - orthogonal" in angle.get_title(loc="left")
    assert np.allclose(spectrum.lines[0].get_ydata(), np.cumsum(found.shares))


def test_few_components_and_no_orthogonal_pairs():
    weights = np.random.default_rng(0).standard_normal((3, 3, 5, 5))
    few = eigenconnectivity(weights, np.deg2rad([0.0, 10.0, 20.0]), variance=0.3)
    assert len(few.components) < SHOWN
    figure = eigenconnectivity_figure({"few": few})
    assert "too few pairs" in figure.axes[-2].get_title(loc="left")
    assert render(figure, "png")


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="there is no network to draw"):
        eigenconnectivity_figure({})
