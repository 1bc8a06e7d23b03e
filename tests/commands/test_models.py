import subprocess
import sys
from typing import get_args

from hgru_vision.cli import main
from hgru_vision.commands.models import differs, multiple
from hgru_vision.models.catalogue import CATALOGUE, NETWORKS, Family


def row(out, name):
    return next(line.split() for line in out.splitlines() if line.split()[:1] == [name])


def test_all_networks_are_listed(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(row(out, name) for name in NETWORKS)
    assert f"{len(NETWORKS)} of {len(NETWORKS)} networks." in out


def test_families_stand_together_in_the_papers_order(capsys):
    main(["models"])
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line]
    families = [NETWORKS[word].family for word in words if word in NETWORKS]
    assert families == sorted(families, key=get_args(Family).index)
    assert set(families) == set(get_args(Family))


def test_a_row_has_parameters_multiple_and_epochs(capsys):
    main(["models", "hgru*"])
    out = capsys.readouterr().out
    assert row(out, "hgru")[:5] == ["hgru", "75,843", "1", "1", "2"]
    assert row(out, "hgru_bn")[:4] == ["hgru_bn", "77,385", "1.02", "2"]
    assert "resnet" not in out
    assert "*" not in out


def test_what_differs_from_the_paper_is_marked(capsys):
    main(["models", "resnet152"])
    out = capsys.readouterr().out
    assert row(out, "resnet152")[2:5] == ["767", "1000*", "4"]
    assert "* The paper's multiple is another: see docs/differences.md." in out


def test_multiples_of_the_paper_that_ours_agree_with():
    stated = {entry.name for entry in CATALOGUE.values() if entry.multiple is not None}
    marked = {name for name in stated if differs(CATALOGUE[name])}
    assert marked == {"ff_small_1", "ff_medium_1", "ff_large_1", "resnet152"}
    assert stated - marked == {"hgru", "fcn", "unet", "segnet"}
    assert multiple(CATALOGUE["hgru"]) == 1


def test_a_pattern_without_a_match_is_refused(capsys):
    assert main(["models", "resnt*"]) == 2
    err = capsys.readouterr().err
    assert err == "hgru: no model's name matches 'resnt*'; 'hgru models' lists all\n"


def test_no_torch_is_loaded():
    # Which is what keeps the command under two seconds.
    code = (
        "import sys; from hgru_vision.cli import main; main(['models']);"
        "print([name for name in ('torch', 'numba', 'scipy') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"
