"""The Synthetic Contours Dataset, drawn when asked for."""

from dataclasses import asdict, fields
from difflib import get_close_matches
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from torch.utils.data import get_worker_info

from hgru_vision.data.datasets import SPLIT_SIZE, SPLIT_START, Split, Target
from hgru_vision.data.readers import ImageDataset
from hgru_vision.papers import linsley2018
from hgru_vision.stimuli import contours
from hgru_vision.stimuli.contours import ContourConfig, ContourStimulus
from hgru_vision.stimuli.scenes import check_seed, describe

# Raised whenever a change makes any image differ from what it was.
GENERATOR_VERSION = 1


class SyntheticContours(ImageDataset):
    """Is there a contour among paddles that point anywhere? A map-style dataset, drawn on the fly.

    Item i is a pure function of the configuration, the seed, the split and i. Of items 2j and
    2j + 1 exactly one has a contour, so they make a trial of two alternatives.

    Parameters
    ----------
    length
        Paddles in a contour; the paper has 5, 9, 14 and 17.
    shear
        Shear factor; the paper has -0.6 (paddles of a contour are closest) to 0.6 (farthest).
    count
        Number of items; defaults to the paper's, 900,000 for training and 100,000 else.
    seed
        Of all images.
    split
        ``train``, ``validation`` or ``test``: disjoint streams of images.
    target
        ``label`` (1 if there is a contour) or ``segmentation`` (the pixels of the contour).
    config
        A configuration of your own, instead of a length and a shear.
    changes
        Other fields of `ContourConfig`, such as ``canvas`` or ``eccentricity``.

    Shape
    -----
    item: float32 (1, H, W) in [0, 1], and int or float32 (1, H, W)

    Examples
    --------
    >>> data = SyntheticContours(length=9, shear=0.2, count=100, seed=0)
    >>> image, label = data[0]
    >>> tuple(image.shape), label in (0, 1), int(data.labels(range(100)).sum())
    ((1, 256, 256), True, 50)
    """

    def __init__(
        self,
        length: int | None = None,
        shear: float | None = None,
        count: int | None = None,
        seed: int = 0,
        split: Split = "train",
        target: Target = "label",
        *,
        config: ContourConfig | None = None,
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
        if length is not None:
            changes["length"] = length
        if shear is not None:
            changes["shear"] = shear
        if config is not None and changes:
            raise TypeError(f"give config or {next(iter(changes))}, not both")
        self.config = _configure(changes) if config is None else config
        self.count = count
        self.seed = check_seed(seed)
        self.split: Split = split
        self.target: Target = target
        self.batch([0])  # a configuration that cannot be met fails here

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return (
            f"SyntheticContours(count={self.count}, seed={self.seed}, split={self.split!r}, "
            f"target={self.target!r}, config={self.config})"
        )

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255, drawn on all cores (on one in a worker process)."""
        return contours.images(self.config, self.seed, self.numbers(indices), _threads())

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,); no image is drawn for them."""
        return contours.labels(self.config, self.seed, self.numbers(indices))

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}: the contour; all 0 where there is none."""
        return contours.segmentations(self.config, self.seed, self.numbers(indices), _threads())

    def stimulus(self, index: int) -> ContourStimulus:
        """One item with its masks and paddles."""
        return contours.draw(self.config, self.seed, int(self.numbers([index])[0]))

    def describe(self) -> dict[str, Any]:
        """Return all that the images are a function of, as JSON can hold it."""
        return {
            "stimulus": "contours",
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


def _configure(changes: dict[str, Any]) -> ContourConfig:
    names = [field.name for field in fields(ContourConfig)]
    for key in changes:
        if key not in names:
            near = get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {describe(names)}"
            raise TypeError(f"synthetic contours have no parameter {key!r}; {hint}")
    return ContourConfig(**changes)


def _threads() -> int | None:
    """All cores, unless this is one of several worker processes of a loader."""
    return None if get_worker_info() is None else 1
