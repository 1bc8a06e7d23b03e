"""Functions by what a command line calls them: a name that is known, or FILE.py:FUNCTION."""

import runpy
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

__all__ = [
    "failure",
    "find_file",
    "find_function",
    "is_reference",
    "place_of",
    "told_with_its_place",
]

F = TypeVar("F", bound=Callable[..., Any])

_MODULE = "<user's file>"


def find_function(reference: str, kind: str, known: Mapping[str, F]) -> F:
    """Find a function by its name, or in a user's file.

    Parameters
    ----------
    reference
        A key of `known`, or FILE.py:FUNCTION.
    kind
        What the function is, for the text of errors: "recipe", "grid", ...
    known
        Functions that have a name; none, if users must bring their own.

    Raises
    ------
    ValueError, FileNotFoundError
        If there is no such function; the text tells what there is.
    ImportError
        If the file cannot be run; the text tells where and why.

    Examples
    --------
    >>> find_function("longest", "rule", {"longest": max})([1, 2])
    2
    >>> find_function("longst", "rule", {"longest": max})
    Traceback (most recent call last):
    ValueError: no rule 'longst'; give longest or FILE.py:FUNCTION; did you mean 'longest'?
    """
    if reference in known:
        return known[reference]
    if not is_reference(reference):
        near = get_close_matches(reference, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        names = f"{', '.join(known)} or " if known else ""
        raise ValueError(f"no {kind} {reference!r}; give {names}FILE.py:FUNCTION{hint}")
    path, name = str(find_file(reference, kind)), reference.rpartition(":")[2]
    try:
        defined = runpy.run_path(path, run_name=_MODULE)
    except Exception as error:
        place = place_of(error, path) or path  # a syntax error names its line itself
        raise ImportError(f"{place} cannot be run: {type(error).__name__}: {error}") from error
    if not callable(defined.get(name)):
        own = [key for key, value in defined.items() if _is_own(value)]
        has = f"it has {', '.join(own)}" if own else "it has none"
        raise ValueError(f"{path} defines no function {name!r}; {has}")
    found: F = defined[name]
    return found


def is_reference(text: str) -> bool:
    """Tell FILE.py:FUNCTION from a plain name.

    Examples
    --------
    >>> is_reference("nets.py:leaky"), is_reference("hgru")
    (True, False)
    """
    return text.rpartition(":")[0].endswith(".py")


def find_file(reference: str, kind: str) -> Path:
    """Give the file of FILE.py:FUNCTION, which must be there; `kind` is for the text of errors."""
    path = Path(reference.rpartition(":")[0])
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} (from the {kind} {reference})")
    return path


def place_of(error: Exception, path: str) -> str | None:
    """Say where in a user's file an error arose, as FILE:LINE; None if it did not."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__)
             if each.filename == path]  # fmt: skip
    return f"{path}:{lines[-1]}" if lines else None


def failure(reference: str, error: Exception) -> str:
    """Say in one line what went wrong in a user's file, and where.

    Folders are left out: which of the copies of a file was run is not the point.
    """
    place = place_of(error, str(Path(reference.rpartition(":")[0])))
    at = "" if place is None else f" at {Path(place).name}"
    first = (str(error).strip() or "no reason given").splitlines()[0]
    return f"{Path(reference).name} fails{at}: {type(error).__name__}: {first}"


@contextmanager
def told_with_its_place(reference: object, kind: str) -> Iterator[None]:
    """Let an error in a user's file say so in one line, and where; others are as they were."""
    try:
        yield
    except Exception as error:
        if not (isinstance(reference, str) and is_reference(reference)):
            raise
        raise ValueError(f"the {kind} {failure(reference, error)}") from error


def _is_own(value: Any) -> bool:
    """Tell a function that a file defines from one that it imports."""
    return callable(value) and getattr(value, "__module__", None) == _MODULE
