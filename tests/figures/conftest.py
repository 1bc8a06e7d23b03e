"""Synthetic ledgers for the figures; see synthetic.py."""

import runpy
from pathlib import Path

import pytest

from hgru_vision.analysis.study import Study, studies

_SYNTHETIC = runpy.run_path(str(Path(__file__).with_name("synthetic.py")))


@pytest.fixture(scope="session")
def row():
    return _SYNTHETIC["row"]


@pytest.fixture(scope="session")
def partial(row) -> Study:
    """Three networks: one complete, one without its longest paths, one with diverged runs."""
    rows = [row("hgru", length, seed, 0.9 + seed / 100) for length in (6, 9, 14) for seed in (0, 1)]
    rows += [row("unet", 6, 0, 0.8), row("unet", 9, 0, 0.7)]
    rows += [row("hgru_bn", 14, 0, None), row("hgru_bn", 14, 1, None)]
    (study,) = studies(rows)
    return study


@pytest.fixture(scope="session")
def full() -> Study:
    """Every network of the catalogue on the three lengths."""
    (study,) = studies(_SYNTHETIC["full_ledger"](runs=2))
    return study
