"""hgru train: a run by its recipe."""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from hgru_vision.commands.options import parse_duration
from hgru_vision.recipes import make_run
from hgru_vision.sweeps.ledger import LedgerRow, read_ledger
from hgru_vision.training.config import RunConfig
from hgru_vision.training.loop import train as train_run
from hgru_vision.training.result import Result

LEDGERS = Path("results")


def train(
    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")],
    out: Path,
    model: str | None = None,
    preset: str | None = None,
    length: int | None = None,
    seed: int | None = None,
    budget: str | None = None,
    resume: bool = False,
    tensorboard: bool = False,
    device: str | None = None,
    set: tuple[str, ...] = (),
) -> None:
    """Train a network by a recipe: paper, curriculum, screen, quick, or your own.

    Stop it whenever you like, by Ctrl-C, SIGTERM or a kill: --resume goes on from its checkpoint.
    Runs on many GPUs under torchrun: torchrun --nproc-per-node 4 -m hgru_vision.cli train ...

    Example: hgru train curriculum --length 14 --out runs/hgru14

    Example: hgru train curriculum --length 14 --out runs/hgru14 --resume --budget 9m

    Parameters
    ----------
    recipe
        paper (as published), curriculum (short paths first), screen (a small budget that is the
        same for all networks), quick (minutes on a laptop), or FILE.py:FUNCTION, a function that
        returns a RunConfig.
    out
        Folder for the run.
    model
        A network, if not the recipe's own; `hgru models` lists them.
    preset
        A Pathfinder, if not the recipe's own; `hgru presets` lists them.
    length
        Paddles in a target path.
    seed
        Of the network's starting values.
    budget
        Stop after this time, such as 90s, 9m or 2h, with a checkpoint.
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
    given = {"model": model, "preset": preset, "length": length, "seed": seed}
    config = make_run(recipe, **{key: value for key, value in given.items() if value is not None})
    result = train_run(
        change(config, set),
        out,
        resume=resume,
        budget=None if budget is None else parse_duration(budget),
        tensorboard=tensorboard,
        device=device,
        ledger=_ledger(),
    )
    if os.environ.get("RANK", "0") == "0":
        Console().print(_summary(result, out), highlight=False, markup=False)


def change(config: RunConfig, changes: tuple[str, ...]) -> RunConfig:
    """Change fields of a run, given as ``field=value``; the value is JSON, or a plain text.

    Examples
    --------
    >>> change(make_run("quick"), ("batch=16", "stages[0].images=640")).stages[0].images
    640
    """
    whole: Any = config.to_json()
    for each in changes:
        path, equals, text = each.partition("=")
        *parents, last = re.findall(r"[^.\[\]]+", path) or [""]
        if not equals or not last:
            raise ValueError(f"--set takes field=value, such as batch=64; got {each!r}")
        try:
            place = whole
            for key in parents:
                place = place[_key(place, key)]
            place[_key(place, last)] = _value(text)
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"the run has no field {path!r} (from --set {each})") from None
    return RunConfig.from_json(whole)


def _key(place: Any, key: str) -> str | int:
    return int(key) if isinstance(place, list) else key


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _ledger() -> list[LedgerRow]:
    """Read the ledgers of the folder that the command runs in, if it has any."""
    return read_ledger(LEDGERS) if LEDGERS.is_dir() else []


def _summary(result: Result | None, out: Path) -> str:
    if result is None:
        return f"Stopped, with a checkpoint in {out}; the same command with --resume goes on."
    assert result.accuracy is not None  # a run that diverged has raised
    judged, note = "pixels", f"overlap of masks {result.overlap or 0:.3f}"
    if result.interval is not None:
        low, high = result.interval
        judged, note = "images", f"95 % interval {low:.1%} to {high:.1%}"
    lines = [
        f"{result.accuracy:.1%} of {result.test_images:,} test {judged} right ({note}) after "
        f"{result.images:,} images and {result.seconds:,.0f} s: {result.images_per_second:,.0f} "
        f"images/s, {result.waiting:.1%} of the time waiting for them."
    ]
    if result.stuck:
        early = "It was ended early, " if result.outcome == "stuck" else "It is "
        lines.append(f"{early}at chance; see 'Stuck at 0.693' in docs/training.md.")
    if result.shortcut is not None:
        share = result.shortcut["accuracy"]
        lines.append(f"Without following a path a probe gets {share:.1%} (hgru audit).")
    lines.append(f"The run is in {out}")
    return "\n".join(lines)
