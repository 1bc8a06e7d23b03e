"""BSDS500 for the training loop: bytes in batches, many a second, in an order without end."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from hgru_vision.data.augment import Augmentation, Placement
from hgru_vision.data.bsds_files import Picture, find_root, read_image, read_pictures
from hgru_vision.data.drawn import SPLIT_SIZE
from hgru_vision.data.epochs import shuffled
from hgru_vision.data.readers import ImageDataset, Sample
from hgru_vision.papers.linsley2018 import BSDS_CROP, BSDS_ROTATION
from hgru_vision.stimuli._types import Bytes
from hgru_vision.stimuli.scenes import available_threads

__all__ = ["IGNORED", "STREAM_VERSION", "BoundaryCrops", "BoundarySettings"]

IGNORED = 255  # in a target: no opinion about this pixel

# Raised whenever a change makes any crop differ from what it was.
STREAM_VERSION = 1

Split = Literal["train", "val", "test"]


@dataclass(frozen=True, kw_only=True)
class BoundarySettings:
    """How crops and targets are made of BSDS500.

    Parameters
    ----------
    target
        "consensus": one item a picture. A pixel is boundary where at least `share` of the
        annotators marked it, not boundary where none did, and left out of the loss between: people
        who mean the same edge mark it a pixel or two apart. "annotator": one item for each
        annotator of each picture, who alone decides.
    share
        Of the annotators, for "consensus".
    crop, rotation
        As `Augmentation` takes them.
    allow_partial
        Take what is there of a split that is not whole.
    """

    target: Literal["consensus", "annotator"] = "consensus"
    share: float = 0.3
    crop: int = BSDS_CROP
    rotation: float = BSDS_ROTATION
    allow_partial: bool = False

    def __post_init__(self) -> None:
        if self.target not in ("consensus", "annotator"):
            raise ValueError(f"target must be consensus or annotator; got {self.target!r}")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {self.share!r}")
        Augmentation(crop=self.crop, rotation=self.rotation)  # which looks at them


class BoundaryCrops(ImageDataset):
    """Crops of BSDS500 with the boundaries in them.

    For training, item i of an endless sequence of epochs, each in an order of its own. A crop is a
    pure function of (seed, epoch, picture), the one that `BSDS500.item` gives. All pictures are
    decoded once and stay in memory.

    Parameters
    ----------
    root
        As `BSDS500` takes it.
    split
        "train", "val" or "test".
    settings
        Crops and targets.
    seed
        Of order, place, angle and flips. None: each picture once, its middle, as it stands, with
        the consensus for its target.
    count
        Items at most, if there is no seed.

    Shape
    -----
    batch : uint8 (n, 3, crop, crop)
    segmentations : uint8 (n, crop, crop): 0, 1, or `IGNORED`
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: Split,
        settings: BoundarySettings | None = None,
        *,
        seed: int | None = None,
        count: int | None = None,
    ) -> None:
        settings = BoundarySettings() if settings is None else settings
        self.split, self.settings, self.seed = split, settings, seed
        self.root = find_root(Path(root))
        self._images, pictures = _load(self.root, split, settings.allow_partial)
        self._augment = Augmentation(crop=settings.crop, rotation=settings.rotation)
        people = settings.target == "annotator" and seed is not None
        self._items: list[tuple[int, Bytes]] = []  # number of the picture, and the target
        for number, picture in enumerate(pictures):
            if min(picture.shape) < settings.crop:
                height, width = picture.shape
                raise ValueError(
                    f"picture {picture.name} of {height}x{width} has no square of {settings.crop} "
                    "pixels; set crop"
                )
            maps = picture.annotations()
            targets = maps if people else [_consensus(maps, settings.share)]
            self._items += [(number, target) for target in targets]
        self._count = len(self._items) if count is None else min(count, len(self._items))

    def __len__(self) -> int:
        return self._count if self.seed is None else SPLIT_SIZE

    @property
    def epoch_size(self) -> int:
        """Items of one epoch."""
        return len(self._items)

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, 3, crop, crop) in 0 to 255, cut on all cores."""
        size = self.settings.crop

        def cut(epoch: int, item: int) -> Bytes:
            image = self._images[self._items[item][0]]
            if self.seed is None:
                return _middle(image, size).transpose(2, 0, 1)
            return self._place(image, epoch, item).sample_image(image, size)

        return self._cut(indices, (3, size, size), cut)

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Boundaries, uint8 (n, crop, crop) in {0, 1, IGNORED}."""
        size = self.settings.crop

        def cut(epoch: int, item: int) -> Bytes:
            target = self._items[item][1]
            if self.seed is None:
                return _middle(target, size)
            return self._place(target, epoch, item).sample_target(target, size)

        return self._cut(indices, (size, size), cut)

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Refuse: a natural image has boundaries, not a label."""
        raise ValueError('BSDS500 has no labels; the run\'s target must be "segmentation"')

    def describe(self) -> dict[str, Any]:
        """Return what the crops are a function of, as JSON can hold it."""
        return {
            "stimulus": "bsds500",
            "generator_version": STREAM_VERSION,
            "split": self.split,
            "seed": self.seed,
            "target": "boundaries",
            "height": self.settings.crop,
            "width": self.settings.crop,
            "channels": 3,
            "binary": False,
        }

    def __getitems__(self, indices: Any) -> list[Sample]:
        """Items of a batch at once; the target is float32 (1, H, W) in {0, 1, IGNORED}."""
        images = torch.from_numpy(self.batch(indices)).float().div_(255)
        targets = torch.from_numpy(self.segmentations(indices)).float().unsqueeze(1)
        return list(zip(images, targets, strict=True))

    def _place(self, picture: np.ndarray, epoch: int, item: int) -> Placement:
        assert self.seed is not None  # without one, nothing is drawn
        random = np.random.default_rng([self.seed, epoch, item])
        height, width = picture.shape[:2]
        return self._augment.place(height, width, random)

    def _cut(
        self, indices: ArrayLike, shape: tuple[int, ...], cut: Callable[[int, int], Bytes]
    ) -> np.ndarray:
        """Cut items on all cores; the kernels release the interpreter."""
        position = self._indices(indices)
        epochs, items = np.zeros_like(position), position
        if self.seed is not None:
            epochs = position // self.epoch_size
            items = shuffled(position, self.epoch_size, self.seed)
        out = np.empty((len(position), *shape), np.uint8)

        def work(row: int) -> None:
            out[row] = cut(int(epochs[row]), int(items[row]))

        with ThreadPoolExecutor(max(1, min(available_threads(), len(position)))) as pool:
            list(pool.map(work, range(len(position))))
        return out


def _consensus(maps: Bytes, share: float) -> Bytes:
    """Boundary, none, or `IGNORED`, from the maps of all annotators."""
    marked = maps.mean(axis=0)
    target = np.where(marked >= share, 1, IGNORED)
    target[marked == 0] = 0
    return target.astype(np.uint8)


def _middle(picture: np.ndarray, size: int) -> np.ndarray:
    top, left = ((side - size) // 2 for side in picture.shape[:2])
    return picture[top : top + size, left : left + size]


@lru_cache(maxsize=4)
def _load(root: Path, split: str, allow_partial: bool) -> tuple[list[Bytes], list[Picture]]:
    """Decode a split's images, (H, W, 3) each, and read its annotations: once."""
    pictures = read_pictures(root, split, allow_partial=allow_partial)
    return [np.ascontiguousarray(read_image(each.image)) for each in pictures], pictures
