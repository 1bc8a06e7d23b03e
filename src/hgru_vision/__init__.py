"""Horizontal circuits for vision, the tasks that test them, and the study of both.

>>> import hgru_vision as hv
>>> layer = hv.HGRU(channels=4, kernel_size=5, timesteps=3)
>>> train = hv.Pathfinder(length=14, count=900_000, seed=0)
>>> model = hv.create_model("hgru", timesteps=8)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hgru_vision.circuits import HGRU
    from hgru_vision.data.archive_folder import ArchiveFolder
    from hgru_vision.data.bsds import BSDS500
    from hgru_vision.data.contours import SyntheticContours
    from hgru_vision.data.datasets import Pathfinder
    from hgru_vision.data.readers import open_dataset
    from hgru_vision.models import create_model, list_models
    from hgru_vision.stimuli import preset
    from hgru_vision.weights import list_weights, load_weights

__version__ = "0.1.0"

# Public names, each imported at its first use: `import hgru_vision` loads neither torch nor numba.
_HOMES = {
    "ArchiveFolder": "hgru_vision.data.archive_folder",
    "BSDS500": "hgru_vision.data.bsds",
    "HGRU": "hgru_vision.circuits",
    "Pathfinder": "hgru_vision.data.datasets",
    "SyntheticContours": "hgru_vision.data.contours",
    "create_model": "hgru_vision.models",
    "list_models": "hgru_vision.models",
    "list_weights": "hgru_vision.weights",
    "load_weights": "hgru_vision.weights",
    "open_dataset": "hgru_vision.data.readers",
    "preset": "hgru_vision.stimuli",
}

__all__ = [
    "BSDS500",
    "HGRU",
    "ArchiveFolder",
    "Pathfinder",
    "SyntheticContours",
    "create_model",
    "list_models",
    "list_weights",
    "load_weights",
    "open_dataset",
    "preset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
