"""How trained networks do on other images than those of their training, and for other times.

What they are measured on, `conditions` lists.

Each measurement is a row of a JSONL file, appended as a ledger's rows are; what is there already is
not measured again.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import nn

from hgru_vision.analysis.conditions import Condition
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.intervals import wilson_interval
from hgru_vision.stimuli.audit import audit
from hgru_vision.stimuli.scenes import cues
from hgru_vision.sweeps import jsonl
from hgru_vision.sweeps.jsonl import LedgerWarning, append_line, rounded
from hgru_vision.sweeps.ledger import now
from hgru_vision.training.config import Source
from hgru_vision.training.data import pathfinder_config
from hgru_vision.training.environment import commit, device_name, versions
from hgru_vision.training.evaluate import NetworkFailsError, evaluate
from hgru_vision.training.fields import from_json, to_json

__all__ = ["CONFIDENCE", "PROBED", "Row", "fingerprint", "latest", "measure", "read_rows"]

SCHEMA = 1
CONFIDENCE = 0.9
"""The probe is confidently wrong where it gives the false label this probability or more."""
PROBED = 4
"""Images that the probe looks at, for one that others look at: it is seldom confidently wrong."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measurement.

    Parameters
    ----------
    network, weights
        Name, and fingerprint of the numbers.
    trained
        The task of its training.
    condition
        What it was measured on.
    images, seed
        Images drawn from the test split, and their seed.
    n, correct
        Images that the network decided about, and right decisions. All that were drawn, but on the
        axis "probe" those on which the probe is confidently wrong.
    device, versions, commit, written
        Where, with what, and when.
    """

    network: str
    weights: str
    trained: Source
    condition: Condition
    images: int
    seed: int
    n: int
    correct: int
    device: str
    versions: dict[str, str]
    commit: str | None
    written: str
    schema: int = SCHEMA

    @property
    def accuracy(self) -> float | None:
        """Share of right decisions; None without any image."""
        return self.correct / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the accuracy."""
        return wilson_interval(self.correct, self.n)

    @property
    def key(self) -> str:
        """What tells measurements apart; of two with the same, the later one counts."""
        return _key(self.weights, self.condition, self.images, self.seed)

    def to_json(self) -> dict[str, Any]:
        """Give the row as its line holds it, with the accuracy and its interval for readers."""
        low, high = self.interval
        return rounded({**to_json(self), "accuracy": self.accuracy, "low": low, "high": high})

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Make a row of what `to_json` gave."""
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            raise ValueError(f"schema is not {SCHEMA}, which this version reads")
        derived = ("accuracy", "low", "high")
        return from_json(cls, {key: value[key] for key in value if key not in derived})


def latest(rows: Iterable[Row]) -> list[Row]:
    """Keep one row a network and condition: of the weights measured last, that of most images."""
    rows = sorted(rows, key=lambda row: row.written)
    weights = {row.network: row.weights for row in rows}
    kept: dict[tuple[str, str], Row] = {}
    for row in rows:
        place = row.network, json.dumps(to_json(row.condition), sort_keys=True)
        if row.weights == weights[row.network] and (place not in kept or row.n >= kept[place].n):
            kept[place] = row
    return list(kept.values())


def measure(
    network: nn.Module,
    wanted: Iterable[Condition],
    path: Path,
    *,
    name: str,
    trained: Source,
    images: int,
    seed: int = 0,
    batch: int = 256,
    report: Callable[[Condition, Row | ValueError], None] = lambda condition, found: None,
) -> list[Row]:
    """Measure what a file does not have yet, and append a row for each.

    Parameters
    ----------
    network
        Trained, on its device.
    wanted
        Conditions.
    path
        A JSONL file; made if need be.
    name, trained
        Of the network, for the rows.
    images, seed
        Test images of each condition, and their seed; for "probe" the probe looks at `PROBED`
        times as many.
    batch
        Images at a time.
    report
        Called with each condition and what came of it: a row, or why there is none.

    Returns
    -------
    list of Row
        Those that were added.

    Raises
    ------
    ValueError
        If the file has rows of other weights under that name: the figure would show one of them.
    """
    digest = fingerprint(network)
    rows = read_rows(path) if path.exists() else []
    if any(row.network == name and row.weights != digest for row in rows):
        raise ValueError(
            f"{path} is of other weights, trained anew or of another run of that name; give this "
            "network a file of its own, --out NAME.jsonl, or remove that one"
        )
    known = {row.key for row in rows}
    added = []
    for condition in wanted:
        probed = condition.axis == "probe"
        count = PROBED * images if probed else images
        if _key(digest, condition, count, seed) in known:
            continue
        try:
            data = Pathfinder(
                config=pathfinder_config(condition.source), count=count, seed=seed, split="test"
            )
            chosen = _confidently_wrong(data) if probed else np.arange(count)
        except ValueError as error:  # does not fit the canvas
            report(condition, error)
            continue
        n, correct = len(chosen), 0
        if n:
            try:
                found = evaluate(
                    network, data, batch=batch, timesteps=condition.timesteps, indices=chosen
                )
            except NetworkFailsError as error:  # it may take images of one size alone
                report(condition, error)
                continue
            correct = found.correct
        row = Row(
            network=name,
            weights=digest,
            trained=trained,
            condition=condition,
            images=count,
            seed=seed,
            n=n,
            correct=correct,
            device=device_name(next(network.parameters()).device),
            versions=versions(),
            commit=commit(),
            written=now(),
        )
        append_line(path, row.to_json())
        added.append(row)
        report(condition, row)
    return added


def read_rows(path: Path) -> list[Row]:
    """Read a file of rows, or all files (``*.jsonl``) of a folder; the later of two counts."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    latest: dict[str, Row] = {}
    for file in files:
        for place, row in jsonl.read_rows(file, Row.from_json, "a row of `hgru generalise`"):
            if row.key in latest:
                warnings.warn(
                    f"{place}: measured before; the later row counts", LedgerWarning, stacklevel=2
                )
            latest[row.key] = row
    return list(latest.values())


def fingerprint(network: nn.Module) -> str:
    """Give sixteen hexadecimal digits over the numbers of a network, wherever it was loaded from.

    >>> first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> fingerprint(first) == fingerprint(first), fingerprint(first) == fingerprint(second)
    (True, False)
    """
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _confidently_wrong(data: Pathfinder) -> np.ndarray:
    """Find the images of whose false label a probe, fitted to other images, is sure.

    They are the group "wrong" of `stratify`.
    """
    items = np.arange(len(data))
    report = audit(cues(data.config, data.seed, data.numbers(items)), seed=data.seed)
    false = np.where(report.label == 1, 1 - report.probability, report.probability)
    return items[false >= CONFIDENCE]


def _key(weights: str, condition: Condition, images: int, seed: int) -> str:
    return json.dumps([weights, to_json(condition), images, seed], sort_keys=True)
