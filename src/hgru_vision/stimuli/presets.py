"""Named Pathfinders, each with its source."""

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from hgru_vision.papers import linsley2018
from hgru_vision.stimuli.pathfinder import PathfinderConfig
from hgru_vision.stimuli.released import ReleasedConfig
from hgru_vision.stimuli.scenes import describe

Config = PathfinderConfig | ReleasedConfig


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A configuration at its usual length, and where it comes from."""

    config: Config
    source: str
    # Paddles in all distractors together, of the released program; `PADDLES` rules in the text's.
    distractor_budget: int = linsley2018.RELEASED_DISTRACTOR_PADDLES

    def at_length(self, length: int) -> Config:
        """Return the configuration with paths of ``length`` paddles, distractors to match."""
        shorter = max(1, length // linsley2018.DISTRACTOR_FRACTION)
        if isinstance(self.config, PathfinderConfig):
            return replace(
                self.config,
                length=length,
                distractor_length=shorter,
                distractor_paddles=max(0, linsley2018.PADDLES - 2 * length),
            )
        distractors = self.distractor_budget // shorter
        return replace(
            self.config, length=length, distractor_length=shorter, distractors=distractors
        )


_AUTHORS = ReleasedConfig()
_LRA = "Long Range Arena (Tay et al. 2021), lra_benchmarks/data/pathfinder.py"
_LRA_FILES = "Long Range Arena, as the images of its archive are (measured)"
_LRA_32 = replace(
    _AUTHORS, canvas=32, reduce=1, padding=1, seed_distance=7, margins=(1,), thickness=0.5,
    paddle_length=2, marker_radius=1.5, continuity=1.0, contrast=0.75,
)  # fmt: skip
_LRA_64 = replace(
    _AUTHORS, canvas=64, reduce=1, padding=1, seed_distance=12, margins=(1,), thickness=1.0,
    marker_radius=2.5, contrast=0.8,
)  # fmt: skip
_LRA_128 = replace(
    _AUTHORS, canvas=128, reduce=1, padding=1, seed_distance=20, margins=(2, 3), thickness=1.5,
    marker_radius=3.0, contrast=0.9,
)  # fmt: skip
_LRA_256 = replace(_AUTHORS, canvas=256, reduce=1)
_CRBP = "Linsley et al. 2020 (C-RBP): one marker, its path to be segmented; paddles as `authors`"

PRESETS: dict[str, Preset] = {
    "paper": Preset(
        config=PathfinderConfig(),
        source="Linsley et al. 2018, supplement; sizes of the released program, halved",
    ),
    "matched": Preset(
        config=PathfinderConfig(ghost=True),
        source="`paper` with its shortcut closed (ghost construction; ours)",
    ),
    "authors": Preset(
        config=_AUTHORS,
        source="github.com/drewlinsley/pathfinder, snakes2_wrapper.py; 300 pixels reduced to 150",
    ),
    "lra-32": Preset(config=_LRA_32, source=_LRA, distractor_budget=20),
    "lra-64": Preset(config=_LRA_64, source=_LRA, distractor_budget=22),
    "lra-128": Preset(config=_LRA_128, source=_LRA, distractor_budget=35),
    "lra-128-released": Preset(
        config=replace(_LRA_128, contrast=0.7), source=_LRA_FILES, distractor_budget=70
    ),
    "lra-256": Preset(config=_LRA_256, source=_LRA),
    **{
        f"crbp-{length}": Preset(config=replace(_AUTHORS, length=length, markers=1), source=_CRBP)
        for length in (14, 20, 25)
    },
}


def preset(name: str, length: int | None = None, **changes: Any) -> Config:
    """Return the configuration of a named Pathfinder.

    Parameters
    ----------
    name
        One of `PRESETS`.
    length
        Paddles in a target path; distractors get a third of it and their number follows. Defaults
        to the preset's own (14, or what its name says).
    changes
        Any other field of the configuration.

    Examples
    --------
    >>> preset("paper", length=6).distractor_paddles
    138
    >>> preset("authors", length=9, contrast=0.5).distractors
    10
    """
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {describe(list(PRESETS))}"
        raise ValueError(f"no preset {name!r}{hint}")
    chosen = PRESETS[name]
    length = chosen.config.length if length is None else length
    if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
        raise ValueError(f"length must be a whole number, 1 or more; got {length!r}")
    config = chosen.at_length(int(length))
    names = [field.name for field in fields(config)]
    for key in changes:
        if key not in names:
            near = get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {describe(names)}"
            raise TypeError(f"preset {name!r} has no parameter {key!r}; {hint}")
    return replace(config, **changes)
