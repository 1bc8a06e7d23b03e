"""Datasets of images, and the one over the shards that `store.write` makes.

They are map-style torch datasets and, with `batch`, `labels`, `segmentations` and `describe`,
sources that `store.write` takes in turn.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.utils.data import Dataset

from hgru_vision.data.formats import ShardReader, make_format
from hgru_vision.data.manifest import Manifest, check_files

OPEN_SHARDS = 100  # a mapped shard holds up to two file descriptors; systems allow 256 or 1024

Sample = tuple[Tensor, int | Tensor]


class ImageDataset(Dataset[Sample], ABC):
    """Torch items on top of `batch`, `labels` and `segmentations`.

    An item is (image, label), or (image, mask) where the target is `"segmentation"`.

    Shape
    -----
    image : float32 (1, H, W) in [0, 1]; mask : float32 (1, H, W) in {0, 1}; label : int.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255."""

    @abstractmethod
    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,)."""

    @abstractmethod
    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the description of the source, as JSON can hold it."""

    def __getitem__(self, index: int) -> Sample:
        if isinstance(index, slice):
            raise TypeError(
                "an item has one number, not a slice; batch(range(...)) gives images of several, "
                "torch.utils.data.Subset is a dataset of some"
            )
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Items of a batch at once; `DataLoader` asks for them in this way."""
        images = torch.from_numpy(self.batch(indices)).unsqueeze(1).float().div_(255)
        if self.describe()["target"] == "segmentation":
            masks = torch.from_numpy(self.segmentations(indices)).unsqueeze(1).float()
            return list(zip(images, masks, strict=True))
        return list(zip(images, self.labels(indices).tolist(), strict=True))

    def _indices(self, indices: ArrayLike) -> np.ndarray:
        """Check indices and make them int64; negative ones count from the end."""
        array = np.asarray(indices)
        if array.shape == (0,):
            return array.astype(np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(
                f"indices are {array.dtype} of shape {array.shape}; a one-dimensional array of "
                "integers is wanted"
            )
        wrong = (array < -len(self)) | (array >= len(self))
        if wrong.any():
            raise IndexError(f"index {array[wrong][0]} is out of range: {len(self)} items")
        array = array.astype(np.int64)
        return np.where(array < 0, array + len(self), array)


class StoredDataset(ImageDataset):
    """Dataset over a directory of shards; made by `open_dataset`.

    Files are opened at first use and separately in each process, so the object pickles in a few
    bytes and travels to the workers of a `DataLoader`.
    """

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        self.manifest = manifest
        self.layout = make_format(manifest.format, manifest.source)
        self._open: dict[int, ShardReader] = {}
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredDataset, (self.directory, self.manifest)

    def __len__(self) -> int:
        return self.manifest.stored

    def __repr__(self) -> str:
        return f"StoredDataset({str(self.directory)!r}, {len(self)} items, {self.manifest.format})"

    def describe(self) -> dict[str, Any]:
        """Return the description of the source that was written."""
        return self.manifest.source

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255."""
        return self._gather(indices, self._size, lambda shard, rows: shard.images(rows))

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,)."""
        return self._gather(indices, (), lambda shard, rows: shard.labels[rows]).astype(np.int64)

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}."""
        if self.describe()["target"] != "segmentation":
            raise ValueError(
                f"{self.directory} holds no segmentations: it was written with target "
                f"{self.describe()['target']!r}"
            )
        return self._gather(indices, self._size, lambda shard, rows: shard.masks(rows))

    @property
    def _size(self) -> tuple[int, int]:
        return self.manifest.source["height"], self.manifest.source["width"]

    def _gather(
        self,
        indices: ArrayLike,
        shape: tuple[int, ...],
        read: Callable[[ShardReader, np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """Read from each shard the rows that lie in it, and put them in the order asked for."""
        index = self._indices(indices)
        numbers, rows = np.divmod(index, self.manifest.shard_size)
        values = np.empty((len(index), *shape), np.uint8)
        for number in np.unique(numbers):
            places = np.flatnonzero(numbers == number)
            values[places] = read(self._shard(int(number)), rows[places])
        return values

    def check_header(self, number: int) -> None:
        """Open a shard once, so that a foreign one is refused before training starts."""
        self.layout.open(self.directory, self.manifest.shards[number])

    def _shard(self, number: int) -> ShardReader:
        if self._process != os.getpid():  # a forked worker shares no open file with its parent
            self._open, self._process = {}, os.getpid()
        reader = self._open.get(number)
        if reader is None:
            reader = self.layout.open(self.directory, self.manifest.shards[number])
            with self._lock:  # a training loop reads from two threads
                while len(self._open) >= OPEN_SHARDS:
                    self._open.pop(next(iter(self._open)))
                self._open[number] = reader
        return reader


def open_dataset(
    directory: str | os.PathLike[str], *, verify: bool = False, allow_partial: bool = False
) -> StoredDataset:
    """Open a directory that `store.write` made, in any of its formats.

    The length of every file and the header of every shard are checked; `verify` also hashes them.

    Parameters
    ----------
    directory
        The dataset.
    verify
        Compare the sha256 of every file with the manifest.
    allow_partial
        Take the complete shards of a directory whose writing was interrupted.

    Returns
    -------
    StoredDataset
        Items are (image, label) or (image, mask).

    Raises
    ------
    CorruptShardError
        Naming the file which is missing, truncated, changed or foreign.
    ValueError
        If the directory is incomplete and `allow_partial` is not set.

    Examples
    --------
    >>> import tempfile
    >>> from hgru_vision.data.store import write
    >>> class Noise:
    ...     def __len__(self): return 6
    ...     def batch(self, indices): return np.stack([np.full((4, 4), i, "u1") for i in indices])
    ...     def labels(self, indices): return indices % 2
    ...     def describe(self):
    ...         return dict(stimulus="noise", target="label", height=4, width=4, binary=False)
    >>> folder = tempfile.mkdtemp()
    >>> _ = write(Noise(), folder, shard_size=4)
    >>> dataset = open_dataset(folder)
    >>> dataset.batch([5, 0])[:, 0, 0].tolist(), dataset[5][1]
    ([5, 0], 1)
    """
    directory = Path(directory)
    manifest = Manifest.read(directory)
    if not manifest.complete and not allow_partial:
        raise ValueError(
            f"{directory} is incomplete: {manifest.stored} of {manifest.count} items. Resume with "
            f"the command that made it ({manifest.resume_command(directory)}, and what else it "
            "had), or read what is there with allow_partial=True"
        )
    check_files(directory, manifest, hashes=verify)
    dataset = StoredDataset(directory, manifest)
    for shard in manifest.shards:
        dataset.check_header(shard.number)
    return dataset
