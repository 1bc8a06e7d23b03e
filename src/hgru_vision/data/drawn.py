"""What datasets that draw their images have in common."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from torch.utils.data import get_worker_info

from hgru_vision.data.readers import ImageDataset
from hgru_vision.papers import linsley2018
from hgru_vision.stimuli.scenes import check_seed, describe

__all__ = ["SPLIT_SIZE", "SPLIT_START", "Drawing", "DrawnDataset", "Split", "Target"]

Split = Literal["train", "validation", "test"]
Target = Literal["label", "segmentation"]

# Splits are ranges of image numbers that cannot meet.
SPLIT_SIZE = 2**40
SPLIT_START = {split: number * SPLIT_SIZE for number, split in enumerate(get_args(Split))}


class Drawing(NamedTuple):
    """Functions of (configuration, seed, image numbers) that draw a stimulus."""

    images: Callable[..., np.ndarray]
    labels: Callable[..., np.ndarray]
    segmentations: Callable[..., np.ndarray]
    draw: Callable[..., Any]


class DrawnDataset(ImageDataset):
    """A map-style dataset whose item i is a pure function of configuration, seed, split and i.

    A subclass names its stimulus and what draws it.

    Parameters
    ----------
    config
        Of the stimulus.
    count, seed, split, target
        As the subclasses say.
    """

    kind: ClassVar[str]
    version: ClassVar[int]  # raised whenever a change makes any image differ from what it was
    drawing: ClassVar[Drawing]

    def __init__(
        self, config: Any, count: int | None, seed: int, split: Split, target: Target
    ) -> None:
        if split not in SPLIT_START:
            raise ValueError(f"split must be {describe(get_args(Split))}; got {split!r}")
        if target not in get_args(Target):
            raise ValueError(f"target must be {describe(get_args(Target))}; got {target!r}")
        if count is None:
            train = round(linsley2018.TRAIN_FRACTION * linsley2018.IMAGES)
            count = train if split == "train" else linsley2018.IMAGES - train
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
            raise TypeError(f"count must be a whole number; got {count!r}")
        if not 1 <= count <= SPLIT_SIZE:
            raise ValueError(f"count must be from 1 to 2**40; got {count}")
        self.config = config
        self.count = int(count)
        self.seed = check_seed(seed)
        self.split: Split = split
        self.target: Target = target
        self.batch(np.arange(min(count, 8)))  # a configuration that cannot be met fails here

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(count={self.count}, seed={self.seed}, split={self.split!r}, "
            f"target={self.target!r}, config={self.config})"
        )

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255, drawn on all cores (on one in a worker process)."""
        return self.drawing.images(self.config, self.seed, self.numbers(indices), _threads())

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,); no image is drawn for them."""
        return self.drawing.labels(self.config, self.seed, self.numbers(indices))

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}, of what is to be found."""
        return self.drawing.segmentations(self.config, self.seed, self.numbers(indices), _threads())

    def stimulus(self, index: int) -> Any:
        """One item with its masks, its paddles and how it was made."""
        return self.drawing.draw(self.config, self.seed, int(self.numbers([index])[0]))

    def describe(self) -> dict[str, Any]:
        """Return all that the images are a function of, as JSON can hold it."""
        return {
            "stimulus": self.kind,
            "generator": type(self.config).__name__,
            "generator_version": self.version,
            "config": asdict(self.config),
            "seed": self.seed,
            "split": self.split,
            "target": self.target,
            "height": self.config.size,
            "width": self.config.size,
            "binary": self.config.binary,
        }

    def numbers(self, indices: ArrayLike) -> np.ndarray:
        """Return the image numbers that the generator gives to these items: its ``index``."""
        return self._indices(indices) + SPLIT_START[self.split]


def _threads() -> int | None:
    """All cores, unless this is one of several worker processes of a loader."""
    return None if get_worker_info() is None else 1
