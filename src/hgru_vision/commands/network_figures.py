"""Figures of trained networks: what those by `hgru figures NAME --networks ...` have in common."""

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from hgru_vision.commands.networks import open_network
from hgru_vision.figures.style import check_picture, save_figure
from hgru_vision.training.files import replace_file

__all__ = ["Measured", "draw_networks"]

Shown = TypeVar("Shown")


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured(Generic[Shown]):
    """What was found in a network.

    Parameters
    ----------
    title, shown
        For the figure.
    words
        For the terminal.
    numbers
        For the JSON file.
    """

    title: str
    shown: Shown
    words: str
    numbers: dict[str, Any]


def draw_networks(figure: str, networks: tuple[str, ...], path: Path) -> None:
    """Draw a figure of trained networks, print its numbers and write all to a JSON file.

    Parameters
    ----------
    figure
        One of `NETWORK_FIGURES`.
    networks
        Names of trained weights, folders of runs, or FILE.py:FUNCTION.
    path
        Of the picture; the JSON file lies beside it.
    """
    if not networks:
        raise ValueError(
            f"{figure} needs --networks: names of trained weights (hgru weights) or folders of "
            "runs (hgru train)"
        )
    check_picture(path)  # before minutes of work
    module = import_module(f"hgru_vision.commands.{figure}")
    found, numbers = {}, {}
    for name in networks:
        try:
            measured = module.measure(name, open_network(name))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from error
        found[measured.title], numbers[name] = measured.shown, measured.numbers
        print(measured.words)
    save_figure(module.draw(found), path)
    print(f"wrote {path}")
    replace_file(path.with_suffix(".json"), f"{json.dumps(numbers, indent=2)}\n".encode())
    print(f"wrote {path.with_suffix('.json')}")
