"""Figures of panels: accuracy, alc and beyond."""

import numpy as np
import pytest

from hgru_vision.analysis.study import studies
from hgru_vision.figures.accuracy import accuracy
from hgru_vision.figures.alc import alc
from hgru_vision.figures.beyond import beyond
from hgru_vision.figures.names import MAIN
from hgru_vision.figures.style import NothingToDraw, render


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def best_line(axes, number):
    """Accuracies of the best runs of a panel's n-th network."""
    lines = [line for line in axes.lines if line.get_zorder() == 3]
    return np.asarray(lines[number].get_ydata(), float)


def test_there_is_a_panel_for_each_class_and_all_networks_are_named(full):
    figure = accuracy(full)
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(MAIN)
    assert legend(figure.axes[1]) == [
        "small kernels",
        "medium kernels",
        "large kernels",
        "dilated",
        "non-local",
    ]
    assert render(figure, "png")


def test_lines_are_the_best_runs(partial):
    figure = accuracy(partial)
    recurrent, per_pixel = figure.axes
    assert best_line(recurrent, 0).tolist() == [0.91, 0.91, 0.91]
    assert np.isnan(best_line(recurrent, 1)).all()
    np.testing.assert_array_equal(best_line(per_pixel, 1), [0.8, 0.7, np.nan])


def test_what_was_not_run_is_said(partial):
    figure = accuracy(partial)
    assert legend(figure.axes[0])[:2] == ["hGRU", "hGRU, 6 steps: not run"]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Recurrent", "Per-pixel"]
    assert legend(figure.axes[1]) == ["FCN: not run", "U-Net (not run: 14)", "SegNet: not run"]
    words = figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")
    assert words == (
        "not run: Feedforward, 1 layer; Feedforward, 3 layers; Feedforward, 5 layers; Residual"
    )


def test_the_key_tells_the_marks_and_the_number_of_runs(partial):
    (key,) = accuracy(partial).legends
    assert key.get_title().get_text() == "synthetic recipe, paper Pathfinder"
    assert [text.get_text() for text in key.get_texts()] == [
        "best of 1 to 2 runs",
        "mean ± sd of runs",
        "read without a path",
        "all diverged",
    ]


def test_the_best_of_more_than_five_is_that_of_five(row):
    (study,) = studies([row(seed=seed, accuracy=0.6 + seed / 20) for seed in range(7)])
    figure = accuracy(study)
    assert best_line(figure.axes[0], 0)[2] == pytest.approx(0.8)
    assert figure.legends[0].get_texts()[0].get_text() == "best of 5 runs"


def test_a_single_run_has_no_mean(row):
    (study,) = studies([row(shortcut=None)])
    (key,) = accuracy(study).legends
    assert [text.get_text() for text in key.get_texts()] == ["the only run"]


def test_a_run_without_an_alc_has_not_diverged(row):
    (study,) = studies([row(length=6), row(length=14, points=0)])
    axes = alc(study).axes[0]
    assert not [line for line in axes.lines if line.get_marker() == "x"]
    assert np.isnan(best_line(axes, 0)[2])


def test_the_shortcut_is_drawn_beside_the_accuracy(partial):
    axes = accuracy(partial).axes[0]
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [line.get_ydata()[0] for line in dotted] == [0.8, 0.8, 0.8]


def test_the_alc_is_that_of_the_most_accurate_run(row):
    rows = [row(seed=0, accuracy=0.9), row(seed=1, accuracy=0.8)]
    (study,) = studies(rows)
    line = best_line(alc(study).axes[0], 0)
    assert line[2] == rows[0].result.alc == pytest.approx(0.7)


def test_the_alc_of_a_curriculum_is_that_of_its_last_stage(row):
    (study,) = studies([row(stages=2, points=4, accuracy=0.8)])
    axes = alc(study).axes[0]
    assert axes.get_ylabel() == "ALC (last stage)"
    assert best_line(axes, 0)[2] == pytest.approx((0.7 + 0.8) / 2)


def test_runs_without_an_evaluation_have_no_alc(row):
    (study,) = studies([row(points=0)])
    with pytest.raises(NothingToDraw, match=r"no run of its networks has an ALC$"):
        alc(study)


def test_networks_beyond_the_paper_stand_beside_the_hgru(full, partial):
    (axes,) = beyond(full).axes
    assert legend(axes)[:2] == ["hGRU", "hGRU (released)"]
    with pytest.raises(NothingToDraw, match="none of its networks was run"):
        beyond(partial)


def test_the_key_fits_into_the_narrowest_figure(row):
    rows = [row("hgru", 14, seed, accuracy) for seed, accuracy in enumerate((0.9, 0.8))]
    (study,) = studies([*rows, row("gru", 14, 0, None)])
    figure = accuracy(study)
    figure.draw_without_rendering()
    (key,) = figure.legends
    assert len(key.get_texts()) == 4
    assert key.get_window_extent().x1 <= figure.bbox.x1


def test_networks_of_ones_own_stand_among_those_beyond_the_paper(row):
    (study,) = studies([row("hgru"), row("nets.py:leaky", model_sha256="0" * 64)])
    assert legend(beyond(study).axes[0])[-1] == "leaky (not run: 6, 9)"
