"""Ledgers for the figures, of rows that no training made."""

import numpy as np
import pytest

from hgru_vision.analysis.study import Study, studies
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.papers.linsley2018 import PATH_LENGTHS


@pytest.fixture(scope="session")
def partial(row) -> Study:
    """Three networks: one complete, one without its longest paths, one with diverged runs."""
    rows = [row("hgru", length, seed, 0.9 + seed / 100) for length in (6, 9, 14) for seed in (0, 1)]
    rows += [row("unet", 6, 0, 0.8), row("unet", 9, 0, 0.7)]
    rows += [row("hgru_bn", 14, 0, None), row("hgru_bn", 14, 1, None)]
    (study,) = studies(rows)
    return study


@pytest.fixture(scope="session")
def full(row) -> Study:
    """Every network on every length: high accuracies that fall with length, some runs stuck."""
    rng = np.random.default_rng(0)
    rows = []
    for place, model in enumerate(CATALOGUE):
        top = 0.99 - 0.3 * (place % 7) / 7
        for number, length in enumerate(PATH_LENGTHS):
            for seed in range(2):
                accuracy = np.clip(top - 0.12 * number * rng.random() + 0.01 * rng.normal(), 0.5, 1)
                stuck, lost = rng.random() < 0.1 * number, rng.random() < 0.03
                value = None if lost else 0.5 if stuck else round(float(accuracy), 4)
                rows.append(row(model, length, seed, value, shortcut=0.97 - 0.06 * number))
    (study,) = studies(rows)
    return study
