import pytest

from hgru_vision.analysis.study import studies
from hgru_vision.figures.parameters import parameters
from hgru_vision.figures.style import NothingToDraw, render


def test_each_network_is_a_point_at_its_multiple(full):
    (axes,) = parameters(full).axes
    names = [text.get_text() for text in axes.texts]
    assert {"hGRU", "U-Net", "ResNet-152", "FF small (5L)"} <= set(names)
    points = [line.get_xdata()[0] for line in axes.lines[:28]]
    assert points[0] == 1
    assert max(points) == pytest.approx(767, abs=1)
    assert axes.get_xscale() == "log" and axes.get_ylabel() == "accuracy, paths of 14 paddles"


def test_what_was_not_run_is_said(row):
    (study,) = studies([row(), row("gru"), row("unet", length=9)])
    figure = parameters(study)
    note = figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ")
    assert "hGRU, 6 steps" in note and "U-Net" in note  # not run on the longest paths
    assert render(figure, "svg")


def test_without_the_longest_paths_there_is_nothing(row):
    (study,) = studies([row(length=6)])
    with pytest.raises(NothingToDraw, match="none of its networks has an accuracy on paths of 14"):
        parameters(study)
    (study,) = studies([row(), row(batch=64)])  # one network, trained in two ways
    with pytest.raises(NothingToDraw, match="only one of its networks has an accuracy on paths"):
        parameters(study)


def test_networks_of_ones_own_are_points_too(row):
    (study,) = studies([row(), row("nets.py:leaky", model_sha256="0" * 64)])
    assert {"hGRU", "leaky"} <= {text.get_text() for text in parameters(study).axes[0].texts}


def test_networks_near_chance_are_named_below(row):
    rows = [row(), row("gru", accuracy=0.549), row("unet", accuracy=None), row("fcn", accuracy=0.6)]
    (study,) = studies(rows)
    figure = parameters(study)
    assert {text.get_text() for text in figure.axes[0].texts} >= {"hGRU", "FCN"}
    assert "GRU" not in {text.get_text() for text in figure.axes[0].texts}
    note = figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ")
    assert note.startswith("below 55%: GRU\ndiverged: U-Net\nnot run: hGRU, 6 steps")
