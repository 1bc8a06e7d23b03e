"""Runs that take a second: a small network, a small canvas, few batches."""

import pytest

from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.config import RunConfig, Stage


def tiny_run(**changes) -> RunConfig:
    """Make a run of 12 batches with evaluations after 5 and 10."""
    defaults = {
        "model": "hgru_small",
        "options": {"timesteps": 2},
        "stages": (Stage(sources=(SMALL,), images=96),),
        "batch": 8,
        "learning_rate": 5e-3,
        "clip": 1.0,
        "evaluate_every": 5,
        "evaluation_images": 32,
        "test_images": 40,
        "statistics_batches": 2,
        "checkpoint_every": 4,
    }
    return RunConfig(**(defaults | changes))


@pytest.fixture(scope="session")
def tiny():
    return tiny_run


@pytest.fixture(autouse=True)
def _no_audit(monkeypatch):
    """Spare each run the seconds of its audit; `test_outcome` has one."""
    monkeypatch.setattr("hgru_vision.training.outcome._shortcut", lambda _: None)
