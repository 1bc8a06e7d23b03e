"""The ledger: one row a run, one JSON object a line, append-only.

Figures, tables and reports read ledgers and nothing else. A row is written whole, under a lock, and
is on the disk when `append` returns; whatever a crash leaves of a row is neither read nor kept.
"""

import errno
import fcntl
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import flush_names
from hgru_vision.training.result import Result

__all__ = ["SCHEMA", "LedgerRow", "LedgerWarning", "append", "check_portable", "read_ledger"]

SCHEMA = 1
DIGITS = 6  # after the point, of accuracies and all other measured numbers
_KEYS = ("schema", "hash", "config", "result", "written")
_TAIL = 1 << 16  # bytes read at a time in search of the last line's start
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


class LedgerWarning(UserWarning):
    """A ledger holds a half-written row or a run twice; it was read without them."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """A run and what came of it.

    Parameters
    ----------
    config
        The run, complete.
    result
        What came of it. Floats are rounded to six digits after the point.
    written
        When, in ISO 8601 and universal time; now if not given.
    """

    config: RunConfig
    result: Result
    written: str = field(default_factory=_now)

    def __post_init__(self) -> None:
        check_portable(self.config)
        rounded = Result.from_json(_rounded(self.result.to_json()))
        object.__setattr__(self, "result", rounded)

    @property
    def hash(self) -> str:
        """The run's own: rows of the same run have the same."""
        return self.config.hash

    def to_json(self) -> dict[str, Any]:
        """Give the row as its line holds it."""
        return {
            "schema": SCHEMA,
            "hash": self.hash,
            "config": self.config.to_json(),
            "result": self.result.to_json(),
            "written": self.written,
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Make a row of what `to_json` gave.

        Raises
        ------
        ValueError, TypeError
            If the schema is another, or a field is missing, unknown or wrong.
        """
        if not isinstance(value, dict):
            raise TypeError(f"a row must be an object; got {value!r}")
        if value.get("schema") != SCHEMA:
            raise ValueError(f"schema is {value.get('schema')!r}; this version reads {SCHEMA}")
        if different := set(value) ^ set(_KEYS):
            raise TypeError(f"a row has {', '.join(_KEYS)}; {sorted(different)[0]!r} differs")
        if not isinstance(value["written"], str):
            raise TypeError(f"written must be a time such as {_now()}; got {value['written']!r}")
        row = cls(
            config=RunConfig.from_json(value["config"]),
            result=Result.from_json(value["result"]),
            written=value["written"],
        )
        if row.hash != value["hash"]:
            raise ValueError(
                f"hash is {value['hash']!r}, but that of its config is {row.hash!r}: "
                "the row was changed by hand"
            )
        return row


def check_portable(config: RunConfig) -> None:
    """Refuse a configuration that means nothing on another machine.

    Raises
    ------
    ValueError
        If images come from an absolute path.
    """
    for stage in config.stages:
        for source in stage.sources:
            if source.path is not None and Path(source.path).is_absolute():
                raise ValueError(
                    f"path {source.path} means nothing on another machine, and a ledger is to be "
                    "shared; give it relative to the folder from which you start the sweep"
                )


def append(path: str | os.PathLike[str], row: LedgerRow) -> None:
    """Add a row to a ledger, making it if need be; the row is on the disk on return.

    Any number of processes may append at once. What a crash left of a last row is removed first.

    Parameters
    ----------
    path
        The ledger, a ``.jsonl`` file.
    row
        What to add. Whether the run is there already is not looked at.
    """
    path = Path(path)
    line = json.dumps(row.to_json(), separators=(",", ":"), allow_nan=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        _lock(descriptor)
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


def read_ledger(path: str | os.PathLike[str]) -> list[LedgerRow]:
    """Read a ledger, or all ledgers (``*.jsonl``) of a folder.

    Of a run that is there several times the row written last counts, and a half-written last line
    is passed over; a `LedgerWarning` says so.

    Parameters
    ----------
    path
        A file or a folder.

    Returns
    -------
    list of LedgerRow
        One a run, in the order of the files' names and their lines.

    Raises
    ------
    FileNotFoundError
        If nothing is there.
    ValueError
        If a line is not a row; the text names file and line.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no ledger {path}; `hgru sweep` writes one")
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    latest: dict[str, LedgerRow] = {}
    for file in files:
        for place, row in _rows(file):
            known = latest.get(row.hash)
            if known is not None:
                warnings.warn(
                    f"{place}: run {row.hash} is there before; the row written last counts",
                    LedgerWarning,
                    stacklevel=2,
                )
            if known is None or row.written >= known.written:
                latest[row.hash] = row
    return list(latest.values())


def _rows(file: Path) -> Iterator[tuple[str, LedgerRow]]:
    """Yield each row with its place, file:line."""
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
        try:
            yield place, LedgerRow.from_json(json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{place} is not a row of a ledger: {error}") from None


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


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value
