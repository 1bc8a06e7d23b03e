"""The Pathfinder generator that the paper's authors released, on its pixel grid.

The released program (github.com/drewlinsley/pathfinder) differs from the paper's text: it grows
paths on whole pixels, squares the density of turns, keeps paddles apart by a grey mask, and draws
on a larger, anti-aliased canvas. `ReleasedConfig` repeats all that, with the two gaps of its
collision test, so that its images have the statistics of the authors' (`docs/differences.md`
lists the differences). What it does not repeat: its label is a coin for each image, here of two
images in a row exactly one is positive; its markers are drawn at 1/255 in the newest commit, here
white; its random numbers are unseeded.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

import numpy as np

from hgru_vision.papers import linsley2018
from hgru_vision.stimuli._types import Array, Bytes, Indices
from hgru_vision.stimuli.pathfinder import CANVAS_RANGE, MOST_PATHS, check_types
from hgru_vision.stimuli.released_growth import (
    TARGET_ATTEMPTS,
    USUAL_ATTEMPTS,
    draw_integers,
    grow_scenes,
    paint_scenes,
)
from hgru_vision.stimuli.scenes import ALL_PATHS, NO_PATH, Scenes, UnsatisfiableError, advise
from hgru_vision.stimuli.stamps import DEGREES, Stamps, make_stamps

ADVICE_ATTEMPTS = 500  # at a pair of targets; what is advised should be grown without effort


@dataclass(frozen=True, kw_only=True)
class ReleasedConfig:
    """A Pathfinder drawn by the authors' released program. Lengths are in pixels of its canvas.

    Attributes
    ----------
    length, distractor_length, distractors
        Paddles in a target path and in a distractor; number of distractors, of which those that
        find no room in five attempts are left out.
    canvas, reduce
        Size of the canvas, and the factor by which it is shrunk (2x2 means: 300 to 150).
    paddle_length, thickness, margins
        l, d and m. With several margins each image takes one of them at random.
    continuity
        c; a turn has density cos(c * turn)^2.
    seed_distance
        From the origin of one target path to that of the other.
    padding
        Width of the border that stays empty.
    marker_radius, markers
        Of the white discs, and whether there are two or, for segmentation, one.
    contrast
        Brightness of paddles; markers have 1.
    supersampling
        Resolution at which paddles and markers are drawn before they are shrunk.

    Examples
    --------
    >>> ReleasedConfig(length=6, distractor_length=2, distractors=15).size
    150
    """

    length: int = 14
    distractor_length: int = 4
    distractors: int = 7
    canvas: int = linsley2018.RELEASED_CANVAS
    reduce: int = linsley2018.RELEASED_CANVAS // linsley2018.CANVAS
    paddle_length: int = linsley2018.PADDLE_LENGTH
    thickness: float = linsley2018.PADDLE_THICKNESS
    margins: tuple[int, ...] = (linsley2018.PADDLE_MARGIN,)
    continuity: float = linsley2018.CONTINUITY
    seed_distance: int = linsley2018.SEED_DISTANCE
    padding: int = linsley2018.EDGE_PADDING
    marker_radius: float = linsley2018.MARKER_RADIUS
    markers: Literal[1, 2] = 2
    contrast: float = 1.0
    supersampling: int = 2

    def __post_init__(self) -> None:
        check_types(self)
        low, high = CANVAS_RANGE
        self._require("canvas", low <= self.canvas <= high, f"from {low} to {high} pixels")
        self._require(
            "reduce", self.reduce >= 1 and self.canvas % self.reduce == 0, "a divisor of canvas"
        )
        for name in ("length", "distractor_length", "paddle_length", "supersampling"):
            self._require(name, getattr(self, name) >= 1, "1 or more")
        pixels = self.canvas**2
        for name in ("length", "distractor_length"):
            few = getattr(self, name) <= pixels
            self._require(name, few, f"at most {pixels}, this canvas's pixels")
        most = MOST_PATHS - 2
        good = 0 <= self.distractors <= most
        self._require("distractors", good, f"from 0 to {most}, {MOST_PATHS:,} paths in all")
        self._require("markers", self.markers in (1, 2), "1 or 2")
        self._require("contrast", 1 / 255 <= self.contrast <= 1, "from 1/255 to 1")
        self._require("continuity", 0 < self.continuity < math.inf, "greater than 0")
        half = self.canvas / 2
        for name in ("marker_radius", "thickness"):
            good = 0 < getattr(self, name) < half
            self._require(name, good, f"greater than 0 and below {half:g} on this canvas")
        self._require("supersampling", self.supersampling <= 16, "at most 16")
        fine = self.thickness * self.supersampling
        self._require(
            "thickness", fine >= 1 and fine == round(fine), "a multiple of 1 / supersampling"
        )
        self._require(
            "margins",
            len(self.margins) > 0 and all(type(m) is int and m >= 1 for m in self.margins),
            "one or more whole numbers, 1 or more",
        )
        room = (self.canvas - 1) // 4
        for name in ("padding", "seed_distance", "paddle_length"):
            value = getattr(self, name)
            self._require(name, 1 <= value <= room, f"from 1 to {room} on this canvas")
        self._require("margins", max(self.margins) <= room, f"at most {room} on this canvas")

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"{name} must be {expected}; got {getattr(self, name)!r}")

    @property
    def paddles(self) -> int:
        """Paddles in an image in which all distractors found room."""
        return 2 * self.length + self.distractors * self.distractor_length

    @property
    def size(self) -> int:
        """Height and width of the image."""
        return self.canvas // self.reduce

    @property
    def binary(self) -> bool:
        """Whether images hold 0 and 255 alone; never, they are anti-aliased."""
        return False

    def _stamps(self, margin: int) -> Stamps:
        return make_stamps(
            self.paddle_length, float(self.thickness), margin,
            float(self.continuity), float(self.marker_radius), self.supersampling, self.reduce,
        )  # fmt: skip

    def _choose_margins(self, seed: int, indices: Indices) -> Array:
        chosen = np.zeros(indices.size, np.int64)
        if len(self.margins) > 1:
            draw_integers(seed, indices, len(self.margins), chosen)
        return chosen

    def grow(self, seed: int, indices: Indices, labels: Indices) -> Scenes:
        """Grow the scenes of some images; see `scenes`."""
        scenes = self._try(seed, indices, labels, USUAL_ATTEMPTS)
        if scenes is None and self._can_be_met():
            scenes = self._try(seed, indices, labels, TARGET_ATTEMPTS)
        if scenes is None:
            self._refuse()
        return scenes

    def _try(self, seed: int, indices: Indices, labels: Indices, attempts: int) -> Scenes | None:
        """Grow scenes with so many attempts at a pair of targets; None if one had none."""
        count, paddles = indices.size, self.paddles
        strokes = np.zeros((count, paddles, 4), np.int64)  # row, column, direction, margin
        paths = np.full((count, paddles), NO_PATH, np.int16)
        tips = np.zeros((count, 2, 2), np.int64)
        turned = np.zeros((count, 2), np.int64)
        marked = np.zeros((count, 2), np.int16)
        centres, angles = np.zeros((count, paddles, 2)), np.zeros((count, paddles))
        directions = np.zeros((count, 2))
        chosen = self._choose_margins(seed, indices)
        for choice, margin in enumerate(self.margins):
            rows = np.flatnonzero(chosen == choice)
            stamps = self._stamps(margin)
            mask = np.empty((self.canvas, self.canvas), np.uint8)
            failed = grow_scenes(
                stamps, self.length, self.distractor_length, self.distractors, self.padding,
                self.seed_distance, attempts, seed, indices, labels, rows, mask,
                np.empty_like(mask), strokes, paths, tips, turned, marked,
            )  # fmt: skip
            if failed:
                return None
            strokes[rows, :, 3] = choice
            angles[rows] = stamps.angles[strokes[rows, :, 2]]
            # A stroke starts at the tail of a seed, at the head of every other paddle.
            forward = np.where(strokes[rows, :, 2] < DEGREES, 0.5, -0.5) * self.paddle_length
            unit = np.stack([np.cos(angles[rows]), np.sin(angles[rows])], axis=-1)
            centres[rows] = strokes[rows, :, 1::-1] + forward[..., None] * unit
            directions[rows] = stamps.angles[turned[rows]]
        directions[:, 0] += np.where(directions[:, 0] < 0, np.pi, -np.pi)
        return Scenes(
            centres=(centres + 0.5) / self.reduce,
            angles=angles,
            paths=paths,
            markers=(tips[..., ::-1] + 0.5) / self.reduce,
            directions=directions,
            marked=marked[:, [0, 0]] if self.markers == 1 else marked,
            strokes=np.concatenate([strokes, np.pad(tips, ((0, 0), (0, 0), (0, 2)))], axis=1),
        )

    def paint(self, scenes: Scenes, only: Array | None, mask: bool, out: Bytes) -> None:
        """Draw scenes; see `PathfinderGenerator`."""
        if only is None:
            only = np.full((len(out), 2), ALL_PATHS, np.int16)
        canvas = np.empty((self.canvas, self.canvas), np.uint8)
        for choice, margin in enumerate(self.margins):
            rows = np.flatnonzero(scenes.strokes[:, 0, 3] == choice)
            stamps = self._stamps(margin)
            lines = stamps.lines
            if self.contrast != 1 and not mask:
                lines = np.round(self.contrast * lines).astype(np.uint8)
            paint_scenes(
                lines, stamps.marker, scenes.strokes, scenes.paths, only, scenes.marked,
                self.markers, rows, self.reduce, stamps.mask_from if mask else 0, canvas, out,
            )  # fmt: skip

    def _fits(self) -> bool:
        return self._try(0, np.arange(8), np.zeros(8, np.int64), ADVICE_ATTEMPTS) is not None

    def _can_be_met(self) -> bool:
        """Whether one of a few images can be grown."""
        label = np.zeros(1, np.int64)
        tried = (self._try(0, np.array([i]), label, USUAL_ATTEMPTS) for i in range(16))
        return any(scenes is not None for scenes in tried)

    def _refuse(self) -> NoReturn:
        """Say what does not fit, and which values would."""
        bare = replace(self, distractors=0)
        name = "length" if replace(bare, length=1)._fits() else "seed_distance"
        value = getattr(self, name)
        trials = [(name, smaller) for smaller in _smaller(value)]
        larger = [self.canvas * factor for factor in (2, 3, 4, 6, 8)]
        trials += [("canvas", canvas) for canvas in larger if canvas <= CANVAS_RANGE[1]]
        raise UnsatisfiableError(
            f"{name}={value} does not fit: no two paths of {self.length} paddles could be "
            f"grown on a canvas of {self.canvas} pixels with padding={self.padding} and "
            f"seed_distance={self.seed_distance}" + advise(bare, trials, ReleasedConfig._fits)
        )


def _smaller(value: int) -> Iterator[int]:
    """Give smaller and smaller values down to 1, each a fifth below the one before."""
    while value > 1:
        value = value * 4 // 5
        yield max(value, 1)
