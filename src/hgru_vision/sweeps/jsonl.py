"""Files of one JSON object a line, append-only, for any number of writers.

A line is written whole, under a lock, and is on the disk when `append_line` returns; whatever a
crash leaves of one is neither read nor kept.
"""

import errno
import fcntl
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from hgru_vision.training.files import flush_names

__all__ = ["LedgerWarning", "append_line", "read_lines", "read_rows", "rounded"]

T = TypeVar("T")

DIGITS = 6  # after the point, of accuracies and all other measured numbers
_TAIL = 1 << 16  # bytes read at a time in search of the last line's start
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


class LedgerWarning(UserWarning):
    """A ledger holds a half-written row or a run twice; it was read without them."""


def append_line(
    path: str | os.PathLike[str],
    value: dict[str, Any],
    *,
    unless: Callable[[], bool] = lambda: False,
) -> None:
    """Add an object to a file, making it if need be; the line is on the disk on return.

    Any number of processes may append at once. What a crash left of a last line is removed first.
    Nothing is added if `unless` says so, which is asked while no other process can append.
    """
    path = Path(path)
    line = json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        _lock(descriptor)
        if unless():
            return
        end = _mend(descriptor)
        try:
            written = os.write(descriptor, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, f"{path} took {written} bytes of a row's {len(line)}")
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)  # and with it goes the lock
    if end == 0:
        flush_names(path.parent)


def read_lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each line with its place, file:line; a half-written last one is passed over."""
    lines = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        place = f"{file}:{number}"
        if number == len(lines) and not _whole(line):
            if line:
                warnings.warn(
                    f"{place}: half-written row passed over; the next append removes it",
                    LedgerWarning,
                    stacklevel=3,
                )
            return
        yield place, line


def read_rows(file: Path, make: Callable[[Any], T], name: str) -> Iterator[tuple[str, T]]:
    """Yield what `make` makes of each line, with its place; refuse a line that is no `name`."""
    for place, line in read_lines(file):
        if not line.strip():
            raise ValueError(f"{place} is not {name}: the line is empty; remove it")
        try:
            row = make(json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{place} is not {name}: {error}") from None
        yield place, row


def rounded(value: Any) -> Any:
    """Round all numbers of a JSON value to six digits after the point.

    >>> rounded({"accuracy": [2 / 3]})
    {'accuracy': [0.666667]}
    """
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return value


def _whole(tail: bytes) -> bool:
    """Tell whether a last line without its end is a row all the same, as editors leave it."""
    try:
        return isinstance(json.loads(tail), dict)
    except ValueError:
        return False


def _mend(descriptor: int) -> int:
    """Remove a half-written last line, or end a whole one; return the length of the file."""
    size = os.fstat(descriptor).st_size
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        start, stop = max(0, start - _TAIL), start
        tail = os.pread(descriptor, stop - start, start) + tail
    tail = tail[tail.rfind(b"\n") + 1 :]
    if not tail:
        return size
    if _whole(tail):
        os.write(descriptor, b"\n")
        return size + 1
    os.ftruncate(descriptor, size - len(tail))
    return size - len(tail)


def _lock(descriptor: int) -> None:
    """Wait until no other process appends."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _NO_LOCKS:  # some network file systems
            raise
