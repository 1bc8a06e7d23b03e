"""What trained networks are measured on beside their own task: one thing is changed at a time.

=========  =======================================================================================
length     paddles in a path
preset     the generator, at the trained length
canvas     pixels on a side; paddles in proportion to the area within the border: density stays
density    paddles in an image
steps      of the circuit; beyond the trained number, what is learnt step by step goes on with its
           last value
probe      images of a preset on which a probe that follows no path is confidently wrong
=========  =======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from torch import nn

from hgru_vision.papers.linsley2018 import PATH_LENGTHS
from hgru_vision.stimuli.pathfinder import PathfinderConfig
from hgru_vision.stimuli.presets import PRESETS, Config
from hgru_vision.training.config import RunConfig, Source
from hgru_vision.training.data import pathfinder_config
from hgru_vision.training.evaluate import find_circuit

__all__ = ["AXES", "Axis", "Condition", "conditions", "times_trained"]

Axis = Literal["length", "preset", "canvas", "density", "steps", "probe"]
AXES: tuple[Axis, ...] = get_args(Axis)

LENGTHS = (*PATH_LENGTHS, 12, 16, 18, 20, 22, 25)
CANVASES = (0.8, 1.0, 4 / 3, 2.0)  # of the trained one: 120, 150, 200, 300
DENSITIES = (1 / 3, 2 / 3, 1.0, 4 / 3, 5 / 3, 2.0)  # of the trained one: 50 to 300 paddles
STEPS = range(1, 17)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a network is measured on.

    Parameters
    ----------
    axis, value
        What is changed, and to what.
    source
        The images.
    timesteps
        Of the circuit, if not as many as it was made with.
    """

    axis: Axis
    value: Any  # a whole number, or the name of a preset
    source: Source
    timesteps: int | None = None


def conditions(
    config: RunConfig, network: nn.Module, axes: Iterable[Axis] = AXES
) -> list[Condition]:
    """List what a network is to be measured on.

    Parameters
    ----------
    config
        Of the run that trained it.
    network
        Networks without one recurrent circuit have no axis "steps".
    axes
        What to change.

    Examples
    --------
    >>> from hgru_vision.recipes import make_run
    >>> found = conditions(make_run("curriculum"), nn.Identity(), ["density"])
    >>> [condition.value for condition in found]
    [50, 100, 150, 200, 250, 300]
    """
    task = config.task
    drawn = task.dataset == "pathfinder" and task.path is None
    if not drawn or config.target != "label":
        raise ValueError(
            "generalisation is measured for networks that label a Pathfinder drawn on the fly; "
            f"this one was trained on {task.name}, target {config.target!r}"
        )
    lists = {"length": _lengths, "preset": _presets, "probe": _probes}
    found: list[Condition] = []
    for axis in axes:
        if axis == "steps":
            found += _steps(task, network)
        elif axis in _MULTIPLES:
            found += _MULTIPLES[axis](task).values()
        else:
            found += lists[axis](task)
    return found


def times_trained(condition: Condition, task: Source) -> float:
    """Tell how many times the trained canvas or number of paddles a condition was made for.

    The number itself may be another: there are no fewer paddles than those of the paths, and only
    whole distractors.

    Examples
    --------
    >>> task = Source(length=14)
    >>> wide = Condition(axis="canvas", value=300, source=replace(task, changes={"canvas": 300}))
    >>> times_trained(wide, task)
    2.0
    """
    made = _MULTIPLES[condition.axis](task)
    known = {each.value: factor for factor, each in made.items()}
    return known.get(condition.value, condition.value / made[1.0].value)


def _lengths(task: Source) -> list[Condition]:
    # A preset's distractors follow its length; what the task has changed besides stays.
    lengths = sorted({*LENGTHS, task.length})
    return [_on("length", n, replace(task, length=n)) for n in lengths]


def _presets(task: Source) -> list[Condition]:
    names = [name for name, each in PRESETS.items() if each.config.markers == 2]
    return [_on("preset", name, _at(task, name)) for name in names]


def _canvases(task: Source) -> dict[float, Condition]:
    config = pathfinder_config(task)
    found = {}
    for factor in CANVASES:
        size = round(factor * config.size)
        canvas = size if isinstance(config, PathfinderConfig) else size * config.reduce
        border = 2 * _border(config)
        paddles = round(config.paddles * ((size - border) / (config.size - border)) ** 2)
        changes = {"canvas": canvas, **_paddles(config, paddles)}
        found[factor] = _on("canvas", size, _changed(task, changes))
    return found


def _border(config: Config) -> float:
    """Pixels at each side of an image that stay empty."""
    if isinstance(config, PathfinderConfig):
        return config.edge_margin
    return config.padding / config.reduce


def _densities(task: Source) -> dict[float, Condition]:
    config = pathfinder_config(task)
    found: dict[float, Condition] = {}
    for factor in sorted(DENSITIES, key=lambda factor: abs(factor - 1)):
        paddles = max(2 * config.length, round(factor * config.paddles))
        source = _changed(task, _paddles(config, paddles))
        condition = _on("density", pathfinder_config(source).paddles, source)
        if condition not in found.values():
            found[factor] = condition
    return dict(sorted(found.items()))


_MULTIPLES: dict[Axis, Callable[[Source], dict[float, Condition]]] = {
    "canvas": _canvases,
    "density": _densities,
}
"""What is changed in multiples of what it was in the training."""


def _steps(task: Source, network: nn.Module) -> list[Condition]:
    try:
        find_circuit(network)
    except ValueError:
        return []
    return [Condition(axis="steps", value=n, source=task, timesteps=n) for n in STEPS]


def _probes(task: Source) -> list[Condition]:
    names = dict.fromkeys((task.preset, "paper"))
    return [_on("probe", name, _at(task, name)) for name in names]


def _on(axis: Axis, value: int | str, source: Source) -> Condition:
    return Condition(axis=axis, value=value, source=source)


def _at(task: Source, preset: str) -> Source:
    """Give another preset at the trained length; changes of the task's own do not fit others."""
    return task if preset == task.preset else Source(preset=preset, length=task.length)


def _changed(task: Source, changes: dict[str, Any]) -> Source:
    """Change fields, but leave the task as it is where nothing changes."""
    source = replace(task, changes=task.changes | changes)
    try:
        same = pathfinder_config(source) == pathfinder_config(task)
    except ValueError:  # it cannot be drawn, which `measure` tells
        same = False
    return task if same else source


def _paddles(config: Config, paddles: int) -> dict[str, int]:
    """Say by which field an image gets so many paddles in all, as near as whole distractors go."""
    rest = max(0, paddles - 2 * config.length)
    if isinstance(config, PathfinderConfig):
        return {"distractor_paddles": rest}
    return {"distractors": round(rest / config.distractor_length)}
