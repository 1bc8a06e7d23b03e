"""Flags that several commands share."""

import runpy
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import nn

from hgru_vision.stimuli.presets import PRESETS, Config, preset


def configure(name: str, length: int | None, changes: tuple[str, ...]) -> Config:
    """Make a configuration from a preset and changes given as ``field=value``."""
    parsed: dict[str, Any] = {}
    types = {}
    if name in PRESETS:
        types = {field.name: field.type for field in fields(PRESETS[name].config)}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise ValueError(f"--set takes field=value, such as canvas=300; got {change!r}")
        parsed[key] = _parse(key, text, types.get(key))
    return preset(name, length, **parsed)


def _parse(key: str, text: str, wanted: Any) -> Any:
    if wanted is None:  # `preset` names the nearest field
        return text
    try:
        if wanted is bool:
            return {"true": True, "false": False}[text.lower()]
        if wanted is float:
            return float(text)
        if wanted == tuple[int, ...]:
            return tuple(int(part) for part in text.split(","))
        return int(text)
    except (KeyError, ValueError):
        kinds = {bool: "true or false", float: "a number", tuple[int, ...]: "numbers like 2,3"}
        raise ValueError(
            f"{key} must be {kinds.get(wanted, 'a whole number')}; got {text!r}"
        ) from None


def parse_duration(text: str) -> float:
    """Read a time such as 90s, 9m or 2h, in seconds.

    Examples
    --------
    >>> parse_duration("9m")
    540.0
    """
    units = {"s": 1, "m": 60, "h": 3600}
    try:
        seconds = float(text[:-1]) * units[text[-1:]]
    except (KeyError, ValueError):
        seconds = -1
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"a time is a number with s, m or h, such as 90s, 9m or 2h; got {text!r}")
    return seconds


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure, making the folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"wrote {path}")


def load_network(reference: str) -> Any:
    """Call the function that ``FILE.py:FUNCTION`` names, and return the network it makes."""
    path, colon, function = reference.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise ValueError(
            f"--network takes FILE.py:FUNCTION, such as nets.py:load; got {reference!r}"
        )
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {path} (from --network {reference})")
    names = runpy.run_path(str(file))
    if not callable(names.get(function)):
        defined = [name for name, value in names.items() if callable(value) and name[0] != "_"]
        raise ValueError(f"{path} defines no function {function!r}; it has {', '.join(defined)}")
    network = names[function]()
    if not isinstance(network, nn.Module):
        raise TypeError(f"{reference} returned {type(network).__name__}, not a torch.nn.Module")
    return network
