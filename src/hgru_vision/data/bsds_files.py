"""The files of BSDS500, in the layout of its authors or in a compact one.

Both have ``images/{train,val,test}/ID.jpg``. The authors' has
``groundTruth/{train,val,test}/ID.mat`` besides; the compact one ``gt_{train,val,test}.npz`` with

========  ==================================================================================
ids       names of the pictures
shapes    int (n, 2), their height and width
n_annot   int (n,), annotators of each
start     int (n,), row of its first annotator in `packed`
packed    uint8 (annotators of all, bytes), `numpy.packbits` of a map's pixels row by row
========  ==================================================================================
"""

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError
from scipy.io import loadmat

__all__ = ["SPLIT_SIZES", "Picture", "find_root", "read_image", "read_pictures"]

SPLIT_SIZES = {"train": 200, "val": 100, "test": 200}
ARRAYS = ("ids", "shapes", "n_annot", "start", "packed")
INSIDE = ("", "data", "BSDS500/data", "BSR/BSDS500/data")  # of the authors' archive


class Picture(NamedTuple):
    """One picture: where its image is, and what its annotators marked, packed eight to a byte."""

    name: str
    image: Path
    shape: tuple[int, int]
    packed: np.ndarray  # uint8 (annotators, bytes)

    def annotations(self) -> np.ndarray:
        """Boundary maps, uint8 (annotators, H, W) in {0, 1}."""
        height, width = self.shape
        return np.unpackbits(self.packed, axis=1, count=height * width).reshape(-1, height, width)


def find_root(root: Path) -> Path:
    """Find the folder that holds ``images``: this one, or the usual ones inside it."""
    for inside in INSIDE:
        if (root / inside / "images").is_dir():
            return root / inside
    what = "holds no folder 'images'" if root.is_dir() else "is no folder"
    raise FileNotFoundError(
        f"{root} {what}; BSDS500 has images/{{train,val,test}}/*.jpg beside "
        "groundTruth/{train,val,test}/*.mat, or beside gt_train.npz, gt_val.npz and gt_test.npz. "
        "Give its folder: root=FOLDER in Python, --root FOLDER to hgru eval-boundaries, --with "
        "root=FOLDER to hgru train boundaries, --set stages[0].sources[0].path=FOLDER to hgru "
        "train --config"
    )


def read_pictures(root: Path, split: str, *, allow_partial: bool = False) -> list[Picture]:
    """Read the annotations of a split and find its images; refuse a part of it.

    Parameters
    ----------
    root
        As `find_root` gives it.
    split
        ``train``, ``val`` or ``test``.
    allow_partial
        Take the pictures that have both an image and annotations, if there are any.

    Returns
    -------
    pictures
        In the order of their names.
    """
    folder = root / "images" / split
    images = {path.stem: path for path in sorted(folder.glob("*.jpg"))}
    matlab, compact = root / "groundTruth" / split, root / f"gt_{split}.npz"
    if matlab.is_dir():
        names = {path.stem for path in matlab.glob("*.mat")}
        where = f"{matlab}/{{}}.mat"
    elif compact.is_file():
        arrays = _load_compact(compact)
        rows = {str(name): row for row, name in enumerate(arrays["ids"])}
        names = set(rows)
        where = f"{{}} in {compact}"
    else:
        raise FileNotFoundError(f"{root} has no annotations: neither {matlab} nor {compact} exists")
    if not allow_partial:
        _check_whole(folder, images, names, where, split)
    chosen = sorted(names & set(images))
    if not chosen:
        raise FileNotFoundError(f"{folder} holds no image (*.jpg) with annotations")
    pictures = []
    for name in chosen:
        if matlab.is_dir():
            maps = _load_matlab(matlab / f"{name}.mat")
            shape, packed = maps.shape[1:], np.packbits(maps.reshape(len(maps), -1), axis=1)
        else:
            row = rows[name]
            first, count = int(arrays["start"][row]), int(arrays["n_annot"][row])
            shape = tuple(int(side) for side in arrays["shapes"][row])
            packed = arrays["packed"][first : first + count]
            if len(packed) != count or count < 1 or packed.shape[1] * 8 < shape[0] * shape[1]:
                raise ValueError(f"{compact} is damaged: it lacks annotations of picture {name}")
        _check_size(images[name], shape)
        pictures.append(Picture(name, images[name], shape, packed))
    return pictures


def read_image(path: Path) -> np.ndarray:
    """Read an image, uint8 (H, W, 3)."""
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise ValueError(f"{path} is not a whole image: {error}") from None


def _check_whole(
    folder: Path, images: dict[str, Path], names: set[str], where: str, split: str
) -> None:
    """Refuse images without annotations, annotations without an image, and too few of both."""
    hint = "; go on with what is there by allow_partial=True (--allow-partial)"
    for name in sorted(set(images) - names):
        raise FileNotFoundError(f"{images[name]} has no annotations: no {where.format(name)}{hint}")
    for name in sorted(names - set(images)):
        raise FileNotFoundError(
            f"there are annotations, {where.format(name)}, but no image {folder / name}.jpg{hint}"
        )
    if len(images) != SPLIT_SIZES[split]:
        raise FileNotFoundError(
            f"{folder} holds {len(images)} images; this split of BSDS500 has "
            f"{SPLIT_SIZES[split]}{hint}"
        )


def _check_size(path: Path, shape: tuple[int, int]) -> None:
    """Compare an image's size, which stands at its beginning, with that of its annotations."""
    try:
        with Image.open(path) as image:
            width, height = image.size
    except (OSError, UnidentifiedImageError) as error:
        raise ValueError(f"{path} is not an image: {error}") from None
    if (height, width) != shape:
        raise ValueError(
            f"{path} is {height}x{width} (rows x columns), its annotations are "
            f"{shape[0]}x{shape[1]}"
        )


def _load_matlab(path: Path) -> np.ndarray:
    """Boundary maps of a file of the authors, bool (annotators, H, W)."""
    try:
        cells = loadmat(path)["groundTruth"].reshape(-1)
        maps = np.stack([cell["Boundaries"][0, 0] != 0 for cell in cells])
    except Exception as error:  # scipy raises many kinds for a file that is cut short or foreign
        raise ValueError(
            f"{path} is not a ground truth of BSDS500, a cell 'groundTruth' of structures with "
            f"'Boundaries': {error}"
        ) from None
    if maps.ndim != 3:
        raise ValueError(f"{path}: 'Boundaries' must be pictures, got shape {maps.shape[1:]}")
    return maps


def _load_compact(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            missing = [name for name in ARRAYS if name not in file]
            arrays = {name: file[name] for name in ARRAYS if name in file}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{path} is not a whole .npz file: {error}") from None
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}; it should hold {', '.join(ARRAYS)}")
    return arrays
