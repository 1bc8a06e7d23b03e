"""What the boundary benchmark tells of a set of predictions, and its file; see `boundaries.py`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from hgru_vision.analysis.matching import RADIUS
from hgru_vision.data.bsds_files import SPLIT_SIZES
from hgru_vision.stimuli._types import Floats

__all__ = ["THRESHOLDS", "BoundaryScore", "OperatingPoint", "f_measure", "read_scores"]

THRESHOLDS = 99  # the benchmark's own


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """Recall, precision and F at one threshold; None where every picture has its own."""

    threshold: float | None
    recall: float
    precision: float
    f: float


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundaryScore:
    """What the benchmark tells of a set of predictions.

    Parameters
    ----------
    ods
        Optimal dataset scale: the best F at one threshold for all pictures.
    ois
        Optimal image scale: each picture at its own best threshold.
    average_precision
        AP, the area under the precision-recall curve.
    thresholds, recall, precision
        The curve.
    pictures
        The best point of each.
    """

    ods: OperatingPoint
    ois: OperatingPoint
    average_precision: float
    thresholds: Floats
    recall: Floats
    precision: Floats
    pictures: dict[str, OperatingPoint]

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        return {
            "ods": asdict(self.ods),
            "ois": asdict(self.ois),
            "average_precision": self.average_precision,
            "curve": {
                "threshold": self.thresholds.tolist(),
                "recall": self.recall.tolist(),
                "precision": self.precision.tolist(),
                "f": f_measure(self.recall, self.precision).tolist(),
            },
            "pictures": {name: asdict(point) for name, point in self.pictures.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Make a score of what `to_json` gave; what else is there is passed over."""
        curve = value["curve"]
        points = value["pictures"].items()
        return cls(
            ods=OperatingPoint(**value["ods"]),
            ois=OperatingPoint(**value["ois"]),
            average_precision=value["average_precision"],
            thresholds=np.array(curve["threshold"]),
            recall=np.array(curve["recall"]),
            precision=np.array(curve["precision"]),
            pictures={name: OperatingPoint(**point) for name, point in points},
        )


def read_scores(folder: Path) -> dict[str, BoundaryScore]:
    """Read what `hgru eval-boundaries --json` wrote to a folder, by the files' names; best first.

    A name tells what was done otherwise than usual, too: another split, a part of it, maps with
    their non-maxima, another radius, another number of thresholds.

    Raises
    ------
    ValueError
        If a file holds something else.
    """
    scores = {}
    for path in sorted(folder.glob("*.json")):
        try:
            value = json.loads(path.read_text())
            scores[f"{path.stem}{_otherwise(value)}"] = BoundaryScore.from_json(value)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is no score, as hgru eval-boundaries --json writes it: {error!r}"
            ) from error
    return dict(sorted(scores.items(), key=lambda each: -each[1].ods.f))


def _otherwise(settings: Mapping[str, Any]) -> str:
    split, radius = settings.get("split", "test"), settings.get("radius", RADIUS)
    pictures, thresholds = len(settings["pictures"]), len(settings["curve"]["threshold"])
    told = [split] if split != "test" else []
    plural = "s" if pictures > 1 else ""
    told += [f"{pictures} picture{plural}"] if pictures != SPLIT_SIZES[split] else []
    told += ["no --nms"] if settings.get("nms") is False else []
    told += [f"radius {radius:g}"] if radius != RADIUS else []
    told += [f"{thresholds} thresholds"] if thresholds != THRESHOLDS else []
    return f" ({', '.join(told)})" if told else ""


def f_measure(recall: Any, precision: Any) -> Any:
    """Harmonic mean of recall and precision; 0 where both are."""
    total = recall + precision
    return 2 * recall * precision / np.where(total == 0, 1, total)
