import subprocess
import sys
from dataclasses import replace

import pytest

from hgru_vision.circuits import HGRU
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.papers import linsley2018
from hgru_vision.recipes import RECIPES, make_run
from hgru_vision.recipes.curriculum import curriculum
from hgru_vision.recipes.paper import paper
from hgru_vision.recipes.quick import quick
from hgru_vision.recipes.screen import screen
from hgru_vision.training.config import RunConfig


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_complete_run(name):
    run = make_run(name, seed=3)
    assert (run.recipe, run.seed) == (name, 3)
    assert RunConfig.from_json(run.to_json()) == run


def test_the_papers_protocol_is_the_papers():
    run = paper()
    assert (run.learning_rate, run.batch, run.clip) == (1e-3, 32, None)
    assert (run.evaluate_every, run.test_images) == (1000, 100_000)
    (stage,) = run.stages
    assert (stage.images, stage.unique, stage.promote_at) == (1_800_000, 900_000, None)
    assert run.stuck_after == stage.unique // 2
    for name, entry in CATALOGUE.items():
        if entry.family in ("residual", "per-pixel"):
            assert paper(model=name).stages[0].images == 3_600_000
    with pytest.raises(ValueError, match=r"no model 'hgruu' among the paper's.* mean 'hgru'"):
        paper(model="hgruu")


@pytest.mark.parametrize(
    ("length", "lengths"),
    [(6, [3, 6]), (9, [3, 6, 9]), (14, [3, 6, 9, 14]), (20, [3, 6, 9, 14, 20]), (3, [3])],
)
def test_a_curriculum_goes_up_to_the_length(length, lengths):
    run = curriculum(length=length, preset="authors")
    assert [stage.sources[0].length for stage in run.stages] == lengths
    assert all(stage.promote_at for stage in run.stages[:-1])
    assert run.stages[-1].promote_at is None
    assert run.task.preset == "authors"


@pytest.mark.parametrize("length", [3, 9])
def test_matched_begins_with_the_shortcut_open(length):
    run = curriculum(length=length, preset="matched")
    tasks = [(stage.sources[0].preset, stage.sources[0].length) for stage in run.stages]
    before = [("paper", each) for each in (3, 6, 9) if each <= length]
    assert tasks == [*before, ("matched", length)]
    assert [stage.promote_at for stage in run.stages] == [0.9] * len(before) + [None]


def test_the_last_stage_of_a_curriculum_has_as_many_images_as_are_asked_for():
    usual, longer = make_run("curriculum"), make_run("curriculum", images=960_000)
    assert longer.stages[-1].images == 960_000
    assert longer.stages[:-1] == usual.stages[:-1]
    shorter = make_run("curriculum", images=6_400)
    assert [run.cool_down for run in (usual, longer, shorter)] == [5_000, 5_000, 100]  # half of 200


@pytest.mark.parametrize("mixed", [False, True])
def test_a_curriculum_that_begins_from_weights_has_its_last_stage_alone(mixed):
    given = {"length": 9, "preset": "matched", "mixed": mixed}
    run = curriculum(start="hgru.pathfinder9", **given)
    assert run.stages == curriculum(**given).stages[-1:]
    assert (run.start, run.start_readout) == ("hgru.pathfinder9", True)


def test_a_mixed_curriculum_ends_with_all_lengths_together():
    run = make_run("curriculum", length=14, preset="matched", mixed=True)
    assert [source.length for source in run.stages[-1].sources] == [3, 6, 9, 14]
    assert {source.preset for source in run.stages[-1].sources} == {"matched"}
    assert run.task.length == 14
    assert run.stages[:-1] == curriculum(preset="matched").stages[:-1]


def test_a_curriculum_ends_where_a_stage_is_not_learnt():
    run = curriculum()
    assert run.stop_when_stuck
    assert all(run.stuck_after <= stage.images for stage in run.stages)


def test_a_curriculum_is_less_than_a_quarter_of_the_papers_images():
    assert sum(stage.images for stage in curriculum().stages) <= 400_000


