"""hgru weights: the trained networks that come with the package."""

from itertools import groupby, pairwise
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hgru_vision.commands.accuracy import accuracy_in_words, as_number
from hgru_vision.training.result import Point
from hgru_vision.weights import Card, card, list_weights
from hgru_vision.weights import publish as publish_run

BARS = "▁▂▃▄▅▆▇█"
CHANCE = 0.5
WIDTH = 20  # of a learning curve in characters: the table fits into 80 columns


def weights() -> None:
    """List the trained networks of this package.

    In Python: hgru_vision.load_weights("hgru.pathfinder14"). Commands that take a network, such as
    hgru eval, take these names.

    Example: hgru weights
    """
    console = Console(highlight=False)
    cards = [card(name) for name in list_weights()]
    if not cards:
        console.print("None yet; hgru weights publish RUN --tag TAG adds one.")
        return
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in ("name", "task"):
        table.add_column(column, no_wrap=True)
    for column in ("accuracy", "probe", "images", "kB"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in cards:
        result = each.result
        table.add_row(
            each.name,
            each.config.task.name,
            _accuracy(each),
            "" if result.shortcut is None else f"{result.shortcut['accuracy']:.1%}",
            f"{result.images:,}",
            f"{each.size / 1000:,.0f}",
        )
    console.print(table)
    console.print("\nprobe: what one that follows no path gets right.")
    console.print("hgru weights show NAME tells more.")


def show(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
) -> None:
    """Tell what is known of a trained network: its card, its learning curve, its command.

    Example: hgru weights show hgru.pathfinder14

    Parameters
    ----------
    name
        One of those that `hgru weights` lists.
    """
    known = card(name)
    console = Console(highlight=False)
    facts = Table(box=None, pad_edge=False, show_edge=False, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for key, value in _facts(known).items():
        facts.add_row(key, Text(value))  # no markup: a note may have brackets
    console.print(facts)
    measure = (
        "Pixel AUC of held-out crops" if known.config.boundaries else "Accuracy on held-out images"
    )
    curve = Table(title=measure, title_justify="left", box=None)
    for column in ("stage", "images", "first", "best", "last"):
        curve.add_column(column, justify="right" if column != "stage" else "left", no_wrap=True)
    curve.add_column("from 50 % to 100 %", no_wrap=True)
    for stage, points in groupby(known.result.curve, key=lambda point: point.stage):
        part = list(points)
        accuracies = [point.accuracy for point in part]
        curve.add_row(
            known.config.stages[stage].name,
            f"to {part[-1].images:,}",
            *(f"{each:.1%}" for each in (accuracies[0], max(accuracies), accuracies[-1])),
            sparkline(part),
        )
    if known.result.curve:
        console.print(curve)


def publish(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    tag: str,
    note: str = "",
    replace: bool = False,
) -> None:
    """Put the network of a finished run among the trained networks of this package.

    Two files are written beside the package's own: MODEL.TAG.safetensors and its card,
    MODEL.TAG.json.

    Example: hgru weights publish runs/hgru14 --tag mine14

    Parameters
    ----------
    run
        Folder that `hgru train` or `hgru sweep` wrote.
    tag
        Second part of the name; the first is the network's.
    note
        For the reader of the card.
    replace
        Replace weights of the same name.
    """
    made = publish_run(run, tag, note=note, replace_old=replace)
    told = f"Published {made.name}: {made.size / 1000:,.0f} kB, sha256 {made.sha256[:12]}."
    Console(highlight=False).print(f"{told}\nTo make it again: {made.command}", soft_wrap=True)


def sparkline(points: list[Point], width: int = WIDTH) -> str:
    """Draw accuracies as a line of bars, from chance to 1; long curves are averaged.

    >>> def at(accuracy):
    ...     return Point(stage=0, batch=1, images=1, loss=0.0, accuracy=accuracy, seconds=0.0)
    >>> sparkline([at(0.45), at(0.5), at(0.75), at(1.0)])
    '▁▁▅█'
    """
    count = min(width, len(points))
    edges = [round(number * len(points) / count) for number in range(count + 1)]
    drawn = ""
    for start, end in pairwise(edges):
        mean = sum(point.accuracy for point in points[start:end]) / (end - start)
        height = round((mean - CHANCE) / (1 - CHANCE) * (len(BARS) - 1) + 1e-9)
        drawn += BARS[max(0, height)]
    return drawn


def _facts(known: Card) -> dict[str, str]:
    """Give the lines of a card."""
    config, result = known.config, known.result
    shortcut = "" if result.shortcut is None else f"{result.shortcut['accuracy']:.1%}"
    shared = result.shared
    facts = {
        "name": known.name,
        "note": known.note,
        "network": f"{config.model}, {result.parameters:,} parameters {config.options or ''}",
        "task": f"{config.task.name} {config.task.changes or ''}",
        "accuracy": accuracy_in_words(config, result),
        "without a path": shortcut and f"{shortcut} by a probe (hgru audit)",
        "trained": f"recipe {config.recipe}, seed {config.seed}, data seed {config.data_seed}; "
        f"{result.images:,} images, {result.seconds:,.0f} s on {result.device}",
        "begun from": config.start or "",
        "begun by": "" if shared is None else f"run {shared['run']}, {shared['images']:,} images",
        "versions": ", ".join(f"{key} {value}" for key, value in result.versions.items()),
        "commit": result.commit or "",
        "sha256": known.sha256,
        "command": known.command,
    }
    return {key: " ".join(value.split()) for key, value in facts.items() if value}


def _accuracy(known: Card) -> str:
    assert known.result.accuracy is not None  # only a finished run is published
    number = as_number(known.result.accuracy, known.config.boundaries)
    return f"AUC {number}" if known.config.boundaries else number
