"""The boundary score of BSDS500 without MATLAB: ODS, OIS, AP and the precision-recall curve.

As the benchmark of Arbelaez et al. (2011, IEEE Trans. PAMI 33:898) has it. At each of 99 thresholds
the predicted map is cut and thinned, and matched with each annotator's map on its own. Recall: of
all boundary pixels of all annotators, the share that was matched. Precision: of the predicted
pixels, the share that was matched with any annotator. Both are ratios of sums over pictures.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hgru_vision.analysis.boundary_score import (
    THRESHOLDS,
    BoundaryScore,
    OperatingPoint,
    f_measure,
)
from hgru_vision.analysis.matching import RADIUS, Neighbourhood, match_places
from hgru_vision.analysis.thinning import thin
from hgru_vision.stimuli._types import Array, Floats, Indices

__all__ = [
    "THRESHOLDS",
    "Annotated",
    "Counts",
    "check_map",
    "count_matches",
    "score_boundaries",
    "spread_thresholds",
    "summarise",
]

BETWEEN = 100  # points between two thresholds at which the best F is looked for
RECALL_STEP = 0.01  # of the sum that is the average precision


class Annotated(Protocol):
    """Pictures with several people's boundary maps, such as `hgru_vision.BSDS500`."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the pictures."""

    def annotations(self, name: str) -> Array:
        """Boundary maps of one picture, (annotators, H, W)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """Boundary pixels of one picture, or of several together, at each threshold.

    Parameters
    ----------
    found
        Annotated pixels that were matched, summed over annotators.
    annotated
        Annotated pixels, summed over annotators.
    right
        Predicted pixels that were matched with at least one annotator.
    predicted
        Predicted pixels.

    Shape
    -----
    all : int64 (thresholds,)
    """

    found: Indices
    annotated: Indices
    right: Indices
    predicted: Indices

    @property
    def recall(self) -> Floats:
        """Share of the annotated pixels that were found; 0 where there are none."""
        return self.found / np.maximum(self.annotated, 1)

    @property
    def precision(self) -> Floats:
        """Share of the predicted pixels that are right; 0 where there are none."""
        return self.right / np.maximum(self.predicted, 1)


def spread_thresholds(count: int = THRESHOLDS) -> Floats:
    """Spread thresholds evenly between 0 and 1, both excluded.

    >>> spread_thresholds(4).round(2).tolist()
    [0.2, 0.4, 0.6, 0.8]
    """
    if count < 1:
        raise ValueError(f"there must be 1 threshold or more; got {count}")
    return np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count)


def check_map(prediction: Array, shape: tuple[int, ...], name: str) -> Floats:
    """Check a predicted boundary map; return it as float64.

    Parameters
    ----------
    prediction
        The map.
    shape
        (H, W) of its picture.
    name
        Of the map, for what is said of a wrong one.
    """
    found = np.asarray(prediction)
    if found.shape != shape:
        size = "x".join(map(str, found.shape)) or "a single number"
        raise ValueError(f"{name} is {size}; its picture is {shape[0]}x{shape[1]} (rows x columns)")
    if found.dtype.kind not in "fb":
        raise ValueError(f"{name} holds {found.dtype}; probabilities as floats are wanted")
    values = found.astype(np.float64)
    wrong = ~((values >= 0) & (values <= 1))  # NaN too
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{name} has {values[row, column]:.6g} at row {row}, column {column}; boundary "
            "probabilities from 0 to 1 are wanted"
        )
    return values


def count_matches(
    prediction: Array,
    annotations: Array,
    thresholds: Floats | None = None,
    *,
    radius: float = RADIUS,
) -> Counts:
    """Match one picture's predicted boundaries with its annotators' at each threshold.

    Parameters
    ----------
    prediction
        Probability of a boundary; at or above a threshold it counts as one, and is thinned.
    annotations
        What each annotator marked.
    thresholds
        Ascending; the benchmark's 99 where not given.
    radius
        Largest distance of two pixels that match, as a share of the picture's diagonal.

    Shape
    -----
    prediction : (H, W) in [0, 1]; annotations : (annotators, H, W)

    Examples
    --------
    >>> prediction = np.zeros((40, 60))
    >>> prediction[20, 10:50] = 0.7
    >>> annotations = np.zeros((2, 40, 60))
    >>> annotations[0, 20, 10:50] = annotations[1, 5, :] = 1
    >>> counts = count_matches(prediction, annotations, np.array([0.5, 0.9]))
    >>> counts.recall.tolist(), counts.precision.tolist()
    ([0.4, 0.0], [1.0, 0.0])
    """
    annotations = np.asarray(annotations)
    if annotations.ndim != 3 or not len(annotations):
        raise ValueError(
            "annotations must be (annotators, H, W), one annotator or more; got shape "
            f"{annotations.shape}"
        )
    prediction = check_map(prediction, annotations.shape[1:], "the prediction")
    thresholds = spread_thresholds() if thresholds is None else thresholds
    near = Neighbourhood.of(prediction.shape, radius)
    people = [near.places(annotation) for annotation in annotations]
    found, right, predicted = np.zeros((3, len(thresholds)), np.int64)
    before: Array | None = None
    for level, threshold in enumerate(thresholds):
        mask = prediction >= threshold
        if before is not None and np.array_equal(mask, before):
            found[level], right[level] = found[level - 1], right[level - 1]
            predicted[level] = predicted[level - 1]
            continue
        before = mask
        places = near.places(thin(mask))
        matched = np.zeros(len(places), bool)
        for person in people:
            by_person, of_person = match_places(places, person, near)
            matched |= by_person
            found[level] += of_person.sum()
        right[level], predicted[level] = matched.sum(), len(places)
    annotated = np.full(len(thresholds), sum(map(len, people)), np.int64)
    return Counts(found=found, annotated=annotated, right=right, predicted=predicted)


def summarise(counts: Mapping[str, Counts], thresholds: Floats) -> BoundaryScore:
    """Put the counts of all pictures together to the benchmark's numbers.

    Parameters
    ----------
    counts
        Of each picture, at the same thresholds.
    thresholds
        Ascending.
    """
    if not counts:
        raise ValueError("there is no picture to score")
    total = _add(counts.values())
    best = {name: int(np.argmax(f_measure(c.recall, c.precision))) for name, c in counts.items()}
    own = _add(
        Counts(**{key: value[[best[name]]] for key, value in vars(c).items()})
        for name, c in counts.items()
    )
    recall, precision = float(own.recall[0]), float(own.precision[0])
    return BoundaryScore(
        ods=best_point(thresholds, total.recall, total.precision),
        ois=OperatingPoint(
            threshold=None,
            recall=recall,
            precision=precision,
            f=float(f_measure(recall, precision)),
        ),
        average_precision=average_precision(total.recall, total.precision),
        thresholds=thresholds,
        recall=total.recall,
        precision=total.precision,
        pictures={
            name: best_point(thresholds, each.recall, each.precision)
            for name, each in counts.items()
        },
    )


def best_point(thresholds: Floats, recall: Floats, precision: Floats) -> OperatingPoint:
    """Find the best F on the curve, between its points too (recall and precision linear)."""
    places = np.arange(len(thresholds))
    if len(places) > 1:
        between = np.linspace(0, 1, BETWEEN)
        places = np.append((places[:-1, None] + between[:-1]).reshape(-1), places[-1])
    at = [np.interp(places, np.arange(len(thresholds)), each) for each in (recall, precision)]
    best = int(np.argmax(f_measure(*at)))
    return OperatingPoint(
        threshold=float(np.interp(places[best], np.arange(len(thresholds)), thresholds)),
        recall=float(at[0][best]),
        precision=float(at[1][best]),
        f=float(f_measure(at[0][best], at[1][best])),
    )


def average_precision(recall: Floats, precision: Floats) -> float:
    """Take the area under the curve as the benchmark does.

    A sum over recalls 0, 0.01, ..., 1 of the precision, linear between the points of the curve
    and 0 beyond both its ends. So a curve that starts at high recall loses what lies before it.
    """
    recalls, first = np.unique(recall, return_index=True)
    if len(recalls) < 2:
        return 0.0
    steps = np.arange(round(1 / RECALL_STEP) + 1) * RECALL_STEP
    inside = np.interp(steps, recalls, precision[first], left=0, right=0)
    return float(inside.sum() * RECALL_STEP)


def score_boundaries(
    predictions: Mapping[str, Array],
    data: Annotated,
    *,
    thresholds: int = THRESHOLDS,
    radius: float = RADIUS,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> BoundaryScore:
    """Score the boundary maps of a whole data set.

    Parameters
    ----------
    predictions
        Boundary map of each picture by its id, such as a dict or a `PredictionFolder`.
    data
        The pictures with their annotations, such as ``BSDS500(root, split="test")``.
    thresholds
        Their number.
    radius
        Largest distance of two pixels that match, as a share of the picture's diagonal.
    workers
        Pictures at a time; all cores where not given.
    progress
        Called with the number of pictures done.
    """
    missing = [name for name in data.ids if name not in predictions]
    if missing:
        raise ValueError(
            f"{len(missing)} of {len(data.ids)} pictures have no prediction; the first is "
            f"{missing[0]}"
        )
    levels = spread_thresholds(thresholds)

    def count(name: str) -> Counts:
        annotations = data.annotations(name)
        prediction = check_map(predictions[name], annotations.shape[1:], f"prediction {name}")
        return count_matches(prediction, annotations, levels, radius=radius)

    counts = {}
    # Threads: what takes time releases the interpreter, and nothing has to be sent.
    with ThreadPoolExecutor(workers or _cores()) as pool:
        jobs = {pool.submit(count, name): name for name in data.ids}
        try:
            for done, job in enumerate(as_completed(jobs), 1):
                counts[jobs[job]] = job.result()
                if progress is not None:
                    progress(done)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return summarise({name: counts[name] for name in data.ids}, levels)


def _add(counts: Iterable[Counts]) -> Counts:
    each = [vars(c) for c in counts]
    return Counts(**{key: np.sum([c[key] for c in each], axis=0) for key in each[0]})


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # those that this process may use
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
