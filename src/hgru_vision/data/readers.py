"""Datasets over files: the shards that `store.write` makes, and the authors' archives.

Both are map-style torch datasets and, with `batch`, `labels`, `segmentations` and `describe`,
sources that `store.write` takes in turn.
"""

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.utils.data import Dataset

from hgru_vision.data.archive import Row, decode_png, read_metadata
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


class ArchiveFolder(ImageDataset):
    """Dataset over a folder laid out as the authors' and the Long Range Arena's archives are.

    `<root>/imgs/<batch>/sample_<n>.png` with `<root>/metadata/<batch>.npy`, and
    `<root>/seg/<batch>/sample_<n>.png` for segmentation; `data/archive.py` states the columns.
    Items are in the order of the batch numbers and, within a batch, of the metadata.

    Parameters
    ----------
    root
        The folder that holds `imgs` and `metadata`.
    reduce
        Side of the blocks whose mean is taken: 2 shows the authors' 300x300 images at 150x150. The
        mean is rounded to the nearest of 256 levels, a mask is set where half its block is.
    exclude
        Images to leave out, as paths below `root`. The Long Range Arena's
        `pathfinder32/curv_baseline` has one empty file, `imgs/0/sample_172.png`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from PIL import Image
    >>> root = Path(tempfile.mkdtemp())
    >>> for folder in ("imgs/0", "metadata"):
    ...     (root / folder).mkdir(parents=True)
    >>> Image.fromarray(np.full((4, 4), 255, np.uint8)).save(root / "imgs/0/sample_0.png")
    >>> text = "imgs/0 sample_0.png 0 1 1.8 6 2 5 2 3 1"
    >>> _ = (root / "metadata/0.npy").write_text(text)
    >>> image, label = ArchiveFolder(root, reduce=2)[0]
    >>> tuple(image.shape), image.mean().item(), label
    ((1, 2, 2), 1.0, 1)
    """

    def __init__(
        self, root: str | os.PathLike[str], *, reduce: int = 1, exclude: Collection[str] = ()
    ) -> None:
        if isinstance(exclude, str):
            raise TypeError(f"exclude takes a list of names, such as [{exclude!r}]")
        if isinstance(reduce, bool) or not isinstance(reduce, (int, np.integer)):
            raise TypeError(f"reduce must be a whole number; got {reduce!r}")
        self.root = Path(root)
        self.reduce = int(reduce)
        rows = _read_archive(self.root, frozenset(exclude))
        # Arrays rather than lists of objects, which forked workers would copy page by page.
        self._digest = _digest_of(self.root, rows)
        self._images = np.array([row.image for row in rows])
        self._labels = np.array([row.label for row in rows], np.int64)
        masks = [row.mask for row in rows if row.mask is not None]
        if masks and len(masks) < len(rows):
            raise ValueError(
                f"{self.root}: {len(masks)} of {len(rows)} rows name a segmentation; an archive "
                "has one for every image or for none"
            )
        self._masks = np.array(masks)
        height, width = self._read(str(self._images[0])).shape
        if reduce < 1 or height % reduce or width % reduce:
            raise ValueError(
                f"reduce={reduce} does not divide the images of {height}x{width}; 1 leaves them "
                "as they are"
            )
        self._size = height // reduce, width // reduce

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        return f"ArchiveFolder({str(self.root)!r}, {len(self)} items)"

    def describe(self) -> dict[str, Any]:
        """Return a description as of a source; seed and generator version are unknown."""
        return {
            "stimulus": "archive",
            "config": {"root": self.root.name, "reduce": self.reduce, "digest": self._digest},
            "seed": None,
            "split": None,
            "target": "segmentation" if len(self._masks) else "label",
            "generator_version": None,
            "height": self._size[0],
            "width": self._size[1],
            "binary": False,
        }

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255."""
        return self._load(self._images[self._indices(indices)])

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,); 1 throughout an authors' segmentation archive."""
        return self._labels[self._indices(indices)]

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}."""
        if not len(self._masks):
            raise ValueError(f"{self.root} holds no segmentations: its metadata names none")
        return (self._load(self._masks[self._indices(indices)]) > 127).astype(np.uint8)

    def _load(self, names: np.ndarray) -> np.ndarray:
        images = np.empty((len(names), *self._size), np.uint8)
        for place, name in enumerate(names):
            images[place] = self._reduced(str(name))
        return images

    def _reduced(self, name: str) -> np.ndarray:
        image, block = self._read(name), self.reduce
        height, width = self._size
        if image.shape != (height * block, width * block):
            raise ValueError(
                f"{self.root / name}: {image.shape[0]}x{image.shape[1]} pixels, the first image "
                f"has {height * block}x{width * block}"
            )
        total = image.reshape(height, block, width, block).sum(axis=(1, 3), dtype=np.int64)
        return (total + block * block // 2) // (block * block)

    def _read(self, name: str) -> np.ndarray:
        path = self.root / name
        return decode_png(path.read_bytes(), path)


def _read_archive(root: Path, exclude: frozenset[str]) -> list[Row]:
    """Rows of every metadata file below `root`, each checked to name files that are there."""
    folder = root / "metadata"
    if not folder.is_dir():
        below = sorted(path.parent.name for path in root.glob("*/metadata"))
        hint = (
            f"these of its folders have one, give one of them: {', '.join(below)}"
            if below
            else "images come with one that tells their labels, as those of hgru generate --format "
            "png, of the authors' released program and of the Long Range Arena do"
        )
        raise FileNotFoundError(f"{root} has no folder 'metadata'; {hint}")
    # The authors' tools add combined.npy, which repeats the numbered files.
    files = sorted((p for p in folder.glob("*.npy") if p.stem.isdigit()), key=lambda p: int(p.stem))
    rows = []
    left_out = set()
    sizes: dict[str, dict[str, int]] = {}
    for path in files:
        for row in read_metadata(path):
            if row.image in exclude:
                left_out.add(row.image)
                continue
            for name in filter(None, (row.image, row.mask)):
                parent, _, base = name.rpartition("/")
                if parent not in sizes:
                    sizes[parent] = _file_sizes(root / parent)
                if not sizes[parent].get(base):
                    what = "is empty" if base in sizes[parent] else "is missing"
                    raise ValueError(
                        f"{path}, line {row.line}: {root / name} {what}; to go on without it pass "
                        f"exclude=[{row.image!r}]"
                    )
            rows.append(row)
    if not rows and left_out:
        raise ValueError(f"{folder} lists no other images than the {len(left_out)} to exclude")
    if not rows:
        raise ValueError(f"{folder} lists no image; it should hold 0.npy, 1.npy and so on")
    if unknown := sorted(exclude - left_out):
        raise ValueError(
            f"exclude names {unknown[0]!r}, which {folder} does not list; its first image is "
            f"{rows[0].image!r}"
        )
    return rows


def _digest_of(root: Path, rows: list[Row]) -> str:
    """Give a check sum over what an archive holds: names, labels and the sizes of images."""
    digest = hashlib.sha256()
    for row in rows:
        size = (root / row.image).stat().st_size
        digest.update(f"{row.image} {row.mask} {row.label} {size}\n".encode())
    return digest.hexdigest()[:16]


def _file_sizes(folder: Path) -> dict[str, int]:
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
