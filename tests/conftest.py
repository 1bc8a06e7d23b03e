"""Shared by all tests."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image
from scipy.io import savemat

from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.sweeps.ledger import LedgerRow
from hgru_vision.training.config import DatasetName, RunConfig, Source, Stage
from hgru_vision.training.result import Point, Result, area_under_curve

ROOT = Path(__file__).parents[1]

# numba's cache looks at the time stamp of the compiled function's own file, not at the files that
# it calls into. A cache of its own for each state of the sources is never stale.
_sources = sorted((ROOT / "src/hgru_vision/stimuli").glob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / f"numba-{_digest}"))


# A test that was slow once, on a busy machine, is no worse for it.
settings.register_profile("hgru-vision", deadline=None)
settings.load_profile("hgru-vision")

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


@pytest.fixture(scope="session")
def result():
    """Give a function that makes the result of a short run."""
    return short_result


@pytest.fixture(scope="session")
def measured():
    """Give a function that makes rows of `hgru generalise` that nobody measured."""
    return generalisation_row


@pytest.fixture(scope="session")
def decisive():
    """Give a function that lets an untrained network tell images apart."""
    return with_random_classifier


NETS = """
import torch
from torch import nn

class Leaky(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.drive = nn.Conv2d(1, channels, 5, padding=2)
        self.spread = nn.Conv2d(channels, channels, 3, padding=1)
        self.decide = nn.Linear(channels, 2)

    def forward(self, images):
        drive = self.drive(images)
        state = torch.tanh(drive + self.spread(drive))
        return self.decide(state.amax(dim=(2, 3)))

def leaky(channels=4):
    return Leaky(channels)

def pixels():
    return nn.Conv2d(1, 2, 5, padding=2)
"""


@pytest.fixture
def nets(tmp_path, monkeypatch) -> Path:
    """Go to a folder with a file of networks of one's own, `leaky` and `pixels`; give the file."""
    monkeypatch.chdir(tmp_path)
    path = Path("nets.py")
    path.write_text(NETS)
    return path


def with_random_classifier(network: Any, images: Any = None) -> Any:
    """Give the classifier of the paper's readout random weights, always the same.

    It starts at zero, where logits say nothing of the image and stop every gradient. Its bias stays
    zero, and it then says the same of most images, unless `images` are given, (B, 1, H, W): of
    these it calls half 0 and half 1.
    """
    import torch

    from hgru_vision.models.stages import Readout, xavier

    for module in network.modules():
        if isinstance(module, Readout):
            xavier(module.decide, torch.Generator().manual_seed(0))
    if images is not None:
        training = network.training
        with torch.no_grad():
            zero, one = network.eval()(images).unbind(dim=1)
            network.readout.decide.bias[0] += (one - zero).quantile(0.5)
        network.train(training)
    return network


def generalisation_row(
    axis: str, value: int | str, correct: int = 90, n: int = 100, network: str = "hgru.x"
) -> Any:
    """Make a row of a network that was trained on paths of 14 paddles."""
    from hgru_vision.analysis.conditions import Condition  # which imports numba and torch
    from hgru_vision.analysis.generalisation import Row

    task = Source(length=14)
    length = value if axis == "length" else 14
    preset = value if axis in ("preset", "probe") else "paper"
    condition = Condition(
        axis=axis,
        value=value,
        source=Source(preset=preset, length=length),
        timesteps=value if axis == "steps" else None,
    )
    return Row(
        network=network,
        weights=hashlib.sha256(network.encode()).hexdigest()[:16],
        trained=task,
        condition=condition,
        images=100,
        seed=0,
        n=n,
        correct=correct,
        device="synthetic device",
        versions={},
        commit=None,
        written="2026-01-01T00:00:00+00:00",
    )


def short_result(**changes: Any) -> Result:
    """Make the result of a short run that nobody ran."""
    settings: dict[str, Any] = {
        "outcome": "finished",
        "accuracy": 0.75,
        "correct": 12,
        "test_images": 16,
        "alc": 0.6,
        "stuck": False,
        "curve": (),
        "images": 64,
        "seconds": 1.0,
        "images_per_second": 64.0,
        "waiting": 0.0,
        "peak_memory": 1,
        "parameters": 1,
        "device": "cpu",
        "versions": {},
    }
    return Result(**settings | changes)


def ledger_row(
    model: str = "hgru",
    length: int = 14,
    seed: int = 0,
    accuracy: float | None = 0.9,
    *,
    recipe: str = "synthetic",
    dataset: DatasetName = "pathfinder",
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
    source = Source(dataset=dataset, preset=preset, length=length, changes=changes or {}, path=path)
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


def write_bsds(
    root: Path,
    layout: str = "compact",
    split: str = "train",
    shapes: tuple[tuple[int, int], ...] = ((24, 36), (36, 24), (24, 36)),
) -> Path:
    """Write a small data set as BSDS500's: pictures 100, 101, ... with 2, 3, ... annotators.

    Left and right halves differ; annotator k marks the column k pixels beside the middle.
    """
    for folder in (root / "images" / split, root / "groundTruth" / split):
        folder.mkdir(parents=True)
    names, maps = [str(100 + number) for number in range(len(shapes))], []
    for number, (name, (height, width)) in enumerate(zip(names, shapes, strict=True)):
        image = np.zeros((height, width, 3), np.uint8)
        image[:, width // 2 :] = 200
        Image.fromarray(image).save(root / "images" / split / f"{name}.jpg", quality=95)
        people = np.zeros((number % 3 + 2, height, width), np.uint8)
        for person, each in enumerate(people):
            each[:, width // 2 + person] = 1
        maps.append(people)
        cells = np.empty((1, len(people)), object)
        for person, each in enumerate(people):
            cells[0, person] = {"Segmentation": each.astype(np.uint16), "Boundaries": each}
        if layout == "matlab":
            savemat(root / "groundTruth" / split / f"{name}.mat", {"groundTruth": cells})
    if layout == "compact":
        (root / "groundTruth" / split).rmdir()
        counts = np.array([len(people) for people in maps])
        packed = [np.packbits(people.reshape(len(people), -1), axis=1) for people in maps]
        np.savez(
            root / f"gt_{split}.npz",
            ids=np.array(names),
            shapes=np.array(shapes),
            n_annot=counts,
            start=np.cumsum(counts) - counts,
            packed=np.concatenate(packed),
        )
    return root


@pytest.fixture(name="write_bsds", scope="session")
def write_bsds_function() -> Any:
    return write_bsds


@pytest.fixture(scope="session")
def natural(tmp_path_factory) -> Path:
    """Give the folder of a data set as BSDS500: three pictures of 40x48 pixels in each split."""
    root = tmp_path_factory.mktemp("natural")
    for split in ("train", "val", "test"):
        write_bsds(root, split=split, shapes=((40, 48), (48, 40), (40, 48)))
    return root
