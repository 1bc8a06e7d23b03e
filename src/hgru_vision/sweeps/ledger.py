"""The ledger: one row a run, one JSON object a line (see `jsonl`).

Figures, tables and reports read ledgers and nothing else.
"""

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from hgru_vision.sweeps.jsonl import LedgerWarning, append_line, read_rows, rounded
from hgru_vision.training.config import RunConfig
from hgru_vision.training.result import Result

__all__ = [
    "SCHEMA",
    "LedgerRow",
    "LedgerWarning",
    "append",
    "check_portable",
    "executed_otherwise",
    "now",
    "read_ledger",
]

SCHEMA = 1
_KEYS = ("schema", "hash", "config", "result", "written")
_EXECUTION = ("compile", "channels_last", "cuda_graph")  # change nothing but the order of sums


def now() -> str:
    """Tell the time in ISO 8601, universal."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """A run and what came of it.

    Parameters
    ----------
    config
        The run, complete but for the folder of a network of a user's own.
    result
        What came of it. Floats are rounded to six digits after the point.
    written
        When, in ISO 8601 and universal time; now if not given.
    """

    config: RunConfig
    result: Result
    written: str = field(default_factory=now)

    def __post_init__(self) -> None:
        check_portable(self.config)
        if self.config.model_folder is not None:  # which means nothing on another machine
            object.__setattr__(self, "config", replace(self.config, model_folder=None))
        result = Result.from_json(rounded(self.result.to_json()))
        object.__setattr__(self, "result", result)

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
            raise TypeError(f"written must be a time such as {now()}; got {value['written']!r}")
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
        If images, or the weights that it begins from, come from an absolute path.
    """
    paths = [source.path for stage in config.stages for source in stage.sources]
    for path in (*paths, config.start):
        if path is not None and Path(path).is_absolute():
            raise ValueError(
                f"path {path} means nothing on another machine, and a ledger or a card is to be "
                "shared; give it relative to the folder from which you start"
            )


def append(path: str | os.PathLike[str], row: LedgerRow, *, once: bool = False) -> None:
    """Add a row to a ledger, making it if need be; the row is on the disk on return.

    Any number of processes may append at once. What a crash left of a last row is removed first.

    Parameters
    ----------
    path
        The ledger, a ``.jsonl`` file.
    row
        What to add.
    once
        Leave the ledger as it is if the run is there already, were it written a moment ago.
    """

    def is_there() -> bool:
        return once and any(each.hash == row.hash for each in read_ledger(path))

    append_line(path, row.to_json(), unless=is_there)


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
        for place, row in read_rows(file, LedgerRow.from_json, "a row of a ledger"):
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


def executed_otherwise(
    wanted: Iterable[RunConfig], rows: Sequence[LedgerRow]
) -> Counter[tuple[str, ...]]:
    """Count rows of runs that are wanted and not there, but for how a step is executed.

    They are other runs, since sums may come out in another order; whoever wants them may have
    forgotten a flag.

    Parameters
    ----------
    wanted
        Runs.
    rows
        Of a ledger.

    Returns
    -------
    Counter
        Of rows, by the changes that lead from the runs wanted to theirs: ``("cuda_graph=true",)``.
    """
    known = {row.hash for row in rows}
    missing = {_plain(config): config for config in wanted if config.hash not in known}
    pairs = ((missing.get(_plain(row.config)), row.config) for row in rows)
    return Counter(
        tuple(
            f"{name}={json.dumps(getattr(there, name))}"
            for name in _EXECUTION
            if getattr(there, name) != getattr(config, name)
        )
        for config, there in pairs
        if config is not None
    )


def _plain(config: RunConfig) -> str:
    """Give the hash of a run as if its steps were executed plainly."""
    return replace(config, compile=False, channels_last=False, cuda_graph=False).hash
