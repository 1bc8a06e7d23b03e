"""The Pathfinder challenge: Supp., "The Pathfinder challenge".

`PathfinderConfig` draws images by the algorithm of the paper's text, or by the ``ghost``
construction, which closes the shortcut that the text's algorithm leaves open. The authors'
released program, which differs from the text, is `ReleasedConfig` in `released.py`; both come
ready-made from `preset`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numba import njit

from hgru_vision.papers import linsley2018
from hgru_vision.stimuli import growth
from hgru_vision.stimuli._types import Array, Bytes, Indices
from hgru_vision.stimuli.growth import ANGLE, COS, FITS, SIN, Layout, Workspace, X, Y, grow_scene
from hgru_vision.stimuli.random import SCENE, STREAM_SIZE, draw_word, open_stream
from hgru_vision.stimuli.raster import draw_bar, draw_disc
from hgru_vision.stimuli.scenes import ALL_PATHS, Scenes, UnsatisfiableError, advise

CANVAS_RANGE = (32, 1024)
MOST_PATHS = 2**15 - 1  # their numbers are int16
# What binary drawing never misses; smaller ones may lie between the centres of pixels.
LEAST_BINARY = {"thickness": 1, "paddle_length": 1.5, "marker_radius": 0.75}
_ONE = np.uint64(1)


@dataclass(frozen=True, kw_only=True)
class PathfinderConfig:
    """A Pathfinder drawn by the paper's text. Lengths are in pixels; defaults are `paper`, k = 14.

    The text gives no sizes: the defaults are the released program's, halved like its canvas.

    Attributes
    ----------
    length
        k, paddles in a target path.
    canvas
        Height and width of the image, 32 to 1024.
    paddle_length, thickness
        l and d.
    margin
        m, from a paddle's end to the pivot at which the path turns: neighbours in a path are
        2 m cos(turn / 2) apart.
    clearance
        Least distance of any two paddles that are not neighbours in a path. The text dilates both
        by m and lets them not overlap, which is 2 m.
    continuity
        c; a turn has density max(cos(c * turn), 0), so |turn| < 90 degrees / c.
    seed_radius
        r, of the circle at the ends of whose diameter the target paths begin.
    edge_margin
        Width of the border that stays empty of paddles.
    marker_radius, markers
        Radius of the white discs, and whether there are two of them or, for segmentation, one.
    distractor_length, distractor_paddles
        Paddles in a distractor, and in all distractors together (the last one may be shorter).
    contrast
        Brightness of paddles; markers have 1.
    antialias
        Grey edges, or binary images.
    squared_turns
        Square the density of turns, as the released program does.
    ghost
        Place the target paths so that the markers' positions and directions say nothing about
        the label (preset `matched`), instead of at the ends of a diameter.

    Examples
    --------
    >>> PathfinderConfig(length=6, distractor_length=2, distractor_paddles=138).paddles
    150
    """

    length: int = 14
    canvas: int = linsley2018.CANVAS
    paddle_length: float = linsley2018.PADDLE_LENGTH / 2
    thickness: float = linsley2018.PADDLE_THICKNESS / 2
    margin: float = linsley2018.PADDLE_MARGIN / 2
    clearance: float = 2 * (linsley2018.PADDLE_MARGIN / 2)
    continuity: float = linsley2018.CONTINUITY
    seed_radius: float = linsley2018.SEED_DISTANCE / 4
    edge_margin: float = linsley2018.EDGE_PADDING / 2
    marker_radius: float = linsley2018.MARKER_RADIUS / 2
    markers: Literal[1, 2] = 2
    distractor_length: int = 4
    distractor_paddles: int = linsley2018.PADDLES - 28
    contrast: float = 1.0
    antialias: bool = False
    squared_turns: bool = False
    ghost: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        low, high = CANVAS_RANGE
        self._require("length", self.length >= 1, "1 or more")
        self._require("canvas", low <= self.canvas <= high, f"from {low} to {high} pixels")
        pixels = self.canvas**2
        self._require("length", self.length <= pixels, f"at most {pixels}, this canvas's pixels")
        for name in ("paddle_length", "thickness", "margin", "continuity", "marker_radius"):
            self._require(name, 0 < getattr(self, name) < math.inf, "greater than 0")
        for name in ("clearance", "seed_radius", "edge_margin"):
            self._require(name, 0 <= getattr(self, name) < math.inf, "0 or more")
        half = self.canvas / 2
        self._require("marker_radius", self.marker_radius < half, f"below {half:g} on this canvas")
        for name in ("margin", "clearance", "seed_radius", "edge_margin", "paddle_length"):
            room = self.canvas / 2 - self.thickness
            self._require(name, getattr(self, name) < room, f"below {room:g} on this canvas")
        self._require("markers", self.markers in (1, 2), "1 or 2")
        self._require("distractor_length", self.distractor_length >= 1, "1 or more")
        most = (MOST_PATHS - 2) * self.distractor_length
        good = 0 <= self.distractor_paddles <= most
        self._require("distractor_paddles", good, f"from 0 to {most}, {MOST_PATHS:,} paths in all")
        self._require("contrast", 1 / 255 <= self.contrast <= 1, "from 1/255 to 1")
        if not self.antialias:
            for name, least in LEAST_BINARY.items():
                what = "marker" if name == "marker_radius" else "paddle"
                self._require(
                    name,
                    getattr(self, name) >= least,
                    f"{least:g} pixels or more, so that no {what} is lost; antialias=True draws "
                    "smaller ones",
                )
        self._require(
            "length", not self.ghost or self.length >= 2, "2 or more in the ghost construction"
        )

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"{name} must be {expected}; got {getattr(self, name)!r}")

    @property
    def paddles(self) -> int:
        """Paddles in an image."""
        return 2 * self.length + self.distractor_paddles

    @property
    def size(self) -> int:
        """Height and width of the image."""
        return self.canvas

    @property
    def binary(self) -> bool:
        """Whether images hold 0 and 255 alone."""
        return not self.antialias and self.contrast == 1

    def scaled(self, factor: float) -> Self:
        """Return the same scene geometry on a canvas ``factor`` times as large, in whole pixels."""
        canvas = round(factor * self.canvas)
        factor = canvas / self.canvas
        names = (
            *("paddle_length", "thickness", "margin", "clearance"),
            *("seed_radius", "edge_margin", "marker_radius"),
        )
        lengths = {name: factor * getattr(self, name) for name in names}
        return replace(self, canvas=canvas, **lengths)

    def grow(self, seed: int, indices: Indices, labels: Indices) -> Scenes:
        """Grow the scenes of some images; see `scenes`."""
        scenes, status, most = self._try(seed, indices, labels, growth.USUAL_ATTEMPTS)
        if status == growth.TARGETS_DO_NOT_FIT and self._can_be_met():
            scenes, status, most = self._try(seed, indices, labels, growth.MOST_ATTEMPTS)
        if status != FITS:
            self._refuse(status, most)
        return scenes

    def _try(
        self, seed: int, indices: Indices, labels: Indices, attempts: int
    ) -> tuple[Scenes, int, int]:
        layout = self._layout()
        count = indices.size
        paddles = np.empty((count, layout.paddles, growth.PADDLE_SIZE))
        markers, directions = np.empty((count, 2, 2)), np.empty((count, 2))
        marked = np.empty((count, 2), np.int16)
        status, most = _grow_many(
            layout, growth.workspace(layout), seed, indices, labels, self.ghost, attempts,
            paddles, markers, directions, marked,
        )  # fmt: skip
        scenes = Scenes(
            centres=paddles[..., :ANGLE],
            angles=paddles[..., ANGLE],
            paths=np.broadcast_to(self._paths(), (count, layout.paddles)),
            markers=markers,
            directions=directions,
            marked=marked[:, [0, 0]] if self.markers == 1 else marked,
            strokes=paddles,
        )
        return scenes, status, most

    def paint(self, scenes: Scenes, only: Array | None, mask: bool, out: Bytes) -> None:
        """Draw scenes; see `PathfinderGenerator`."""
        if only is None:
            only = np.full((len(out), 2), ALL_PATHS, np.int16)
        small = any(getattr(self, name) < least for name, least in LEAST_BINARY.items())
        _paint_many(
            scenes.strokes, self._paths(), only, scenes.markers[:, : self.markers], scenes.marked,
            self.paddle_length / 2, self.thickness / 2, float(self.marker_radius),
            255.0 if mask else 255.0 * self.contrast, 255.0,
            self.antialias and (small or not mask), out,
        )  # fmt: skip
        if mask:
            np.minimum(out, 1, out=out)

    def _paths(self) -> Array:
        """Path of each paddle: two targets, then distractors."""
        paddle = np.arange(self.paddles)
        distractor = 2 + (paddle - 2 * self.length) // self.distractor_length
        paths = np.where(paddle < 2 * self.length, paddle // self.length, distractor)
        return paths.astype(np.int16)

    def _layout(self) -> Layout:
        # A centre is within l + clearance + d of all paddles that can be too close to it.
        cell = float(self.paddle_length + self.clearance + self.thickness)
        return Layout(
            length=self.length,
            canvas=float(self.canvas),
            half_length=self.paddle_length / 2,
            step=float(self.margin),
            largest_turn=self._largest_turn(),
            apart=float(self.clearance + self.thickness) ** 2,
            far_apart=cell**2,
            low=self.edge_margin + self.thickness / 2,
            continuity=float(self.continuity),
            squared=self.squared_turns,
            seed_radius=float(self.seed_radius),
            distractor_length=self.distractor_length,
            paddles=self.paddles,
            cells=math.ceil(self.canvas / cell) + 3,
            cells_per_pixel=1 / cell,
        )

    def _largest_turn(self) -> float:
        """Return the turn at which the inner corners of two neighbours are m apart.

        At a turn of 2 h they are 2 m cos h - d sin h apart.
        """
        m, d = self.margin, self.thickness
        return 2 * (math.acos(m / math.hypot(2 * m, d)) - math.atan2(d, 2 * m))

    def _fits(self) -> bool:
        """Whether all images would be grown without effort, judged by a few."""
        few = np.arange(16), np.zeros(16, np.int64)
        return self._try(0, *few, growth.ADVICE_ATTEMPTS)[1] == FITS

    def _can_be_met(self) -> bool:
        """Whether one of a few images can be grown."""
        label = np.zeros(1, np.int64)
        tried = (self._try(0, np.array([i]), label, growth.USUAL_ATTEMPTS) for i in range(16))
        return any(status == FITS for _, status, _ in tried)

    def _refuse(self, status: int, most: int) -> NoReturn:
        """Say what does not fit, and which values would."""
        if status == growth.TARGETS_DO_NOT_FIT:
            name, problem = "length", f"no two paths of {self.length} paddles could be grown"
            # In the ghost construction two paddles are always too close to each other, not three.
            others: Sequence[int] = range(self.length - 1, 1, -max(1, self.length // 12)) or [3]
        else:
            name, room = "distractor_paddles", most - 2 * self.length
            problem = f"only {room} paddles found room beside two paths of {self.length}"
            others = range(int(0.9 * room), -1, -max(1, room // 8))
        larger = [math.ceil(self.canvas * factor) for factor in (1.5, 2, 3, 4, 6, 8)]
        trials: list[tuple[str, float]] = [(name, value) for value in others]
        trials += [("canvas", canvas) for canvas in larger if canvas <= CANVAS_RANGE[1]]
        given = ["edge_margin", "clearance"]
        if name == "length" and not self.ghost:  # two paths may begin too near to each other
            given.append("seed_radius")
            trials.append(("seed_radius", PathfinderConfig.seed_radius))
        values = [f"{each}={getattr(self, each):g}" for each in given]
        raise UnsatisfiableError(
            f"{name}={getattr(self, name)} does not fit: {problem} on a canvas of {self.canvas} "
            f"pixels with {', '.join(values[:-1])} and {values[-1]}"
            + advise(self, trials, PathfinderConfig._fits)
        )


def check_types(config: Any) -> None:
    """Refuse a field of the wrong type, by name; whole numbers pass for floats."""
    for field in fields(config):
        value, wanted = getattr(config, field.name), field.type
        if wanted is bool:
            good = isinstance(value, bool)
        elif wanted is float:
            good = isinstance(value, (int, float)) and not isinstance(value, bool)
        elif wanted == tuple[int, ...]:
            good = isinstance(value, tuple)
        else:
            good = isinstance(value, int) and not isinstance(value, bool)
        if not good:
            name = wanted.__name__ if wanted in (bool, float, int) else str(wanted)
            raise TypeError(f"{field.name} must be of type {name}; got {value!r}")


@njit(cache=True, nogil=True)
def _grow_many(
    layout: Layout,
    work: Workspace,
    seed: int,
    indices: Array,
    labels: Array,
    ghost: bool,
    attempts: int,
    scenes: Array,
    markers: Array,
    directions: Array,
    marked: Array,
) -> tuple[int, int]:
    k = layout.length
    stream = np.empty(STREAM_SIZE, np.uint64)
    for row in range(indices.size):
        open_stream(stream, seed, indices[row], SCENE)
        scene = scenes[row]
        status, most = grow_scene(layout, work, stream, ghost, attempts, scene)
        if status != FITS:
            return status, most
        # One marker at the origin of a path, the other at the end of the same or of the other one.
        # In the ghost construction path 1 and the ghost share their origin, and that is marked.
        origin = 0 if ghost else np.int64(draw_word(stream) & _ONE)
        end = origin if labels[row] == 1 else 1 - origin
        tail, head = scene[origin * k], scene[end * k + k - 1]
        markers[row, 0, 0] = tail[X] - layout.half_length * tail[COS]
        markers[row, 0, 1] = tail[Y] - layout.half_length * tail[SIN]
        markers[row, 1, 0] = head[X] + layout.half_length * head[COS]
        markers[row, 1, 1] = head[Y] + layout.half_length * head[SIN]
        directions[row, 0] = tail[ANGLE] - math.copysign(math.pi, tail[ANGLE])
        directions[row, 1] = head[ANGLE]
        marked[row, 0], marked[row, 1] = origin, end
    return FITS, 0


@njit(cache=True, nogil=True)
def _paint_many(
    scenes: Array,
    paths: Array,
    only: Array,
    markers: Array,
    marked: Array,
    half_length: float,
    half_thickness: float,
    marker_radius: float,
    paddle_value: float,
    marker_value: float,
    antialias: bool,
    out: Array,
) -> None:
    for row in range(out.shape[0]):
        image = out[row]
        image[:] = 0
        first, second = only[row]
        for index in range(paths.size):
            path = paths[index]
            if first == ALL_PATHS or path in (first, second):
                x, y, _, cosine, sine = scenes[row, index]
                draw_bar(
                    image, x, y, cosine, sine, half_length, half_thickness, paddle_value, antialias
                )
        for marker in range(markers.shape[1]):
            path = marked[row, marker]
            if first == ALL_PATHS or path in (first, second):
                x, y = markers[row, marker]
                draw_disc(image, x, y, marker_radius, marker_value, antialias)
