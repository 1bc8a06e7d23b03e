"""Datasets that draw their images when asked for them."""

from dataclasses import asdict
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from torch.utils.data import get_worker_info

from hgru_vision.data.readers import ImageDataset
from hgru_vision.papers import linsley2018
from hgru_vision.stimuli import images, labels, preset, segmentations
from hgru_vision.stimuli.presets import Config
from hgru_vision.stimuli.scenes import Stimulus, check_seed, describe, draw

Split = Literal["train", "validation", "test"]
Target = Literal["label", "segmentation"]

# Splits are ranges of image numbers that cannot meet.
SPLIT_SIZE = 2**40
SPLIT_START = {split: number * SPLIT_SIZE for number, split in enumerate(get_args(Split))}

# Raised whenever a change makes any image differ from what it was.
GENERATOR_VERSION = 1


class Pathfinder(ImageDataset):
    """The Pathfinder challenge as a map-style dataset, drawn on the fly.

    Item i is a pure function of the configuration, the seed, the split and i: workers, order and
    batches change nothing. Every even number of items has as many positives as negatives.

    Parameters
    ----------
    length
        Paddles in a target path; the paper has 6, 9 and 14. Defaults to the preset's own.
    count
        Number of items; defaults to the paper's, 900,000 for training and 100,000 else.
    seed
        Of all images.
    preset
        A name from `hgru_vision.stimuli.PRESETS`: ``paper``, ``matched``, ``authors``, ...
    split
        ``train``, ``validation`` or ``test``: disjoint streams of images.
    target
        ``label`` (1 if the markers are connected) or ``segmentation`` (the marked paths).
    config
        A configuration of your own, instead of a preset.
    changes
        Fields of the preset's configuration to change, such as ``canvas`` or ``contrast``.

    Shape
    -----
    item: float32 (1, H, W) in [0, 1], and int or float32 (1, H, W)

    Examples
    --------
    >>> data = Pathfinder(length=6, count=100, seed=0)
    >>> image, label = data[0]
    >>> tuple(image.shape), label in (0, 1)
    ((1, 150, 150), True)
    >>> data.batch([3, 1, 4]).shape, int(data.labels(range(100)).sum())
    ((3, 150, 150), 50)
    """

    def __init__(
        self,
        length: int | None = None,
        count: int | None = None,
        seed: int = 0,
        preset: str = "paper",
        split: Split = "train",
        target: Target = "label",
        *,
        config: Config | None = None,
        **changes: Any,
    ) -> None:
        if split not in SPLIT_START:
            raise ValueError(f"split must be {describe(get_args(Split))}; got {split!r}")
        if target not in get_args(Target):
            raise ValueError(f"target must be {describe(get_args(Target))}; got {target!r}")
        if count is None:
            train = round(linsley2018.TRAIN_FRACTION * linsley2018.IMAGES)
            count = train if split == "train" else linsley2018.IMAGES - train
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"count must be a whole number; got {count!r}")
        if not 1 <= count <= SPLIT_SIZE:
            raise ValueError(f"count must be from 1 to 2**40; got {count}")
        if config is not None and (length is not None or changes):
            given = "length" if length is not None else next(iter(changes))
            raise TypeError(f"give config or {given}, not both")
        self.config = config if config is not None else _configure(preset, length, changes)
        if target == "label" and self.config.markers == 1:
            raise ValueError(
                "this Pathfinder has one marker, so there is nothing to classify; use "
                'target="segmentation" or markers=2'
            )
        self.count = count
        self.seed = check_seed(seed)
        self.split: Split = split
        self.target: Target = target
        self.batch(np.arange(min(count, 8)))  # a configuration that cannot be met fails here

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return (
            f"Pathfinder(count={self.count}, seed={self.seed}, split={self.split!r}, "
            f"target={self.target!r}, config={self.config})"
        )

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255, drawn on all cores (on one in a worker process)."""
        return images(self.config, self.seed, self.numbers(indices), _threads())

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,); no image is drawn for them."""
        return labels(self.config, self.seed, self.numbers(indices))

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}: the marked paths with their markers."""
        return segmentations(self.config, self.seed, self.numbers(indices), _threads())

    def stimulus(self, index: int) -> Stimulus:
        """One item with its masks, paddles and markers."""
        return draw(self.config, self.seed, int(self.numbers([index])[0]))

    def describe(self) -> dict[str, Any]:
        """Return all that the images are a function of, as JSON can hold it."""
        return {
            "stimulus": "pathfinder",
            "generator": type(self.config).__name__,
            "generator_version": GENERATOR_VERSION,
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


def _configure(name: str, length: int | None, changes: dict[str, Any]) -> Config:
    return preset(name, length, **changes)


def _threads() -> int | None:
    """All cores, unless this is one of several worker processes of a loader."""
    return None if get_worker_info() is None else 1
