import subprocess
import sys
from importlib import import_module

import pytest

from hgru_vision.analysis.study import studies
from hgru_vision.figures.registry import FIGURES, check_name, draw
from hgru_vision.figures.style import NothingToDraw


def test_every_figure_has_its_module_and_function(full):
    for name in FIGURES:
        assert callable(getattr(import_module(f"hgru_vision.figures.{name}"), name))
    assert draw("seeds", full).axes


def test_pixels_have_no_place_beside_a_chance_of_one_half(row):
    (study,) = studies([row(target="segmentation", accuracy=0.98)])
    for name in set(FIGURES) - {"exemplars"}:
        with pytest.raises(NothingToDraw, match="judged by pixels, for which chance is not 50 %"):
            draw(name, study)
    assert draw("exemplars", study).axes


@pytest.mark.parametrize(
    "other",
    [{"dataset": "contours"}, {"dataset": "bsds500", "path": "BSR", "target": "segmentation"}],
)
def test_other_tasks_have_figures_of_their_own(row, other):
    (study,) = studies([row("contour_hgru", **other)])
    assert study.name.startswith(f"synthetic recipe, {other['dataset']}")
    for name in FIGURES:
        with pytest.raises(NothingToDraw, match="its runs are on no Pathfinder"):
            draw(name, study)


def test_an_unknown_figure_is_refused(full):
    with pytest.raises(ValueError, match=r"no figure 'acuracy'; .* did you mean 'accuracy'\?"):
        draw("acuracy", full)
    with pytest.raises(ValueError, match="no figure 'zzz'; there are accuracy, alc"):
        check_name("zzz")


def test_names_are_known_without_matplotlib():
    code = "import sys; import hgru_vision.figures.registry; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
