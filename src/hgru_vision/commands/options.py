"""Flags that several commands share."""

from dataclasses import fields
from typing import Any

from hgru_vision.stimuli.presets import PRESETS, Config, preset

OWN_FLAGS = {"length": "--length", "name": "--preset"}


def configure(name: str, length: int | None, changes: tuple[str, ...]) -> Config:
    """Make a configuration from a preset and changes given as ``field=value``."""
    return preset(name, length, **parse_changes(name, changes))


def parse_changes(name: str, changes: tuple[str, ...]) -> dict[str, Any]:
    """Read changes of a preset, given as ``field=value``, by the types of its fields.

    Examples
    --------
    >>> parse_changes("paper", ("canvas=300", "antialias=true"))
    {'canvas': 300, 'antialias': True}
    """
    types = {}
    if name in PRESETS:  # `preset` refuses others
        types = {field.name: field.type for field in fields(PRESETS[name].config)}
    parsed: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise ValueError(f"--set takes field=value, such as canvas=300; got {change!r}")
        if key in OWN_FLAGS:
            raise ValueError(f"{key} has a flag of its own: {OWN_FLAGS[key]} {text}")
        parsed[key] = _parse(key, text, types.get(key))
    return parsed


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
