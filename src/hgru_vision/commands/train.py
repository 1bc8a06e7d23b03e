"""hgru train: a run by its recipe."""

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from hgru_vision.commands.accuracy import accuracy_in_words
from hgru_vision.commands.options import parse_duration
from hgru_vision.recipes import make_run
from hgru_vision.sweeps.ledger import LedgerRow, read_ledger
from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import CONFIG, located
from hgru_vision.training.loop import train as train_run
from hgru_vision.training.result import Result
from hgru_vision.weights import Card, card, list_weights

LEDGERS = Path("results")


def train(
    recipe: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")] = None,
    *,
    out: Path,
    config: str | None = None,
    model: str | None = None,
    preset: str | None = None,
    length: int | None = None,
    seed: int | None = None,
    with_: Annotated[tuple[str, ...], tyro.conf.arg(name="with")] = (),
    budget: str | None = None,
    resume: bool = False,
    tensorboard: bool = False,
    device: str | None = None,
    set: tuple[str, ...] = (),
) -> None:
    """Train a network by a recipe, or as another run was trained.

    Stop it whenever you like, by Ctrl-C, SIGTERM or a kill: --resume goes on from its checkpoint.
    Runs on many GPUs under torchrun: torchrun --nproc-per-node 4 -m hgru_vision.cli train ...

    Example: hgru train curriculum --length 14 --out runs/hgru14

    Example: hgru train curriculum --length 14 --out runs/hgru14 --resume --budget 9m

    Example: hgru train --config runs/hgru14 --seed 1 --out runs/again

    Example: hgru train curriculum --model nets.py:leaky --out runs/leaky

    Example: hgru train boundaries --with root=BSR vgg=vgg16.pth --out runs/boundaries

    Parameters
    ----------
    recipe
        paper (as published), curriculum (short paths first), screen (a small budget that is the
        same for all networks), quick (minutes on a laptop); boundaries (natural images), contours
        (synthetic ones); or FILE.py:FUNCTION, a function that returns a RunConfig.
    out
        Folder for the run.
    config
        Instead of a recipe: the folder of a run, its config.json, the card of trained weights, or
        their name. The very same run is made, but for what --seed and --set change.
    model
        A network, if not the recipe's own: one of those that `hgru models` lists, or
        FILE.py:FUNCTION, a function that returns a torch module (docs/circuits.md).
    preset
        A Pathfinder, if not the recipe's own; `hgru presets` lists them.
    length
        Paddles in a target path.
    seed
        Of the network's starting values.
    with_
        Other keywords of the recipe, such as --with shear=0.2 images=64000
    budget
        Stop after this time, such as 90s, 9m or 2h, with a checkpoint. That is no error: the exit
        status is 0. A script sees by OUT/result.json, which is written last, that a run is over.
    resume
        Go on with the run in the folder, if there is one.
    tensorboard
        Write scalars for TensorBoard, too.
    device
        cuda or cpu; a GPU if there is one, if not given.
    set
        Other fields of the run and keywords of its network, such as --set warm_up=1000
        stages[0].images=64000 options.timesteps=6 options.drive_gain=1
    """
    flags = {"model": model, "preset": preset, "length": length, "seed": seed}
    given = {key: value for key, value in flags.items() if value is not None}
    for each in with_:
        key, value = _assignment(each, "--with takes keyword=value, such as root=BSR")
        if key in flags:
            raise ValueError(f"{key} has a flag of its own; give --{key} {value}")
        given[key] = value
    run = change(_start(recipe, config, given), set)
    result = train_run(
        run,
        out,
        resume=resume,
        budget=None if budget is None else parse_duration(budget),
        tensorboard=tensorboard,
        device=device,
        ledger=_ledger(),
    )
    if os.environ.get("RANK", "0") == "0":
        Console().print(_summary(run, result, out), highlight=False, markup=False)


def _start(recipe: str | None, config: str | None, given: dict[str, Any]) -> RunConfig:
    """Make the run of a recipe, or read that of a configuration."""
    if (recipe is None) == (config is None):
        raise ValueError("give a recipe (paper, curriculum, ...) or --config, one of them")
    if recipe is not None:
        return make_run(recipe, **given)
    assert config is not None
    if unfit := [name for name in given if name != "seed"]:
        raise ValueError(
            f"{unfit[0]} is for a recipe; change the fields of --config by --set, such as "
            "stages[0].sources[0].length=9"
        )
    return replace(read_run(config), **given)


