"""Scenes of Pathfinder images and the ways to draw them.

A configuration knows how to *grow* scenes (where every paddle lies) and how to *paint* them. The
functions here put the two together: `images`, `segmentations`, `labels` and `cues` work on many
images at once and use all cores; `draw` gives one image with everything that is known of it.
Image i of a seed is the same whatever is asked for with it.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hgru_vision.stimuli._types import Array, Bytes, Floats, Indices
from hgru_vision.stimuli.audit import Cues
from hgru_vision.stimuli.random import balanced_labels

CHUNK = 64  # images that a thread grows and paints at a time: 1.4 MB at 150x150
INDEX_LIMIT = 2**62
SEED_LIMIT = 2**63

ALL_PATHS, NO_PATH = -1, -2


class UnsatisfiableError(ValueError):
    """A configuration whose images cannot be made: what it asks for does not fit."""


class Scenes(NamedTuple):
    """Where everything lies in n images of P paddles, in pixels of the image.

    Path 0 and 1 are the targets, the others distractors; a paddle with path ``NO_PATH`` is absent.
    An angle is in radians, from the x axis (to the right) towards the y axis (down), and points
    from a path's origin to its end.
    """

    centres: Floats  # (n, P, 2), x and y
    angles: Floats  # (n, P)
    paths: npt.NDArray[np.int16]  # (n, P)
    markers: Floats  # (n, 2, 2), x and y of the marked origin and of the marked end
    directions: Floats  # (n, 2), where the marked paddles point, outward from their paths
    marked: npt.NDArray[np.int16]  # (n, 2), the paths on which the markers lie
    strokes: Array  # (n, P, ...), what the configuration's own paint needs besides


class PathfinderGenerator(Protocol):
    """What a Pathfinder configuration can do; see `PathfinderConfig` and `ReleasedConfig`."""

    @property
    def length(self) -> int:
        """Paddles in a target path."""

    @property
    def canvas(self) -> int:
        """Height and width of the canvas that is drawn on."""

    @property
    def markers(self) -> int:
        """Number of markers, 1 or 2."""

    @property
    def marker_radius(self) -> float:
        """Radius of a marker in pixels of the canvas."""

    @property
    def size(self) -> int:
        """Height and width of the image."""

    @property
    def binary(self) -> bool:
        """Whether images hold 0 and 255 alone."""

    def grow(self, seed: int, indices: Indices, labels: Indices) -> Scenes:
        """Grow the scenes of some images."""

    def paint(self, scenes: Scenes, only: Array | None, mask: bool, out: Bytes) -> None:
        """Draw scenes: whole images, or as 0/1 masks; of all paths or of two a scene."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stimulus:
    """One Pathfinder image and how it was made.

    Attributes
    ----------
    image
        (H, W) uint8.
    label
        1 if the markers lie on one path, 0 if on two.
    masks
        (paths, H, W) bool: the pixels of each path; 0 and 1 are the targets, the rest distractors.
    paddles
        One row a paddle, a structured array with fields ``x``, ``y``, ``angle`` and ``path``.
    markers
        (2, 2): x and y of the two markers (one row if the configuration has one marker).
    segmentation
        (H, W) uint8 in {0, 1}: the marked paths with their markers.
    """

    image: Bytes
    label: int
    masks: npt.NDArray[np.bool_]
    paddles: Array
    markers: Floats
    segmentation: Bytes
    config: PathfinderGenerator
    seed: int
    index: int


PADDLE = np.dtype([("x", np.float64), ("y", np.float64), ("angle", np.float64), ("path", np.int16)])


def check_indices(indices: npt.ArrayLike) -> Indices:
    """Return image numbers as a flat int64 array; refuse what is not a whole number >= 0."""
    array = np.atleast_1d(np.asarray(indices))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"indices must be whole numbers in one dimension; got {array.dtype} of shape "
            f"{array.shape}"
        )
    if array.min() < 0 or array.max() >= INDEX_LIMIT:
        bad = array[(array < 0) | (array >= INDEX_LIMIT)][0]
        raise IndexError(f"index {bad} is outside 0 to 2**62 - 1")
    return array.astype(np.int64)


