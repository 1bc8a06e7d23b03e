"""Stimuli as pure functions of (configuration, seed, index)."""

from hgru_vision.stimuli.pathfinder import PathfinderConfig
from hgru_vision.stimuli.presets import PRESETS, preset
from hgru_vision.stimuli.released import ReleasedConfig
from hgru_vision.stimuli.scenes import (
    Stimulus,
    UnsatisfiableError,
    cues,
    draw,
    images,
    labels,
    scenes,
    segmentations,
)

__all__ = [
    "PRESETS",
    "PathfinderConfig",
    "ReleasedConfig",
    "Stimulus",
    "UnsatisfiableError",
    "cues",
    "draw",
    "images",
    "labels",
    "preset",
    "scenes",
    "segmentations",
]
