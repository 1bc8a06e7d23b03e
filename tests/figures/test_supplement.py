import pytest

from hgru_vision.analysis.study import studies
from hgru_vision.figures.names import SUPPLEMENT
from hgru_vision.figures.style import NothingToDraw, render
from hgru_vision.figures.supplement import supplement


def test_it_has_the_supplements_panels_and_the_sizes(full):
    figure = supplement(full)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:4] == list(SUPPLEMENT)
    assert titles[4].endswith("best run of each network")


def test_without_the_longest_paths_the_lower_part_says_so(row):
    (study,) = studies([row("unet_half", length=6)])
    figure = supplement(study)
    assert "on paths of 14 paddles" in figure.axes[-1].texts[0].get_text()
    assert figure.get_figheight() < 4  # no empty half
    assert render(figure, "svg")


def test_other_networks_alone_make_no_figure(row):
    (study,) = studies([row("gru")])
    with pytest.raises(NothingToDraw, match="none of its networks was run"):
        supplement(study)
