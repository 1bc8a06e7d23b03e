"""Ledger rows that no training made: accuracies drawn from a formula, for tests of figures."""

import numpy as np

from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.papers.linsley2018 import PATH_LENGTHS
from hgru_vision.sweeps.ledger import LedgerRow
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.result import Point, Result


def row(
    model: str = "hgru",
    length: int = 14,
    seed: int = 0,
    accuracy: float | None = 0.9,
    *,
    recipe: str = "synthetic",
    preset: str = "paper",
    changes: dict | None = None,
    path: str | None = None,
    options: dict | None = None,
    stages: int = 1,
    points: int = 20,
    shortcut: float | None = 0.8,
    **config,
) -> LedgerRow:
    source = Source(preset=preset, length=length, changes=changes or {}, path=path)
    legs = tuple(Stage(sources=(source,), images=640_000 // stages) for _ in range(stages))
    rise = np.linspace(0.5, accuracy or 0.5, points) if points else np.empty(0)
    curve = tuple(
        Point(
            stage=number * stages // points,
            batch=1000 * (number + 1),
            images=32_000 * (number + 1),
            loss=0.693,
            accuracy=float(value),
            seconds=10.0 * (number + 1),
        )
        for number, value in enumerate(rise)
    )
    ended = accuracy is not None
    result = Result(
        outcome="finished" if ended else "diverged",
        accuracy=accuracy,
        correct=round(accuracy * 10_000) if ended else 0,
        test_images=10_000 if ended else 0,
        alc=float(rise.mean()) if ended and stages == 1 and points else None,
        stuck=ended and accuracy < 0.52,
        curve=curve,
        images=640_000,
        seconds=1234.5,
        images_per_second=518.4,
        waiting=0.01,
        peak_memory=5 << 30,
        parameters=CATALOGUE[model].parameters if model in CATALOGUE else 1,
        device="synthetic device",
        versions={"python": "3.12.0", "torch": "2.11.0", "numpy": "2.0.0", "hgru_vision": "0.1.0"},
        commit="0" * 40,
        shortcut=None if shortcut is None else {"accuracy": shortcut, "probe": "everything"},
    )
    run = RunConfig(
        recipe=recipe, model=model, options=options or {}, stages=legs, seed=seed, **config
    )
    return LedgerRow(config=run, result=result, written="2026-01-01T00:00:00+00:00")


def full_ledger(models=None, lengths=PATH_LENGTHS, runs: int = 5, **keywords) -> list[LedgerRow]:
    """Every network on every length: high accuracies that fall with length, some runs stuck."""
    rng = np.random.default_rng(0)
    rows = []
    for place, model in enumerate(models or CATALOGUE):
        top = 0.99 - 0.3 * (place % 7) / 7
        for number, length in enumerate(lengths):
            for seed in range(runs):
                accuracy = np.clip(top - 0.12 * number * rng.random() + 0.01 * rng.normal(), 0.5, 1)
                stuck, lost = rng.random() < 0.1 * number, rng.random() < 0.03
                value = None if lost else 0.5 if stuck else round(float(accuracy), 4)
                shortcut = 0.97 - 0.06 * number
                rows.append(row(model, length, seed, value, shortcut=shortcut, **keywords))
    return rows