def read_run(reference: str) -> RunConfig:
    """Read the configuration of a run.

    Parameters
    ----------
    reference
        Name of trained weights, the folder of a run, its config.json, or a card.
    """
    if reference in list_weights():
        return card(reference).config
    path = Path(reference)
    path = path / CONFIG if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(
            f"no configuration {reference!r}; give the folder of a run, its {CONFIG}, a card, or "
            "the name of trained weights ('hgru weights' lists them)"
        )
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error})") from None
    if isinstance(value, dict) and "sha256" in value:
        return Card.from_json(value, path.name).config
    try:
        return located(RunConfig.from_json(value), path.parent)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is no run's configuration: {error}") from None


def change(config: RunConfig, changes: tuple[str, ...]) -> RunConfig:
    """Change fields of a run, given as ``field=value``; the value is JSON, or a plain text.

    What a recipe has derived from a field stays as it is. A learning rate that would rise or fall
    for longer than the run lasts is refused.

    Examples
    --------
    >>> change(make_run("quick"), ("batch=16", "stages[0].images=6400")).stages[0].images
    6400
    """
    whole: Any = config.to_json()
    for each in changes:
        path, value = _assignment(each, "--set takes field=value, such as batch=64")
        *parents, last = re.findall(r"[^.\[\]]+", path)
        try:
            place = whole
            for key in parents:
                place = place[_key(place, key)]
            place[_key(place, last)] = value
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"the run has no field {path!r} (from --set {each})") from None
        if path == "model":  # another file has another check sum
            whole["model_folder"] = whole["model_sha256"] = None
        if path == "start":
            whole["start_sha256"] = None
    changed = RunConfig.from_json(whole)
    _check_rate(changed)
    return changed


def _check_rate(config: RunConfig) -> None:
    """Refuse a learning rate that never comes to its value."""
    batches = [stage.images // config.batch for stage in config.stages]
    last = batches[-1]
    for name, there, what in (("warm_up", sum(batches), "run"), ("cool_down", last, "last stage")):
        if (wanted := getattr(config, name)) > there:
            raise ValueError(
                f"{name} is {wanted} batches, but the {what} has {there}, so that the learning "
                f"rate would never come to its value; give --set {name}={there}, or less"
            )


def _key(place: Any, key: str) -> str | int:
    return int(key) if isinstance(place, list) else key


def _assignment(text: str, expected: str) -> tuple[str, Any]:
    """Split ``key=value``; the value is JSON, or a plain text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip(".[]"):
        raise ValueError(f"{expected}; got {text!r}")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _ledger() -> list[LedgerRow]:
    """Read the ledgers of the folder that the command runs in; only a warning rests on them."""
    try:
        return read_ledger(LEDGERS) if LEDGERS.is_dir() else []
    except (ValueError, OSError) as error:
        print(f"hgru: earlier runs are not counted: {error}", file=sys.stderr)
        return []


def _summary(config: RunConfig, result: Result | None, out: Path) -> str:
    if result is None:
        return f"Stopped, with a checkpoint in {out}; the same command with --resume goes on."
    words = accuracy_in_words(config, result)  # a run that diverged has raised
    lines = [
        f"{words[0].upper()}{words[1:]}, after {result.images:,} images and "
        f"{result.seconds:,.0f} s: {result.images_per_second:,.0f} images/s, "
        f"{result.waiting:.1%} of the time waiting for them."
    ]
    if result.stuck:
        early = result.outcome == "stuck"
        how = "It was ended early, at chance" if early else "That is not surely above chance"
        lines.append(f"{how}; see docs/stuck.md.")
    if result.shortcut is not None:
        share = result.shortcut["accuracy"]
        way = "linking paddles" if config.task.dataset == "contours" else "following a path"
        lines.append(f"Without {way} a probe gets {share:.1%} (hgru audit).")
    lines.append(f"The run is in {out}")
    return "\n".join(lines)
