"""Synthetic contours after Li and Gilbert (2002): Supp., "The Synthetic Contours Dataset".

A square field is tiled by cells, each with one paddle. Where a contour is present, the paddles of
neighbouring cells on a diagonal lie on one line; all others point anywhere. A shear of the grid
moves the cells of a diagonal apart or together and leaves the density of paddles as it is. Only
the places are sheared: paddles keep their length, and other directions stay uniform.

The sheared grid and everything random but the contour are drawn before the label is looked at.
What contour-absent images are made of is `ContourConfig.scattered`'s choice.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hgru_vision.papers import linsley2018
from hgru_vision.stimuli._types import Array, Bytes, Floats, Indices
from hgru_vision.stimuli.contour_kernels import (
    CONTOUR,
    EVERYTHING,
    RANDOM,
    SCATTERED,
    lay_out,
    mirrored,
    paint,
)
from hgru_vision.stimuli.growth import ANGLE, PADDLE_SIZE, X, Y
from hgru_vision.stimuli.pathfinder import CANVAS_RANGE, check_types
from hgru_vision.stimuli.random import balanced_labels
from hgru_vision.stimuli.scenes import (
    CHUNK,
    PADDLE,
    UnsatisfiableError,
    advise,
    available_threads,
    check_indices,
    check_seed,
)

# Fields that make a condition, with the length: conditions of one study may differ in them.
SPACED_BY = ("shear", "cells", "cell", "eccentricity")


@dataclass(frozen=True, kw_only=True)
class ContourConfig:
    """One condition of the Synthetic Contours Dataset. Lengths are in degrees of visual angle.

    Attributes
    ----------
    length
        l, paddles in a contour; the paper has 5, 9, 14 and 17.
    shear
        SF, from -1 to 1; the paper has -0.6 (closest spacing) to 0.6 (farthest).
    canvas
        Height and width of the image in pixels, 32 to 1024; the paper has 256, and 150.
    cells
        Cells along a side of the field.
    cell
        Width and height of a cell; the field is `cells` times as large.
    paddle_length
        Length of a paddle.
    thickness
        Thickness of a paddle, which the paper does not give; the default is a pixel of 256.
    eccentricity
        e, largest distance of a contour's middle from that of the image. The paper gives no value;
        at 0.75 every contour of its 28 conditions lies wholly in the image wherever its middle is,
        so that conditions do not differ in where contours are.
    contrast
        Brightness of paddles, from 1/255 to 1.
    antialias
        Grey edges, or binary images.
    scattered
        Contour-absent images have as many paddles in the contour's direction, each where such a
        paddle of a contour may lie, but each of a contour drawn anew: a few may be of the same one.
        Without it all their paddles point anywhere, and counting directions tells the images apart.
    shear_columns
        Move columns as often as rows. A contour then has one of four directions where there is a
        shear and one of two where there is none; without it, one of two at every shear.

    Examples
    --------
    >>> config = ContourConfig(length=9, shear=0.6)
    >>> config.paddles, round(config.spacing, 3), round(config.relative_spacing, 3)
    (1024, 0.472, 1.334)
    """

    length: int = 9
    shear: float = 0.0
    canvas: int = linsley2018.CONTOUR_CANVAS
    cells: int = linsley2018.GRID_CELLS
    cell: float = linsley2018.GRID_CELL
    paddle_length: float = linsley2018.CONTOUR_PADDLE_LENGTH
    thickness: float = 1 / 32
    eccentricity: float = 0.75
    contrast: float = 1.0
    antialias: bool = True
    scattered: bool = True
    shear_columns: bool = True

    def __post_init__(self) -> None:
        check_types(self)
        low, high = CANVAS_RANGE
        self._require("length", self.length >= 2, "2 or more")
        self._require("shear", -1 <= self.shear <= 1, "from -1 to 1")
        self._require("canvas", low <= self.canvas <= high, f"from {low} to {high} pixels")
        most = self.canvas // 2
        self._require("cells", 2 <= self.cells <= most, f"from 2 to {most} on this canvas")
        self._require("cell", 0 < self.cell < math.inf, "greater than 0")
        for name in ("paddle_length", "thickness"):
            good = 0 < getattr(self, name) <= self.cell
            self._require(name, good, f"above 0 and at most a cell, {self.cell:g}")
        self._require("eccentricity", 0 <= self.eccentricity < math.inf, "0 or more")
        self._require("contrast", 1 / 255 <= self.contrast <= 1, "from 1/255 to 1")
        if not self.antialias:  # a smaller one may lie between the centres of pixels
            for name, pixels in (("thickness", 1), ("paddle_length", 1.5)):
                least = pixels / self.pixels_per_degree
                self._require(
                    name,
                    getattr(self, name) >= least * (1 - 1e-9),
                    f"{pixels:g} pixels or more, {least:.3g} degrees on this canvas, so that no "
                    "paddle is lost; antialias=True draws thinner ones",
                )

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"{name} must be {expected}; got {getattr(self, name)!r}")

    @property
    def field(self) -> float:
        """Height and width of the image in degrees."""
        return self.cells * self.cell

    @property
    def paddles(self) -> int:
        """Paddles in an image, whatever the shear."""
        return self.cells**2

    @property
    def spacing(self) -> float:
        """Distance between neighbouring paddles of a contour, centre to centre, in degrees."""
        return self.cell * math.hypot(1 + self.shear, 1)

    @property
    def relative_spacing(self) -> float:
        """Spacing as a multiple of that without shear, the diagonal of a cell."""
        return self.spacing / (self.cell * math.sqrt(2))

    @property
    def extent(self) -> float:
        """Length of a contour from tip to tip, in degrees."""
        return (self.length - 1) * self.spacing + self.paddle_length

    @property
    def size(self) -> int:
        """Height and width of the image in pixels."""
        return self.canvas

    @property
    def binary(self) -> bool:
        """Whether images hold 0 and 255 alone."""
        return not self.antialias and self.contrast == 1

    @property
    def pixels_per_degree(self) -> float:
        """Pixels in a degree of visual angle."""
        return self.canvas / self.field


class ContourScenes(NamedTuple):
    """Where everything lies in n images of P paddles, in pixels.

    Paddle ``row * cells + column`` is that of a cell of the grid before it is sheared and mirrored,
    so that its neighbour in a contour is always the one a row and a column further.
    """

    paddles: Array  # (n, P, 5): x, y, angle and its cosine and sine
    kinds: npt.NDArray[np.int8]  # (n, P): CONTOUR, SCATTERED or RANDOM
    directions: Floats  # (n,), angle that a contour has, or would have


@dataclass(frozen=True, kw_only=True, eq=False)
class ContourStimulus:
    """One image and how it was made.

    Attributes
    ----------
    image
        (H, W) uint8.
    label
        1 if there is a contour.
    masks
        (3, H, W) bool: pixels of the contour, of paddles in its direction that were scattered, and
        of all others.
    paddles
        One row a paddle, a structured array with fields ``x``, ``y`` (pixels), ``angle`` (radians)
        and ``path``, the number of its mask.
    segmentation
        (H, W) uint8 in {0, 1}: the contour; all 0 where there is none.
    """

    image: Bytes
    label: int
    masks: npt.NDArray[np.bool_]
    paddles: Array
    segmentation: Bytes
    config: ContourConfig
    seed: int
    index: int


def conditions(count: int = linsley2018.CONTOUR_DATASETS, **changes: Any) -> list[ContourConfig]:
    """Return the conditions of the paper: every length at evenly spread shears.

    Parameters
    ----------
    count
        28, of seven shears (as the experiment says, and as the captions' shears need), or 20, of
        five (as the description of the dataset says).
    changes
        Other fields of the configurations, such as ``canvas=150``.

    Examples
    --------
    >>> [config.shear for config in conditions()[:7]]
    [-0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6]
    >>> len(conditions(20, canvas=150))
    20
    """
    lengths = linsley2018.CONTOUR_LENGTHS
    known = (linsley2018.CONTOUR_DATASETS, len(lengths) * linsley2018.CONTOUR_SHEARS)
    if count not in known:
        raise ValueError(f"count must be {known[0]} or {known[1]}; got {count!r}")
    largest = linsley2018.LARGEST_SHEAR
    shears = np.linspace(-largest, largest, count // len(lengths)).round(6).tolist()
    return [
        ContourConfig(length=length, shear=shear, **changes)
        for length in lengths
        for shear in shears
    ]


def labels(config: ContourConfig, seed: int, indices: npt.ArrayLike) -> Indices:
    """Labels of images, without drawing them; of images 2j and 2j + 1 one has a contour."""
    indices = check_indices(indices)
    out = np.empty(indices.size, np.int64)
    balanced_labels(check_seed(seed), indices, out)
    return out


def scenes(config: ContourConfig, seed: int, indices: npt.ArrayLike) -> ContourScenes:
    """Lay out images without painting them."""
    indices = check_indices(indices)
    grown = ContourScenes(
        paddles=np.empty((indices.size, config.paddles, PADDLE_SIZE)),
        kinds=np.full((indices.size, config.paddles), RANDOM, np.int8),
        directions=np.empty(indices.size),
    )
    lay_out(
        config.cells, config.length, float(config.shear), config.canvas / config.cells,
        config.scattered, _places_or_refuse(config), _directions(config), check_seed(seed), indices,
        labels(config, seed, indices), *grown,
    )  # fmt: skip
    return grown


def images(
    config: ContourConfig, seed: int, indices: npt.ArrayLike, threads: int | None = None
) -> Bytes:
    """Images as a (n, H, W) array of bytes; ``threads`` defaults to all cores."""
    return _paint(config, seed, indices, threads, EVERYTHING)


def segmentations(
    config: ContourConfig, seed: int, indices: npt.ArrayLike, threads: int | None = None
) -> Bytes:
    """Masks, uint8 (n, H, W) in {0, 1}: the pixels that contours light, none without a contour."""
    lit = _paint(config, seed, indices, threads, CONTOUR)
    return np.minimum(lit, 1, out=lit)


def draw(config: ContourConfig, seed: int, index: int) -> ContourStimulus:
    """One image with its label, masks and paddles.

    Examples
    --------
    >>> stimulus = draw(ContourConfig(length=5, shear=-0.6), seed=0, index=1)
    >>> stimulus.image.shape, len(stimulus.paddles), stimulus.masks.shape
    ((256, 256), 1024, (3, 256, 256))
    """
    grown = scenes(config, seed, [index])
    kinds = (CONTOUR, SCATTERED, RANDOM)
    masks = np.stack([_paint(config, seed, [index], 1, kind)[0] > 0 for kind in kinds])
    paddles = np.empty(config.paddles, PADDLE)
    paddles["x"], paddles["y"], paddles["angle"] = grown.paddles[0, :, [X, Y, ANGLE]]
    paddles["path"] = grown.kinds[0]
    return ContourStimulus(
        image=images(config, seed, [index], threads=1)[0],
        label=int(labels(config, seed, [index])[0]),
        masks=masks,
        paddles=paddles,
        segmentation=masks[CONTOUR].astype(np.uint8),
        config=config,
        seed=seed,
        index=index,
    )


def _paint(
    config: ContourConfig, seed: int, indices: npt.ArrayLike, threads: int | None, only: int
) -> Bytes:
    """Lay out and paint paddles of one kind, or of all, chunk by chunk on so many threads."""
    indices = check_indices(indices)
    out = np.empty((indices.size, config.size, config.size), np.uint8)

    def work(start: int) -> None:
        part = slice(start, start + CHUNK)
        grown = scenes(config, seed, indices[part])
        paint(
            grown.paddles, grown.kinds, only,
            config.paddle_length * config.pixels_per_degree / 2,
            config.thickness * config.pixels_per_degree / 2,
            255.0 * config.contrast, config.antialias, out[part],
        )  # fmt: skip

    starts = range(0, indices.size, CHUNK)
    workers = max(1, min(threads or available_threads(), len(starts)))
    with ThreadPoolExecutor(workers) as pool:  # the kernels release the GIL
        list(pool.map(work, starts))
    return out


@lru_cache(maxsize=256)
def _places(config: ContourConfig) -> Array:
    """Cells (column, row) of the first paddle of every contour that lies wholly in the image.

    They are those of the image that is not mirrored: rows are moved to the right, and a contour
    runs down to the right. A column may lie outside 0 to ``cells``: rows wrap around.
    """
    n, half = config.cells, (config.length - 1) / 2
    row, column = np.mgrid[0:n, -n : 2 * n]
    y = row + half + 0.5 - n / 2  # middle of the contour from that of the image, in cells
    x = column + half + 0.5 - n / 2 + config.shear * y
    near = np.hypot(x, y) <= config.eccentricity / config.cell + 1e-9
    cosine, sine, _ = _directions(config)[0]
    along, across = config.paddle_length / config.cell / 2, config.thickness / config.cell / 2
    wide = np.abs(x) + half * (1 + config.shear) + along * cosine + across * sine
    high = np.abs(y) + half + along * sine + across * cosine
    fits = near & (wide <= n / 2) & (high <= n / 2)
    return np.stack([column[fits], row[fits]], axis=1)


def _fits(config: ContourConfig) -> bool:
    # With more places than paddles, a scattered paddle always finds one that is free.
    return len(_places(config)) > (config.length if config.scattered else 0)


def _places_or_refuse(config: ContourConfig) -> Array:
    """Give the places, or say what would fit if a contour has none, or too few to scatter over."""
    found = _places(config)
    if _fits(config):
        return found
    needed = f" (scattered=True needs more than {config.length})" if config.scattered else ""
    trials = [("length", length) for length in range(config.length - 1, 1, -1)]
    widest = math.ceil(config.field / 2)
    trials += [("eccentricity", e) for e in range(1, widest + 1, max(1, widest // 10))]
    trials += [("scattered", False)]
    raise UnsatisfiableError(
        f"length={config.length} does not fit: a contour of {config.extent:.3g} degrees has "
        f"{len(found)} places{needed} in a field of {config.field:g} degrees with its middle at "
        f"most eccentricity={config.eccentricity:g} from the centre" + advise(config, trials, _fits)
    )


def _directions(config: ContourConfig) -> Floats:
    """Cosine, sine and angle of a contour in each of the mirror images, (4 or 2, 3)."""
    step = math.sqrt((1 + config.shear) ** 2 + 1)
    table = []
    for mirror in range(4 if config.shear_columns else 2):
        x, y = mirrored((1 + config.shear) / step, 1 / step, mirror)
        table.append((x, y, math.atan2(y, x)))
    return np.array(table)
