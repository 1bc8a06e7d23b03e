import numpy as np
import pytest
from matplotlib.colors import to_hex

from hgru_vision.analysis.psychophysics import Score
from hgru_vision.figures.psychophysics import psychophysics_figure
from hgru_vision.figures.style import NothingToDraw, render


def scores(observer, lengths=(5, 9), trials=100, nudge=0.0):
    return [
        Score(
            observer=observer,
            length=length,
            spacing=spacing + nudge,
            proportion=1.05 - spacing,
            trials=trials,
        )
        for length in lengths
        for spacing in (0.27, 0.35, 0.47)
    ]


def test_a_panel_for_each_length_with_networks_beside_people():
    figure = psychophysics_figure(scores("hGRU"), scores("A. B.", lengths=(9, 17), trials=None))
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["5 paddles", "9 paddles", "17 paddles"]
    network, person = (container.lines[0] for container in figure.axes[1].containers)
    np.testing.assert_allclose(network.get_xdata(), [0.27, 0.35, 0.47])
    np.testing.assert_allclose(network.get_ydata(), [0.78, 0.70, 0.58])
    assert to_hex(network.get_markerfacecolor()) != "#ffffff"
    assert to_hex(person.get_markerfacecolor()) == "#ffffff"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["hGRU", "A. B."]
    assert len(figure.axes[0].containers) == len(figure.axes[2].containers) == 1
    assert render(figure, "svg").startswith(b"<?xml")


def test_accuracies_below_chance_are_on_the_axis():
    low = [Score(observer="a", length=9, spacing=x, proportion=0.2, trials=20) for x in (0.3, 0.4)]
    axes = psychophysics_figure(low).axes[0]
    assert axes.get_ylim()[0] < low[0].interval[0]


def test_bars_are_wilson_intervals_where_trials_are_known():
    figure = psychophysics_figure(scores("hGRU", lengths=(9,)))
    (bars,) = figure.axes[0].containers[0].lines[2]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    expected = [score.interval for score in scores("hGRU", lengths=(9,))]
    np.testing.assert_allclose(ends, expected)


def test_along_length_spacings_that_agree_to_a_hundredth_share_a_panel():
    people = scores("A. B.", nudge=0.001)
    figure = psychophysics_figure(scores("hGRU"), people, along="length")
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["0.27°", "0.35°", "0.47°"]
    assert all(len(axes.containers) == 2 for axes in figure.axes)


def test_curves_are_fitted_where_they_can_be():
    figure = psychophysics_figure(
        scores("hGRU", lengths=(9,)), scores("A. B.", lengths=(9,), trials=None), fit="weibull"
    )
    curves = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 50]
    assert len(curves) == 1  # not of the observer whose number of trials is unknown
    styles = [container.lines[0].get_linestyle() for container in figure.axes[0].containers]
    assert styles == ["None", "--"]


def test_nothing_is_not_drawn():
    with pytest.raises(NothingToDraw, match="there are no scores to draw"):
        psychophysics_figure([])
