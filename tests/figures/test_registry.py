import subprocess
import sys
from importlib import import_module

import pytest

from hgru_vision.figures.registry import FIGURES, check_name, draw


def test_every_figure_has_its_module_and_function(full):
    for name in FIGURES:
        assert callable(getattr(import_module(f"hgru_vision.figures.{name}"), name))
    assert draw("seeds", full).axes


def test_an_unknown_figure_is_refused(full):
    with pytest.raises(ValueError, match=r"no figure 'acuracy'; .* did you mean 'accuracy'\?"):
        draw("acuracy", full)
    with pytest.raises(ValueError, match="no figure 'zzz'; there are accuracy, alc"):
        check_name("zzz")


def test_names_are_known_without_matplotlib():
    code = "import sys; import hgru_vision.figures.registry; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
