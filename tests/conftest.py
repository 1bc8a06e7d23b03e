"""Shared by all tests."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.sweeps.ledger import LedgerRow
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.result import Point, Result, area_under_curve

ROOT = Path(__file__).parents[1]

# numba's cache looks at the time stamp of the compiled function's own file, not at the files that
# it calls into. A cache of its own for each state of the sources is never stale.
_sources = sorted((ROOT / "src/hgru_vision/stimuli").glob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / f"numba-{_digest}"))


# Workers of pytest-xdist share the cores; threads of torch besides would wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


# Triton's kernels run in its interpreter where there is no GPU. It asks when it is imported, which
# torch may do long before a test does.
if not Path("/dev/nvidia0").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data beside the checkout; tests that need it are skipped without it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the folder of real data, ../shared/data, beside the checkout")
    return folder


@pytest.fixture(scope="session")
def row():
    """Give a function that makes ledger rows."""
    return ledger_row


def ledger_row(
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
    """Make a ledger row that no training made: its accuracies rise in a straight line."""
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
    last = [point.accuracy for point in curve if point.stage == stages - 1]
    pixels = config.get("target") == "segmentation"
    result = Result(
        outcome="finished" if ended else "diverged",
        accuracy=accuracy,
        correct=round(accuracy * 10_000) if ended else 0,
        test_images=10_000 if ended else 0,
        alc=area_under_curve(last) if ended and last else None,
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
        overlap=0.25 if ended and pixels else None,
    )
    run = RunConfig(
        recipe=recipe, model=model, options=options or {}, stages=legs, seed=seed, **config
    )
    return LedgerRow(config=run, result=result, written="2026-01-01T00:00:00+00:00")
