from dataclasses import replace

import pytest
import torch

from hgru_vision.analysis.conditions import (
    CANVASES,
    DENSITIES,
    Condition,
    conditions,
    times_trained,
)
from hgru_vision.models import create_model
from hgru_vision.recipes import make_run
from hgru_vision.training.config import Source
from hgru_vision.training.data import pathfinder_config


def on(axis, config=None, network=None):
    config = make_run("curriculum") if config is None else config
    return conditions(config, network or torch.nn.Identity(), [axis])


def values(found):
    return [condition.value for condition in found]


def test_one_thing_is_changed_at_a_time():
    task = make_run("curriculum").task
    assert values(on("length")) == [6, 9, 12, 14, 16, 18, 20, 22, 25]
    assert [c.source for c in on("length")] == [
        replace(task, length=n) for n in values(on("length"))
    ]
    assert values(on("canvas")) == [120, 150, 200, 300]
    paddles = [pathfinder_config(each.source).paddles for each in on("canvas")]
    assert paddles == [88, 150, 290, 708]
    wide = [120 - 22, 150 - 22, 200 - 22, 300 - 22]  # within a border of 11 pixels
    density = [n / side**2 for n, side in zip(paddles, wide, strict=True)]
    assert density == pytest.approx([150 / 128**2] * 4, rel=0.01)
    assert values(on("density")) == [50, 100, 150, 200, 250, 300]
    assert {"paper", "matched", "authors", "lra-32"} < set(values(on("preset")))
    assert not any(str(name).startswith("crbp") for name in values(on("preset")))  # one marker
    assert values(on("probe")) == ["paper"]
    for axis in ("length", "canvas", "density", "preset"):
        assert sum(condition.source == task for condition in on(axis)) == 1


def test_the_authors_images_are_changed_by_their_own_fields():
    config = make_run("curriculum", preset="authors")
    sizes = [pathfinder_config(each.source) for each in on("canvas", config)]
    assert [(each.size, each.canvas) for each in sizes][::3] == [(120, 240), (300, 600)]
    assert [each.distractors for each in sizes] == [1, 7, 20, 59]
    assert values(on("density", config)) == [28, 36, 56, 76, 92, 112]
    assert values(on("probe", config)) == ["authors", "paper"]


def test_a_canvas_that_cannot_be_drawn_does_not_stop_the_others():
    found = on("canvas", make_run("quick"))
    assert values(found) == [26, 32, 43, 64]
    with pytest.raises(ValueError, match="canvas must be from 32 to 1024 pixels; got 26"):
        pathfinder_config(found[0].source)


def test_steps_are_for_networks_with_a_circuit():
    network = create_model("hgru_small", timesteps=2)
    found = on("steps", network=network)
    assert values(found) == [each.timesteps for each in found] == list(range(1, 17))
    assert on("steps") == []


def test_other_tasks_are_refused():
    config = make_run("quick")
    others = [replace(config, target="segmentation")]
    for source in (Source(path="folder"), Source(dataset="contours", length=5)):
        stage = replace(config.stages[0], sources=(source,))
        others.append(replace(config, stages=(stage,)))
    for other in others:
        with pytest.raises(ValueError, match="generalisation is measured for networks that label"):
            on("length", other)


def test_multiples_of_the_training_are_known_by_their_numbers():
    for preset in ("paper", "authors"):
        config = make_run("curriculum", preset=preset)
        times = [times_trained(each, config.task) for each in on("density", config)]
        assert times == list(DENSITIES)  # 28 of 56 paddles are a third: the paths alone have them
        times = [times_trained(each, config.task) for each in on("canvas", config)]
        assert times == list(CANVASES)
    task = config.task
    assert times_trained(Condition(axis="density", value=70, source=task), task) == 70 / 56


def test_where_paths_are_all_the_trained_number_comes_first():
    task = Source(length=14, changes={"distractor_paddles": 0})
    run = make_run("curriculum")
    config = replace(run, stages=(replace(run.stages[-1], sources=(task,)),))
    found = on("density", config)
    assert found[0].value == 28 and times_trained(found[0], task) == 1
