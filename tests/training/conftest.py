"""Runs that take a second: a small network, a small canvas, few batches."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.config import RunConfig, Stage
from hgru_vision.training.loop import train


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


def train_quietly(config, folder, **keywords):
    return train(config, folder, progress=False, device="cpu", **keywords)


@pytest.fixture(scope="session")
def quiet():
    """Give a function that trains on the CPU and shows no progress."""
    return train_quietly


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Train a tiny run without interruption; give its folder, for reading alone, and its result."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hgru_vision.training.outcome._shortcut", lambda _: {"accuracy": 0.9})
        result = train_quietly(tiny_run(), folder)
    return folder, result


def load_weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "weights.safetensors")


@pytest.fixture(scope="session")
def weights():
    """Give a function that reads the trained weights of a folder."""
    return load_weights


def assert_same_run(first: Path, second: Path) -> None:
    """Ask for bit-equal weights and curve (but for the time that it took)."""
    there, here = load_weights(first), load_weights(second)
    assert there.keys() == here.keys()
    assert all(torch.equal(there[key], here[key]) for key in there)
    curves = [(folder / "curve.jsonl").read_text().splitlines() for folder in (first, second)]
    points = [[json.loads(line) | {"seconds": 0} for line in lines] for lines in curves]
    assert points[0] == points[1]


@pytest.fixture(scope="session")
def assert_same():
    return assert_same_run
