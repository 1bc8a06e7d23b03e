"""A dataset over the archives of the authors and of the Long Range Arena.

Like the shards of `readers` it is a map-style torch dataset, and a source that `store.write` takes.
"""

import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hgru_vision.data.archive import Row, decode_png, read_metadata
from hgru_vision.data.readers import ImageDataset


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
