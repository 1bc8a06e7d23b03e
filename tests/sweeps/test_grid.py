from dataclasses import replace
from pathlib import Path

import pytest

from hgru_vision.analysis.psychophysics_findings import BEYOND
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.sweeps.grid import load_grid, product
from hgru_vision.sweeps.grids import GRIDS, MAIN
from hgru_vision.sweeps.jobs import beginnings
from hgru_vision.sweeps.ledger import read_ledger
from hgru_vision.training.data import contour_config


def facts(runs):
    return [(run.model, run.task.length, run.seed) for run in runs]


def test_networks_vary_fastest_and_seeds_slowest():
    runs = product("screen", models=["hgru", "gru"], lengths=[14, 6], seeds=[0, 1])
    assert facts(runs) == [
        (model, length, seed) for seed in (0, 1) for length in (14, 6) for model in ("hgru", "gru")
    ]


def test_what_is_not_given_is_the_recipes_own():
    (run,) = product("paper")
    assert facts([run]) == [("hgru", 14, 0)]
    assert len(list(product("quick", seeds=range(3)))) == 3  # which takes no model


def test_other_keywords_go_to_the_recipe():
    (run,) = product("screen", preset="matched")
    assert run.task.name == "matched-14"
    with pytest.raises(TypeError, match="the recipe screen takes no presett"):
        list(product("screen", presett="matched"))


@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_has_runs_each_once(name):
    runs = load_grid(name)
    assert len({run.hash for run in runs}) == len(runs)


def test_the_grids_hold_what_they_say():
    assert len(load_grid("tiny")) == 12
    assert [run.seed for run in load_grid("curriculum")] == [0, 1, 2, 3, 4]
    assert facts(load_grid("paper14")) == [("hgru", 14, seed) for seed in range(3)]
    paper = load_grid("paper")
    assert {run.recipe for run in paper} == {"paper"}
    assert {run.hash for run in load_grid("paper14")} < {run.hash for run in paper}
    assert facts(paper)[:7] == [*((model, 6, 0) for model in MAIN), ("hgru", 9, 0)]
    assert len(paper) == len(MAIN) * 3 * 3
    released = load_grid("released14")
    assert facts(released) == [("hgru_released", 14, seed) for seed in range(3)]
    assert {run.task.preset for run in released} == {"authors"}
    lesions = {"hgru_no_linear", "hgru_no_quadratic", "hgru_no_time_gain"}
    others = {"hgru", "hgru_6", "hgru_4", "gru", "gru_2l", "hgru_bn", "hgru_nonnegative"}
    recurrent = load_grid("recurrent")
    assert {run.model for run in recurrent} == lesions | others
    assert {run.task.length for run in recurrent} == {6, 9, 14}
    networks = load_grid("networks")
    full_size = set(CATALOGUE) - {"hgru_small"}
    first = networks[: 3 * len(full_size)]
    assert {run.model for run in first} == full_size
    assert {run.seed for run in first} == {0}
    pooled = {run.model for run in networks if run.options == {"pool_first": True}}
    assert pooled == {name for name, entry in CATALOGUE.items() if entry.family == "per-pixel"}


def test_wide_contours_are_trained_as_the_others_are():
    near, wide = load_grid("contours"), load_grid("contours_wide")
    assert [(run.task.length, run.seed) for run in wide] == [
        (length, seed) for seed in range(3) for length in (3, 4)
    ]
    for run in wide:
        assert contour_config(run.task).spacing > BEYOND
        assert replace(run, stages=near[0].stages) == replace(near[0], seed=run.seed)
        assert run.stages[0].images == near[0].stages[0].images
        assert run.stages[0].mask_weight == near[0].stages[0].mask_weight


def test_the_contour_study_of_the_project_is_that_of_its_grids():
    wanted = [*load_grid("contours"), *load_grid("contours_wide")]
    rows = read_ledger(Path(__file__).parents[2] / "results/contours.jsonl")
    assert {row.hash for row in rows} == {replace(run, cuda_graph=True).hash for run in wanted}


@pytest.mark.parametrize("name", ["recurrent", "networks"])
def test_a_network_goes_from_short_to_long_so_that_stages_are_shared(name):
    runs = load_grid(name)
    for short, middle, long in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
        assert beginnings(long)[:2] == [middle, short]


def test_a_grid_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from hgru_vision.sweeps.grid import product\n"
        "def two(): return product('screen', seeds=[3, 4])\n"
        "def one(): return next(two())\n"
        "def none(): return []\n"
        "def number(): return 3\n"
        "def mixed(): return [*two(), 'gru']\n"
        "def late(): yield from (run.sead for run in two())\n"
        "pi = 3\n"
    )
    assert [run.seed for run in load_grid(f"{file}:two")] == [3, 4]
    for name, error, text in (
        ("one", TypeError, "one returned RunConfig, not RunConfigs"),
        ("number", TypeError, "number returned int, not RunConfigs"),
        ("none", ValueError, "none has no runs"),
        (
            "late",
            ValueError,
            r"the grid mine\.py:late fails at mine\.py:7: AttributeError: 'RunConfig' object has",
        ),
        ("mixed", TypeError, "run 2 of the grid .*mixed is str, not RunConfig"),
        (
            "pi",
            ValueError,
            r"mine\.py defines no function 'pi'; it has two, one, none, number, mix",
        ),
    ):
        with pytest.raises(error, match=text):
            load_grid(f"{file}:{name}")


def test_an_unknown_grid_gets_the_nearest():
    text = r"no grid 'tinny'; give tiny, recurrent, .* or FILE\.py:FUNCTION; did you mean 'tiny'"
    with pytest.raises(ValueError, match=text):
        load_grid("tinny")