def test_a_screen_shows_all_networks_the_same_images():
    runs = [screen(model=model).to_json() for model in ("hgru", "resnet18")]
    assert {key for key in runs[0] if runs[0][key] != runs[1][key]} == {"model"}
    assert all(stage.promote_at is None for stage in screen().stages)
    shown = {stage.sources[0].length: stage.images for stage in screen(length=20).stages}
    assert shown == {3: 16_000, 6: 48_000, 9: 48_000, 14: 112_000, 20: 112_000}
    assert screen().stages == screen(length=20).stages[:-1]


def test_horizontal_kernels_learn_more_slowly_but_in_the_papers_protocol():
    assert paper().full_rate_inputs is None
    kernel = HGRU().w
    for run in (curriculum(), screen()):
        assert run.full_rate_inputs / kernel.inputs == pytest.approx(1 / 3)


OWN = """
from hgru_vision.training.config import RunConfig, Source, Stage

def mine(*, seed=0):
    stage = Stage(sources=(Source(length=6),), images=64)
    return RunConfig(recipe="mine", model="gru", stages=(stage,), seed=seed)

def wrong():
    return 3

number = 3
"""


def test_a_users_own_recipe(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    assert make_run(f"{file}:mine", seed=4).seed == 4
    with pytest.raises(TypeError, match="the recipe mine takes no length; it takes seed"):
        make_run(f"{file}:mine", length=4)
    with pytest.raises(TypeError, match="the recipe wrong returned int, not a RunConfig"):
        make_run(f"{file}:wrong")
    with pytest.raises(ValueError, match="defines no function 'number'; it has mine, wrong"):
        make_run(f"{file}:number")


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"changes": "crop=96"}, "changes must be an object with names for keys; got 'crop=96'"),
        ({"start": 3}, "start must be a text; got 3"),
        ({"shear": "a"}, "shear must be a number; got 'a'"),
    ],
)
def test_a_keyword_of_another_type_is_named(keywords, text):
    with pytest.raises(TypeError) as error:
        make_run("contours", **keywords)
    assert str(error.value) == text


def test_a_recipe_may_pass_on_whatever_it_is_given():
    def mine(*, clip=2.0, **keywords):
        return replace(quick(**keywords), clip=clip)

    run = make_run(mine, seed=4, clip=3.0)
    assert (run.seed, run.clip) == (4, 3.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'length'"):
        make_run(mine, length=4)


def test_a_recipe_may_be_a_partial_function(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from functools import partial\n"
        "from hgru_vision.recipes.quick import quick\n"
        "short = partial(quick, images=6400)\n"
        "wrong = partial(lambda number: number, number=3)\n"
    )
    assert make_run(f"{file}:short", seed=4).stages[0].images == 6400
    with pytest.raises(TypeError, match=r"the recipe .*own\.py:short takes no length; it takes"):
        make_run(f"{file}:short", length=4)
    with pytest.raises(TypeError, match=r"the recipe .*own\.py:wrong returned int, not a RunC"):
        make_run(f"{file}:wrong")


def test_a_recipe_that_fails_is_named_with_its_line(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from hgru_vision.recipes import make_run\n"
        "def short(): return make_run('quick', images=5)\n"
        "def wrong(): return missing\n"
    )
    for name, text in (
        ("short", "own.py:short fails at own.py:2: ValueError: stages[0].images is 5, less than a"),
        ("wrong", "own.py:wrong fails at own.py:3: NameError: name 'missing' is not defined"),
    ):
        with pytest.raises(ValueError) as error:
            make_run(f"{file}:{name}")
        assert str(error.value).startswith(f"the recipe {text}")


def test_an_unknown_recipe_gets_the_nearest():
    with pytest.raises(ValueError) as error:
        make_run("curiculum")
    assert str(error.value) == (
        "no recipe 'curiculum'; give paper, curriculum, screen, quick, boundaries, contours or "
        "FILE.py:FUNCTION; did you mean 'curriculum'?"
    )


def test_a_recipe_needs_no_torch():
    code = "import sys, hgru_vision.recipes; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


@pytest.mark.parametrize("name", ["paper", "curriculum", "screen", "quick"])
def test_a_network_of_ones_own_is_trained_by_any_of_them(name, nets):
    run = make_run(name, model="nets.py:leaky")
    assert (run.model, run.options) == ("nets.py:leaky", {})
    if name == "paper":
        assert run.stages[0].images == linsley2018.EPOCHS * 900_000
