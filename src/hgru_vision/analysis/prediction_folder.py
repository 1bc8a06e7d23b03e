"""Predicted boundary maps in files, one a picture, named by its id."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from hgru_vision.analysis.boundaries import Annotated, check_map
from hgru_vision.stimuli._types import Array, Floats

__all__ = ["PredictionFolder"]

ENDINGS = (".png", ".npy")
LARGEST = {"1": 1, "L": 255, "I;16": 65_535}  # white in PIL's grey modes


class PredictionFolder(Mapping[str, Floats]):
    """Boundary maps of a folder's ``ID.png`` (grey, 8 or 16 bits) or ``ID.npy`` (floats).

    Every file is read once at the start, so that a bad one is found before work begins.

    Parameters
    ----------
    folder
        Of the maps; other files in it do not matter.
    data
        The pictures that need a map.
    """

    def __init__(self, folder: Path, data: Annotated) -> None:
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{folder} is no folder; it should hold a .png or .npy a picture"
            )
        self.folder = folder
        self._shapes = {name: data.annotations(name).shape[1:] for name in data.ids}
        self._paths = {name: self._find(name) for name in data.ids}
        for name in self:
            self[name]

    def __getitem__(self, name: str) -> Floats:
        path = self._paths[name]
        return check_map(_read(path), self._shapes[name], str(path))

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def _find(self, name: str) -> Path:
        names = [f"{name}{ending}" for ending in ENDINGS]
        there = [path for path in names if (self.folder / path).is_file()]
        if not there:
            raise FileNotFoundError(
                f"{self.folder} has no prediction for picture {name}: neither {' nor '.join(names)}"
            )
        if len(there) > 1:
            raise ValueError(
                f"{self.folder} has two predictions for one picture: {', '.join(there)}"
            )
        return self.folder / there[0]


def _read(path: Path) -> Array:
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        with Image.open(path) as image:
            mode, values = image.mode, np.asarray(image)
    except (OSError, ValueError, EOFError, UnidentifiedImageError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if mode not in LARGEST:
        raise ValueError(f"{path} is of kind {mode}; a grey picture of 8 or 16 bits is wanted")
    return values / LARGEST[mode]
