"""What can be written: the protocol of a source, and items drawn from one with their checks."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

REQUIRED = ("stimulus", "target", "height", "width", "binary")
CHUNK = 1_024  # images asked of the source at once: 23 MB of 150x150


class Source(Protocol):
    """What can be written: item i is a pure function of `describe()` and i."""

    def __len__(self) -> int: ...

    def batch(self, indices: np.ndarray) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255; 0 and 255 alone if `binary`."""

    def labels(self, indices: np.ndarray) -> np.ndarray:
        """Labels, int64 (n,) in 0 to 255."""

    def segmentations(self, indices: np.ndarray) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}; asked for only if `target` is `"segmentation"`."""

    def describe(self) -> dict[str, Any]:
        """Return stimulus, config, seed, split, target, generator_version, height, width, binary.

        All of it as JSON can hold it.
        """


class Items(NamedTuple):
    """Items from `start` on: uint8 (n, H, W), int64 (n,) and, for segmentation, uint8 (n, H, W)."""

    start: int
    images: np.ndarray
    labels: np.ndarray
    masks: np.ndarray | None


def checked_description(source: Source) -> dict[str, Any]:
    """Describe a source as a manifest on disk will, or raise naming the key that is missing."""
    given = source.describe()
    try:
        # Through JSON and back, so that tuples compare equal to the lists of a manifest.
        description = json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:  # a number of numpy, a path, nan
        raise ValueError(f"source.describe() holds what JSON cannot: {error}") from error
    for key in REQUIRED:
        if key not in description:
            raise ValueError(f"source.describe() lacks {key!r}; it has {', '.join(description)}")
    for key in ("height", "width"):
        if type(description[key]) is not int:  # no manifest that says so is read
            raise ValueError(
                f"source.describe() has {key} = {description[key]!r}; a whole number is wanted"
            )
    return description


def draw(
    source: Source,
    description: dict[str, Any],
    start: int,
    stop: int,
    progress: Callable[[int], None] | None,
) -> Iterator[Items]:
    """Draw items `start` to `stop` from the source, checked, `CHUNK` at a time."""
    size = description["height"], description["width"]
    for first in range(start, stop, CHUNK):
        indices = np.arange(first, min(first + CHUNK, stop), dtype=np.int64)
        n = len(indices)
        images = _checked("batch", source.batch(indices), "uint8", (n, *size))
        if description["binary"] and np.any((images != 0) & (images != 255)):
            raise ValueError(
                "source.batch returned values other than 0 and 255, but source.describe() says "
                "binary: the shard would lose them"
            )
        labels = _checked("labels", source.labels(indices), "int64", (n,))
        if labels.min() < 0 or labels.max() > 255:
            raise ValueError(
                f"source.labels returned values from {labels.min()} to {labels.max()}; a shard "
                "holds 0 to 255"
            )
        masks = None
        if description["target"] == "segmentation":
            masks = _checked("segmentations", source.segmentations(indices), "uint8", (n, *size))
            if masks.max() > 1:
                raise ValueError(
                    f"source.segmentations returned {masks.max()}; a mask holds 0 and 1"
                )
        yield Items(first, images, labels, masks)
        if progress is not None:
            progress(first + n)


def _checked(name: str, array: np.ndarray, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(
            f"source.{name} returned {array.dtype} of shape {array.shape}; {dtype} of shape "
            f"{shape} was due"
        )
    return array