def check_seed(seed: int) -> int:
    """Return the seed; refuse one that is not a whole number from 0 to 2**63 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"seed must be a whole number; got {seed!r}")
    if not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"seed must be from 0 to 2**63 - 1; got {seed}")
    return int(seed)


def labels(config: PathfinderGenerator, seed: int, indices: npt.ArrayLike) -> Indices:
    """Labels of images, without drawing them.

    Of images 2j and 2j + 1 exactly one is positive. Where there is one marker all labels are 1.
    """
    indices = check_indices(indices)
    out = np.ones(indices.size, np.int64)
    if config.markers == 2:
        balanced_labels(check_seed(seed), indices, out)
    return out


def scenes(config: PathfinderGenerator, seed: int, indices: npt.ArrayLike) -> Scenes:
    """Grow the scenes of images without painting them."""
    indices = check_indices(indices)
    return config.grow(check_seed(seed), indices, labels(config, seed, indices))


def images(
    config: PathfinderGenerator, seed: int, indices: npt.ArrayLike, threads: int | None = None
) -> Bytes:
    """Images as a (n, H, W) array of bytes; ``threads`` defaults to all cores."""

    def fill(grown: Scenes, out: Bytes) -> None:
        config.paint(grown, None, False, out)

    return _paint_chunks(config, seed, indices, threads, fill)


def segmentations(
    config: PathfinderGenerator, seed: int, indices: npt.ArrayLike, threads: int | None = None
) -> Bytes:
    """Masks, (n, H, W) in {0, 1}, of the marked paths and their markers.

    One path where both markers lie on it (or where there is one marker), else both.
    """

    def fill(grown: Scenes, out: Bytes) -> None:
        config.paint(grown, grown.marked, True, out)

    return _paint_chunks(config, seed, indices, threads, fill)


def draw(config: PathfinderGenerator, seed: int, index: int) -> Stimulus:
    """One image with its label, masks, paddles and markers.

    Examples
    --------
    >>> from hgru_vision.stimuli import draw, preset
    >>> stimulus = draw(preset("paper", length=9), seed=0, index=3)
    >>> stimulus.image.shape, len(stimulus.paddles), stimulus.masks.shape
    ((150, 150), 150, (46, 150, 150))
    """
    grown = scenes(config, seed, [index])
    count = int(grown.paths.max()) + 1
    masks = np.empty((count, config.size, config.size), np.uint8)
    unmarked = grown._replace(marked=np.full((1, 2), NO_PATH, np.int16))
    for path in range(count):
        only = np.full((1, 2), path, np.int16)
        config.paint(unmarked, only, True, masks[path : path + 1])
    present = grown.paths[0] != NO_PATH
    paddles = np.empty(int(present.sum()), PADDLE)
    paddles["x"], paddles["y"] = grown.centres[0, present].T
    paddles["angle"], paddles["path"] = grown.angles[0, present], grown.paths[0, present]
    return Stimulus(
        image=images(config, seed, [index], threads=1)[0],
        label=int(labels(config, seed, [index])[0]),
        masks=masks.astype(bool),
        paddles=paddles,
        markers=grown.markers[0, : config.markers],
        segmentation=segmentations(config, seed, [index], threads=1)[0],
        config=config,
        seed=seed,
        index=index,
    )


def cues(config: PathfinderGenerator, seed: int, indices: npt.ArrayLike) -> Cues:
    """Return what an observer could read of images without following a path; see `audit`."""
    indices = check_indices(indices)
    grown = scenes(config, seed, indices)
    turns = np.diff(grown.angles[:, : 2 * config.length], axis=1)  # the targets come first
    turns[:, config.length - 1] = 0.0  # from the end of one path to the origin of the other
    turns = np.abs((turns + np.pi) % (2 * np.pi) - np.pi)
    ink = np.empty(indices.size)
    for start in range(0, indices.size, 4096):  # so that memory stays flat
        part = slice(start, start + 4096)
        ink[part] = images(config, seed, indices[part]).mean(axis=(1, 2)) / 255
    return Cues(
        label=labels(config, seed, indices),
        markers=grown.markers,
        directions=grown.directions,
        canvas=(config.size, config.size),
        ink=ink,
        curvature=turns.sum(axis=1),
    )


def available_threads() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _paint_chunks(
    config: PathfinderGenerator,
    seed: int,
    indices: npt.ArrayLike,
    threads: int | None,
    fill: Callable[[Scenes, Bytes], None],
) -> Bytes:
    indices = check_indices(indices)
    out = np.empty((indices.size, config.size, config.size), np.uint8)

    def work(start: int) -> None:
        part = slice(start, start + CHUNK)
        fill(scenes(config, seed, indices[part]), out[part])

    starts = range(0, indices.size, CHUNK)
    workers = min(threads or available_threads(), len(starts))
    if workers <= 1:
        for start in starts:
            work(start)
    else:
        # Threads, not numba's own parallel loops: those do not survive a fork, and one of their
        # back ends does not allow two Python threads at once. The kernels release the GIL.
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, starts))
    return out


def advise(config: Any, trials: Sequence[tuple[str, float]], fits: Callable[[Any], bool]) -> str:
    """End an error message with the first value of each field that would fit, if there is one."""
    fitting: dict[str, float] = {}
    for name, value in trials:
        if name not in fitting and fits(replace(config, **{name: value})):
            fitting[name] = value
    values = describe([f"{name}={value}" for name, value in fitting.items()])
    return f"; {values} would fit" if values else ""


def describe(values: Sequence[Any]) -> str:
    """Join alternatives for an error message: 'a, b or c'."""
    if not values:
        return ""
    *rest, last = [str(value) for value in values]
    return f"{', '.join(rest)} or {last}" if rest else last
