import pytest

from hgru_vision.analysis.study import studies
from hgru_vision.figures.curves import SEVERAL, TICK, curves
from hgru_vision.figures.names import EVERY
from hgru_vision.figures.style import NothingToDraw, render


def test_every_class_and_length_has_a_panel(full):
    figure = curves(full)
    assert len(figure.axes) == len(EVERY) * 3
    assert figure.get_supxlabel() == SEVERAL


def test_all_runs_are_drawn_and_the_best_stands_out(partial):
    axes = curves(partial).axes[0]
    first, second = (line for line in axes.lines if len(line.get_xdata()) == 20)
    assert first.get_alpha() == 0.35 and second.get_alpha() == 1
    assert second.get_xdata()[-1] == 640 and second.get_ydata()[-1] == pytest.approx(0.91)


def test_what_was_not_run_is_said(partial):
    figure = curves(partial)
    assert "Highway" in figure.get_supxlabel()
    names = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert names == ["hGRU"]
    assert "hGRU, 6 steps; " in figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ")
    per_pixel = figure.axes[5]
    assert [text.get_text() for text in per_pixel.texts] == ["not run"]


def test_one_network_alone_lacks_no_others(row):
    (study,) = studies([row("hgru", seed=seed) for seed in range(2)])
    assert curves(study).get_supxlabel() == SEVERAL


def test_the_lowest_panel_with_curves_names_the_axis(row):
    (study,) = studies([row("hgru", 9), row("hgru", 14), row("unet", 9)])
    labels = [axes.get_xlabel() for axes in curves(study).axes]
    images = "thousand images"
    assert labels == ["", "", images, "", images, ""]  # length 14 has curves above alone


def test_a_change_of_stage_is_marked(row):
    (study,) = studies([row(stages=4)])
    figure = curves(study)
    assert figure.get_supxlabel() == TICK
    axes = figure.axes[2]
    (ticks,) = (line for line in axes.lines if line.get_marker() == "|")
    assert ticks.get_xdata().tolist() == [192, 352, 512]  # the first points of stages 1, 2, 3


def test_a_curve_of_one_evaluation_is_seen(row):
    (study,) = studies([row(points=1)])
    lines = [line for axes in curves(study).axes for line in axes.lines]
    assert [line.get_marker() for line in lines if len(line.get_xdata()) == 1] == ["o"]


def test_a_network_of_ones_own_is_drawn_too(row):
    (study,) = studies([row("of_my_own")])
    figure = curves(study)
    assert figure.axes[0].get_ylabel() == "Other"
    assert render(figure, "svg")


def test_no_curve_no_figure(row):
    (study,) = studies([row(points=0)])
    with pytest.raises(NothingToDraw, match="no run has a learning curve"):
        curves(study)


def test_versions_of_a_network_of_ones_own_are_drawn_once_each(row):
    rows = [row("nets.py:leaky", model_sha256=digit * 64) for digit in "ab"]
    (study,) = studies(rows)
    figure = curves(study)
    names = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert names == [f"leaky, file={digit * 8}" for digit in "ab"]


def test_networks_of_one_panel_are_told_apart(row):
    (study,) = studies([row(f"net{number}") for number in range(49)])
    legend = curves(study).axes[-1].get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [f"net{number}" for number in range(49)]  # in natural order
    lines = legend.get_lines()
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in lines}
    assert len(looks) == 49


def test_long_names_are_not_broken_within_a_word(row):
    rows = [row(), row(start="hgru.pathfinder14")]
    (study,) = studies(
        [*rows, row("nets.py:leaky_integrator_with_a_long_name", model_sha256="0" * 64)]
    )
    figure = curves(study)
    names = [text.get_text() for axes in figure.axes[2::3] for text in axes.get_legend().texts]
    assert "hGRU, start=\n  hgru.pathfinder14" in names
    assert "leaky_integrator_\n  with_a_long_\n  name" in names
