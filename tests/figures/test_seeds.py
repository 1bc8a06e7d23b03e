from dataclasses import replace

import pytest

from hgru_vision.analysis.study import Study, studies
from hgru_vision.figures.seeds import DIVERGED, seeds
from hgru_vision.figures.style import NothingToDraw, render


def test_every_run_is_a_dot_and_failures_are_counted(partial):
    figure = seeds(partial)
    longest = figure.axes[2]
    dots = [line for line in longest.lines if line.get_marker() == "o"]
    assert list(dots[0].get_xdata()) == [0.9, 0.91]
    crosses = [line for line in longest.lines if line.get_marker() == "x"]
    assert list(crosses[0].get_xdata()) == [DIVERGED, DIVERGED]
    assert [text.get_text() for text in longest.texts] == ["0/2", "2/2", "not run"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["hGRU", "hGRU (batchnorm)", "U-Net"]
    assert "Highway" in figure.get_supxlabel()


def test_many_runs_stay_in_the_row_of_their_network(row):
    rows = [row("hgru", 14, seed, 0.9) for seed in range(20)] + [row("gru", 14, 0, 0.6)]
    (study,) = studies(rows)
    axes = seeds(study).axes[-1]
    dots = max(
        (line for line in axes.lines if line.get_marker() == "o"), key=lambda d: len(d.get_xdata())
    )
    assert len(dots.get_ydata()) == 20
    assert max(dots.get_ydata()) - min(dots.get_ydata()) < 0.8


def test_all_networks_fit(full):
    assert render(seeds(full), "png")


def test_an_empty_study_has_no_figure():
    with pytest.raises(NothingToDraw, match="there is no run"):
        seeds(Study(recipe="screen", task="paper", cells={}))


def test_a_start_from_weights_of_one_length_is_not_missed_at_others(row):
    def started(length):
        made = row("hgru", length)
        config = replace(made.config, start=f"hgru.pathfinder{length}", start_sha256="0" * 64)
        return replace(made, config=config)

    (study,) = studies([started(6), started(14)])
    told = [text.get_text() for axes in seeds(study).axes for text in axes.texts]
    assert told == ["0/1", "0/1"]
