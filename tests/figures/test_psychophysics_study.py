import numpy as np
import pytest

from hgru_vision.analysis.psychophysics import Score
from hgru_vision.analysis.psychophysics_neighbours import PathAngle, V1Gain
from hgru_vision.figures.psychophysics_study import BARS, UNSHEARED, contour_study_figure
from hgru_vision.figures.style import NothingToDraw, render

GAIN = V1Gain(by_length={"MA": ((1, 1.0), (5, 2.1))}, by_distance={"MA": ((1, 2.2), (1.9, 1.0))})
PEOPLE = PathAngle(by_observer={("AH", 0.25): ((0, 0.98), (60, 0.57))})


def scores(observer="hgru", lengths=(5, 9), trials=100, lift=0.0):
    return [
        Score(
            observer=observer,
            length=length,
            spacing=relative * UNSHEARED,
            proportion=1.2 - relative / 2 + lift,
            trials=trials,
        )
        for length in lengths
        for relative in (0.8, 1.0, 1.3)
    ]


def names(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata()) > 50]


def test_a_curve_for_each_length_against_relative_spacing():
    figure = contour_study_figure(scores())
    (axes,), (legend,) = figure.axes, figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["5 paddles", "9 paddles"]
    assert axes.get_xlabel() == "relative spacing of paddles"
    points = axes.containers[0].lines[0]
    np.testing.assert_allclose(points.get_xdata(), [0.8, 1.0, 1.3], atol=0.01)
    np.testing.assert_allclose(points.get_ydata(), [0.8, 0.7, 0.55])
    (bars,) = axes.containers[0].lines[2]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, [score.interval for score in scores()[:3]])
    assert len(curves(axes)) == 2  # one fit a length


def test_points_are_joined_where_nothing_can_be_fitted():
    for changes in ({"trials": None}, {}):
        fit = "weibull" if changes else None
        (axes,) = contour_study_figure(scores(**changes), fit=fit).axes
        assert not curves(axes)
        assert axes.containers[0].lines[0].get_linestyle() == "-"


def test_bars_go_from_the_worst_run_of_a_condition_to_the_best():
    runs = scores(lengths=(9,)) + scores(lengths=(9,), lift=-0.02)
    (axes,) = contour_study_figure(runs).axes
    np.testing.assert_allclose(axes.containers[0].lines[0].get_ydata(), [0.79, 0.69, 0.54])
    (bars,) = axes.containers[0].lines[2]
    ends = [segment[:, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, [[0.78, 0.8], [0.68, 0.7], [0.53, 0.55]])
    assert axes.figure.get_supxlabel() == BARS


def test_lengths_stand_side_by_side():
    first, second = contour_study_figure(scores()).axes[0].containers
    assert np.all(first.lines[0].get_xdata() < second.lines[0].get_xdata())


def test_spacings_too_wide_to_be_drawn_are_told_in_words():
    wide = [
        Score(observer="hgru", length=3, spacing=2.06, proportion=share, trials=100)
        for share in (0.49, 0.51)
    ]
    figure = contour_study_figure(scores() + wide)
    assert figure.get_supxlabel() == "3 paddles 2.06° apart: 50.0%"  # each condition once
    (axes,), (legend,) = figure.axes, figure.legends
    assert axes.get_xlim()[1] < 1.5
    assert len(legend.get_texts()) == 2
    only = contour_study_figure(wide)
    assert only.get_supxlabel() == BARS
    assert only.axes[0].get_xlim()[1] > 5


def test_neighbours_have_axes_and_names_of_their_own():
    figure = contour_study_figure(scores(), v1_gain=GAIN, path_angle=PEOPLE)
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == [
        "hGRU",
        "Macaque V1: neural gain",
        "Macaque V1: neural gain",
        "People: path angle",
    ]
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "correct",
        "contour-related gain",
        "contour-related gain",
        "proportion correct",
    ]
    assert names(figure.axes[1]) == ["monkey MA"]
    assert names(figure.axes[3]) == ["AH, 0.25 s"]
    assert "neither is the experiment of Li and Gilbert (2002)" in figure.get_supxlabel()
    assert render(figure, "svg").startswith(b"<?xml")


def test_each_observer_has_a_panel_and_lengths_keep_their_colours():
    figure = contour_study_figure(scores(lengths=(5, 9)) + scores("other", lengths=(9,)))
    first, second = figure.axes
    assert second.get_title("left") == "other"
    assert first.containers[1].lines[0].get_color() == second.containers[0].lines[0].get_color()


def test_nothing_is_not_drawn():
    with pytest.raises(NothingToDraw, match="there are no scores to draw"):
        contour_study_figure([])


def test_what_stands_below_a_narrow_figure_fits_into_it():
    observer = "folder/nets.py:leaky"
    missing = [
        f"{length} at {spacing:.2f}°" for length in (5, 9, 17) for spacing in (0.3, 0.4, 0.5)
    ]
    wide = [
        Score(observer=each, length=length, spacing=2.06, proportion=0.5, trials=100)
        for each in (observer, "hgru")
        for length in (3, 4, 5)
    ]
    figure = contour_study_figure([*scores(observer), *wide], missing=missing)
    assert figure.axes[0].get_title("left") == "leaky"
    figure.draw_without_rendering()
    (words,) = (text for text in figure.texts if text.get_text().startswith("not run: 5"))
    assert "leaky, 3 paddles" in words.get_text().replace("\n", " ")
    assert words.get_window_extent().x1 <= figure.bbox.x1
