"""BSDS500: natural images with the boundaries that several people drew in each."""

import os
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from hgru_vision.data.augment import Augmentation
from hgru_vision.data.bsds_files import Picture, find_root, read_image, read_pictures

__all__ = ["BSDS500"]

Split = Literal["train", "val", "test"]
Target = Literal["consensus", "annotator"]


class BSDS500(Dataset[tuple[Tensor, Tensor]]):
    """The Berkeley Segmentation Dataset (Arbelaez et al., 2011) for boundary detection.

    An item is an image with its boundaries. With `augment` it is a pure function of the seed, the
    epoch and the item's index, whatever the worker, order or batch. Without, images keep their
    size, 321x481 or 481x321.

    Parameters
    ----------
    root
        Folder with ``images`` and ``groundTruth`` (the authors' .mat files), or the archive's top
        folder, or the compact layout that `hgru_vision.data.bsds_files` describes.
    split
        ``train`` (200 pictures), ``val`` (100) or ``test`` (200).
    target
        ``consensus``: one item a picture; its target is the share of annotators who marked each
        pixel. ``annotator``: one item for each annotator of each picture, 0 or 1.
    augment
        Random crops, rotations and flips; ``Augmentation()`` is the paper's.
    seed
        Of the augmentation.
    allow_partial
        Take what is there of a split that is not whole.

    Shape
    -----
    item: float32 (3, H, W) in [0, 1], and float32 (1, H, W) in [0, 1]

    Examples
    --------
    >>> data = BSDS500("BSR", split="train", augment=Augmentation())  # doctest: +SKIP
    >>> image, boundaries = data[0]  # doctest: +SKIP
    >>> image.shape, boundaries.shape  # doctest: +SKIP
    (torch.Size([3, 300, 300]), torch.Size([1, 300, 300]))
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: Split = "train",
        target: Target = "consensus",
        *,
        augment: Augmentation | None = None,
        seed: int = 0,
        allow_partial: bool = False,
    ) -> None:
        for name, value, choices in (
            ("split", split, get_args(Split)),
            ("target", target, get_args(Target)),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be {', '.join(choices)}; got {value!r}")
        if seed < 0:
            raise ValueError(f"seed must be 0 or more; got {seed}")
        self.root = find_root(Path(root))
        self.split: Split = split
        self.target: Target = target
        self.augment = augment
        self.seed = seed
        pictures = read_pictures(self.root, split, allow_partial=allow_partial)
        self._pictures = {picture.name: picture for picture in pictures}
        self._items: list[tuple[str, int | None]] = [
            (picture.name, person)
            for picture in pictures
            for person in (range(len(picture.packed)) if target == "annotator" else [None])
        ]
        # Shared, so that workers that outlive an epoch hear of the next one.
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the pictures, such as ``"100007"``, in order."""
        return tuple(self._pictures)

    @property
    def epoch(self) -> int:
        """The epoch whose augmentation items have; see `set_epoch`."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Give items the augmentation of this epoch, in workers of a loader too."""
        if epoch < 0:
            raise ValueError(f"epoch must be 0 or more; got {epoch}")
        self._epoch.fill_(epoch)

    def image(self, name: str) -> np.ndarray:
        """Image of a picture as it is, uint8 (H, W, 3)."""
        return read_image(self._picture(name).image)

    def annotations(self, name: str) -> np.ndarray:
        """Boundary maps of a picture, uint8 (annotators, H, W) in {0, 1}."""
        return self._picture(name).annotations()

    def _picture(self, name: str) -> Picture:
        if name not in self._pictures:
            raise ValueError(
                f"no picture {name!r} in {self.split}; `ids` names them, such as {self.ids[0]!r}"
            )
        return self._pictures[name]

    def item(self, index: int, epoch: int) -> tuple[Tensor, Tensor]:
        """Item `index` as it is in an epoch."""
        number = range(len(self))[index]
        name, person = self._items[number]
        image = torch.from_numpy(self.image(name).transpose(2, 0, 1).copy()).float().div_(255)
        maps = self.annotations(name)
        chosen = maps.mean(axis=0) if person is None else maps[person]
        target = torch.from_numpy(chosen.astype(np.float32))[None]
        if self.augment is None:
            return image, target
        return self.augment.apply(image, target, np.random.default_rng([self.seed, epoch, number]))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.item(index, self.epoch)

    def __repr__(self) -> str:
        return (
            f"BSDS500({str(self.root)!r}, split={self.split!r}, target={self.target!r}, "
            f"{len(self)} items)"
        )
