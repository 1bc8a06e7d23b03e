"""The layout of the authors' archive: PNG files and their metadata.

The authors' released generator (github.com/drewlinsley/pathfinder) writes
`imgs/<batch>/sample_<n>.png` and, for each batch, `metadata/<batch>.npy`, an array of strings with
one row an image:

    subpath, filename, nimg, label, continuity, contour_length, distractor_length, paddle_length,
    paddle_thickness, paddle_margin, n_contrasts

Its segmentation task has `seg/<batch>/sample_<n>.png` as well and rows without a label (every image
is of the connected kind), `imgs subpath, seg subpath, filename, nimg, continuity, ...`. In the Long
Range Arena's archive a file of the same name is plain text: the same columns, separated by spaces,
one row a line.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

PNG_END = b"IEND\xaeB`\x82"
# Column of the authors' metadata: name of the same parameter in our configs.
PARAMETERS = {
    "continuity": "continuity",
    "contour_length": "length",
    "distractor_length": "distractor_length",
    "paddle_length": "paddle_length",
    "paddle_thickness": "thickness",
    "paddle_margin": "margin",
    "n_contrasts": "n_contrasts",
}


@dataclass(frozen=True)
class Row:
    """One image of an archive: its path, its mask's path (if any) and its label."""

    line: int
    image: str
    mask: str | None
    label: int


def encode_png(image: np.ndarray) -> bytes:
    """Encode a uint8 (H, W) array as an 8-bit gray PNG, the same bytes every time."""
    stream = io.BytesIO()
    # Level 3 is twice as fast as the default and a quarter larger on Pathfinder images.
    Image.fromarray(image).save(stream, format="PNG", optimize=False, compress_level=3)
    return stream.getvalue()


def decode_png(data: bytes, name: object) -> np.ndarray:
    """Decode a PNG to uint8 (H, W).

    Raises
    ------
    ValueError
        Naming `name`, if the bytes are not a whole image, or one of 16 bits a pixel.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            if PNG_END not in data:  # Pillow does without it
                raise OSError("truncated")
            deep = image.mode.startswith("I")
            decoded = np.array(image.convert("L"))
    # What Pillow raises for a damaged PNG depends on the chunk that is hit.
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        what = f"{len(data)} bytes that are not a whole image" if data else "empty"
        raise ValueError(f"{name}: {what}") from error
    if deep:  # Pillow would show all above 255 as white
        raise ValueError(f"{name}: 16 bits a pixel; images of 8 are read")
    return decoded


def metadata_rows(
    batch: int, labels: Sequence[int], config: Mapping[str, Any], *, segmentation: bool
) -> np.ndarray:
    """Rows of `metadata/<batch>.npy` in the authors' columns.

    A parameter that `config` does not have stands as `nan`, and so do several margins. The rows of
    a segmentation dataset end in one more column, the label, which the authors' rows lack.

    Examples
    --------
    >>> metadata_rows(0, [1], {"continuity": 1.8}, segmentation=False)[0].tolist()[:6]
    ['imgs/0', 'sample_0.png', '0', '1', '1.8', 'nan']
    """
    margins = config.get("margins", ())
    if len(margins) == 1:
        config = {**config, "margin": margins[0]}
    parameters = [str(config.get(name, "nan")) for name in PARAMETERS.values()]
    rows = []
    for number, label in enumerate(labels):
        file = [f"sample_{number}.png", str(number)]
        if segmentation:
            rows.append([f"imgs/{batch}", f"seg/{batch}", *file, *parameters, str(label)])
        else:
            rows.append([f"imgs/{batch}", *file, str(label), *parameters])
    table = np.array(rows)
    return table.astype(table.dtype.newbyteorder("<"))


def read_metadata(path: Path) -> list[Row]:
    """Read a metadata file, saved by NumPy or plain text, of either variant.

    Raises
    ------
    ValueError
        Naming the file and the line (from 1) that cannot be read. Pickled objects are not loaded.
    """
    data = path.read_bytes()
    if data.startswith(np.lib.format.MAGIC_PREFIX):
        try:
            table = np.load(io.BytesIO(data), allow_pickle=False)
        except Exception as error:  # numpy raises many kinds for a damaged header
            raise ValueError(
                f"{path}: not an array of strings; pickled objects are never loaded ({error})"
            ) from error
        if table.ndim != 2 or table.dtype.kind not in "US":
            raise ValueError(
                f"{path}: {table.dtype} array of shape {table.shape}; metadata is a "
                "two-dimensional array of strings"
            )
        lines = table.astype(str).tolist()
    else:
        try:
            lines = [line.split() for line in data.decode("utf-8").splitlines()]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: neither a .npy file nor text ({error})") from error
    return [_parse_row(cells, path, number) for number, cells in enumerate(lines, 1) if cells]


def _parse_row(cells: list[str], path: Path, line: int) -> Row:
    place = f"{path}, line {line}"
    if len(cells) < 4:
        raise ValueError(
            f"{place}: {len(cells)} columns ({' '.join(cells)!r}); a row starts with subpath, "
            "filename, number, label"
        )
    if re.fullmatch(r"\d+", cells[2]):
        folder, name, _, label = cells[:4]
        mask = None
    else:
        folder, mask_folder, name = cells[:3]
        mask = f"{mask_folder}/{name}"
        full = 4 + len(PARAMETERS)
        label = cells[full] if len(cells) > full else "1"
    if label not in ("0", "1"):
        raise ValueError(f"{place}: label {label!r}; 0 and 1 are known")
    image = f"{folder}/{name}"
    for relative in (image, mask or image):
        pure = PurePosixPath(relative)
        if pure.is_absolute() or ".." in pure.parts:
            raise ValueError(f"{place}: {relative!r} lies outside the archive")
    return Row(line, image, mask, int(label))
