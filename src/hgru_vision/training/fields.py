"""Frozen dataclasses to JSON and back, strictly: a wrong field is named by its place."""

import math
import types
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = [
    "check_types",
    "differences",
    "from_json",
    "require",
    "to_json",
    "without_defaults",
]

T = TypeVar("T")
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def to_json(value: Any) -> Any:
    """Give a value as JSON holds it: dataclasses become dicts and tuples lists.

    Examples
    --------
    >>> to_json({"a": (1, 2)})
    {'a': [1, 2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    return value


def from_json(kind: type[T], value: Any, where: str = "") -> T:
    """Make a dataclass (or what its fields are made of) from JSON.

    Parameters
    ----------
    kind
        The type wanted.
    value
        What JSON held.
    where
        The place of the value, for the error's text.

    Raises
    ------
    TypeError
        If a key is unknown or missing, or a value has another type; the text names the place.

    Examples
    --------
    >>> from hgru_vision.training.config import Source
    >>> from_json(Source, {"preset": "paper", "length": 6}).length
    6
    >>> from_json(Source, {"lenght": 6}, "stages[0].sources[0]")
    Traceback (most recent call last):
    TypeError: stages[0].sources[0].lenght is not a field of Source; did you mean 'length'?
    """
    made: Any = _decode(kind, value, where)
    return made


def differences(there: Any, here: Any, where: str = "") -> list[str]:
    """Tell where two JSON values differ, one text a place.

    Examples
    --------
    >>> differences({"stages": [{"length": 6}]}, {"stages": [{"length": 9}]})
    ['stages[0].length: 6 there, 9 here']
    """
    if isinstance(there, dict) and isinstance(here, dict):
        keys = [*there, *(key for key in here if key not in there)]
        return [
            text
            for key in keys
            for text in differences(there.get(key), here.get(key), _join(where, key))
        ]
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = enumerate(zip(there, here, strict=True))
        return [text for i, (old, new) in pairs for text in differences(old, new, f"{where}[{i}]")]
    return [] if there == here else [f"{where}: {there!r} there, {here!r} here"]


def without_defaults(value: Any) -> Any:
    """Give a dataclass as JSON, without the fields that are at their defaults."""
    if isinstance(value, tuple):
        return [without_defaults(each) for each in value]
    if not is_dataclass(value):
        return value
    kept = {}
    for each in fields(value):
        here = getattr(value, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if here != default:
            kept[each.name] = without_defaults(here)
    return kept


def check_types(config: Any) -> None:
    """Refuse a field of another type, and make lists tuples and whole numbers floats."""
    for name, kind in get_type_hints(type(config)).items():
        value: Any = from_json(kind, getattr(config, name), name)
        object.__setattr__(config, name, value)


def require(config: Any, name: str, holds: bool, expected: str) -> None:
    """Refuse a field whose value is not what is expected of it."""
    if not holds:
        raise ValueError(f"{name} must be {expected}; got {getattr(config, name)!r}")


def _decode(kind: Any, value: Any, where: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        _check_plain(value, where)
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in parts:
            return None
        return _decode(next(part for part in parts if part is not type(None)), value, where)
    if origin is Literal:
        if value not in parts or isinstance(value, bool):
            raise TypeError(f"{where} must be one of {', '.join(parts)}; got {value!r}")
        return value
    if is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise TypeError(f"{where} must be a list; got {value!r}")
        return origin(_decode(parts[0], each, f"{where}[{i}]") for i, each in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise TypeError(f"{where} must be an object with names for keys; got {value!r}")
        return {key: _decode(parts[1], each, _join(where, key)) for key, each in value.items()}
    return _decode_plain(kind, value, where)


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    if isinstance(value, kind):
        return value
    if not isinstance(value, dict):
        raise TypeError(f"{where or kind.__name__} must be an object; got {value!r}")
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    for key in value:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
            raise TypeError(f"{_join(where, key)} is not a field of {kind.__name__}; {hint}")
    for name, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and name not in value:
            raise TypeError(f"{_join(where, name)} is missing; {kind.__name__} needs it")
    return kind(
        **{key: _decode(hints[key], each, _join(where, key)) for key, each in value.items()}
    )


def _decode_plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not fits or (kind is float and not math.isfinite(value)):
        raise TypeError(f"{where} must be {_WORDS[kind]}; got {value!r}")
    return value


def _check_plain(value: Any, where: str) -> None:
    """Refuse what JSON cannot hold, such as NumPy's numbers: nobody could hash or keep it."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} must be an object with names for keys; got {value!r}")
            _check_plain(each, _join(where, key))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            _check_plain(each, f"{where}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"{where} must be a finite number; got {value!r}")
    elif not (value is None or isinstance(value, bool | int | float | str)):
        raise TypeError(
            f"{where} must be what JSON can hold, such as Python's own numbers and texts; got "
            f"{value!r}"
        )


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
