"""Contour detection by networks and by people: scores, their files and their fits.

A score is the proportion of right answers of one observer in one condition of the synthetic
contours. Networks and people share the format, a CSV file with a header and these columns:

==================  =====================================================================
observer            name of the person or network
length              paddles in a contour, a whole number
spacing_deg         distance of neighbouring paddles of a contour, in degrees of visual angle
proportion_correct  right answers as a proportion, from 0 to 1 (chance is 0.5)
trials              number of answers; may be empty, or the column left out, if not known
==================  =====================================================================

Lines that begin with ``#`` are comments. No scores of people come with this package.
"""

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import nn

from hgru_vision.analysis.psychometric import (
    LEAST_LEVELS,
    PsychometricFit,
    Shape,
    fit_psychometric,
)
from hgru_vision.analysis.tables import read_table
from hgru_vision.data.contours import SyntheticContours
from hgru_vision.intervals import wilson_interval
from hgru_vision.training.evaluate import evaluate
from hgru_vision.training.files import replace_file

__all__ = [
    "COLUMNS",
    "Along",
    "Score",
    "alike",
    "can_be_fitted",
    "fit_scores",
    "read_scores",
    "score_two_alternatives",
    "score_yes_no",
    "write_scores",
]

Along = Literal["spacing", "length"]
COLUMNS = ("observer", "length", "spacing_deg", "proportion_correct", "trials")

# Spacings of this ratio at most are one: those that are read off a figure agree no better.
ONE_SPACING = 1.02


@dataclass(frozen=True, kw_only=True)
class Score:
    """How often one observer was right in one condition.

    Attributes
    ----------
    observer
        Name of a person or a network.
    length
        Paddles in a contour.
    spacing
        Distance of its neighbours in degrees of visual angle; see `ContourConfig.spacing`.
    proportion
        Right answers among all, from 0 to 1.
    trials
        All answers; None if not known.

    Examples
    --------
    >>> score = Score(observer="a", length=9, spacing=0.35, proportion=0.8, trials=100)
    >>> score.correct, [round(end, 3) for end in score.interval]
    (80, [0.711, 0.867])
    """

    observer: str
    length: int
    spacing: float
    proportion: float
    trials: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.length, Integral) or self.length < 1:
            raise ValueError(f"length must be a whole number from 1 on; got {self.length}")
        if not 0 <= self.proportion <= 1:
            raise ValueError(f"proportion must be from 0 to 1; got {self.proportion}")
        if not 0 < self.spacing < math.inf:
            raise ValueError(f"spacing must be greater than 0; got {self.spacing}")
        if self.trials is not None and self.trials < 1:
            raise ValueError(f"trials must be 1 or more, or None; got {self.trials}")

    @property
    def correct(self) -> int | None:
        """Right answers; None if the number of trials is not known."""
        return None if self.trials is None else round(self.proportion * self.trials)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson interval of the proportion; None if the number of trials is not known."""
        if self.trials is None or self.correct is None:
            return None
        return wilson_interval(self.correct, self.trials)


def score_yes_no(
    network: nn.Module,
    data: SyntheticContours,
    *,
    observer: str,
    device: torch.device | str | None = None,
    batch: int = 64,
) -> Score:
    """Let a network say of each image whether there is a contour; a trial is an image.

    Parameters
    ----------
    network
        From images to the logits of "absent" and "present".
    data
        One condition, on images that the network was not trained on.
    observer
        Name of the network.
    device, batch
        As in `evaluate`.

    Shape
    -----
    network : (B, 1, H, W) -> (B, 2)
    """
    found = evaluate(network, data, device=device, batch=batch)
    return _score(data, observer, found.accuracy, found.count)


def score_two_alternatives(
    network: nn.Module,
    data: SyntheticContours,
    *,
    observer: str,
    device: torch.device | str | None = None,
    batch: int = 64,
) -> Score:
    """Let a network say which of two images has the contour; a trial is a pair.

    People are asked so. Items 2j and 2j + 1 of `data` are a pair. The network chooses the one whose
    logits are more for "present"; equal ones count half, what is not finite counts as wrong.

    Parameters
    ----------
    network
        From images to the logits of "absent" and "present".
    data
        One condition, an even number of images that the network was not trained on.
    observer
        Name of the network.
    device
        Where the network is; that of its first parameter if not given.
    batch
        Images at a time.

    Shape
    -----
    network : (B, 1, H, W) -> (B, 2)

    Examples
    --------
    >>> class Undecided(nn.Module):
    ...     def forward(self, images):
    ...         return images.new_zeros(len(images), 2)
    >>> data = SyntheticContours(length=5, count=4, split="test")
    >>> score = score_two_alternatives(Undecided(), data, observer="undecided")
    >>> score.proportion, score.trials
    (0.5, 2)
    """
    if not isinstance(data, SyntheticContours):
        raise TypeError(f"data is {type(data).__name__}; give SyntheticContours, in pairs")
    if len(data) % 2:
        raise ValueError(f"trials are pairs of images; got an odd number of them, {len(data)}")
    evidence = _evidence(network, data, device, batch)
    label = data.labels(np.arange(len(data))).astype(bool)
    present, absent = evidence[label], evidence[~label]  # in the order of their pairs
    with np.errstate(invalid="ignore"):
        points = np.where(present > absent, 1.0, np.where(present == absent, 0.5, 0.0))
    points[~(np.isfinite(present) & np.isfinite(absent))] = 0.0
    return _score(data, observer, float(points.mean()), len(points))


def _evidence(
    network: nn.Module, data: SyntheticContours, device: torch.device | str | None, batch: int
) -> np.ndarray:
    """Logit of "present" less that of "absent", (n,)."""
    like = next(network.parameters(), torch.empty(0))
    device = like.device if device is None else torch.device(device)
    training = network.training
    network.eval()
    found = []
    try:
        with torch.no_grad():
            for start in range(0, len(data), batch):
                part = data.batch(np.arange(start, min(start + batch, len(data))))
                images = torch.from_numpy(part).to(device)[:, None].to(like.dtype).div_(255)
                logits = network(images)
                if logits.shape != (len(part), 2):
                    raise ValueError(
                        f"the network gives {tuple(logits.shape)} for {len(part)} images; two "
                        f"logits an image are wanted, {(len(part), 2)}"
                    )
                found.append((logits[:, 1] - logits[:, 0]).double().cpu().numpy())
    finally:
        network.train(training)
    return np.concatenate(found)


def _score(data: SyntheticContours, observer: str, proportion: float, trials: int) -> Score:
    config = data.config
    return Score(
        observer=observer,
        length=config.length,
        spacing=config.spacing,
        proportion=proportion,
        trials=trials,
    )


def alike(spacings: Iterable[float]) -> dict[float, float]:
    """Give for each spacing the smallest of those that are taken for the same.

    Examples
    --------
    >>> alike([0.47, 0.352, 0.35])
    {0.35: 0.35, 0.352: 0.35, 0.47: 0.47}
    """
    found: dict[float, float] = {}
    smallest = 0.0
    for spacing in sorted(set(spacings)):
        if spacing > smallest * ONE_SPACING:
            smallest = spacing
        found[spacing] = smallest
    return found


def can_be_fitted(scores: Sequence[Score], along: Along = "spacing") -> bool:
    """Tell whether scores of one curve have known trials and enough levels for `fit_scores`."""
    known = all(score.trials is not None for score in scores)
    return known and len({getattr(score, along) for score in scores}) >= LEAST_LEVELS


def fit_scores(
    scores: Sequence[Score],
    *,
    along: Along = "spacing",
    shape: Shape = "weibull",
    **settings: Any,
) -> PsychometricFit:
    """Fit a psychometric function to the scores of one observer.

    Accuracy falls with spacing and rises with length; one of them varies and the other does not.

    Parameters
    ----------
    scores
        With known numbers of trials.
    along
        What varies.
    shape, settings
        As in `fit_psychometric`; guessing gets one half.

    Examples
    --------
    >>> from hgru_vision.analysis.psychometric import Psychometric
    >>> truth = Psychometric(threshold=0.4, slope=6.0, shape="weibull", falling=True)
    >>> scores = [Score(observer="a", length=9, spacing=x, proportion=float(truth(x)), trials=1000)
    ...           for x in (0.27, 0.32, 0.37, 0.42, 0.47)]
    >>> round(fit_scores(scores).curve.threshold, 2)
    0.4
    """
    if along not in get_args(Along):
        raise ValueError(f"along must be {' or '.join(get_args(Along))}; got {along!r}")
    if not scores:
        raise ValueError("there are no scores to fit")
    other = {"spacing": "length", "length": "spacing"}[along]
    for name in ("observer", other):
        values = sorted({getattr(score, name) for score in scores})
        one = len(values) == 1 or (name == "spacing" and len(set(alike(values).values())) == 1)
        if not one:
            raise ValueError(
                f"a fit along {along} is of one {name}; got {', '.join(map(str, values))}"
            )
    correct, trials = [], []
    for score in scores:
        if score.trials is None or score.correct is None:
            raise ValueError(
                f"the number of trials of {score.observer!r} at length {score.length}, spacing "
                f"{score.spacing:g} is not known, so that no likelihood can be fitted"
            )
        correct.append(score.correct)
        trials.append(score.trials)
    return fit_psychometric(
        [getattr(score, along) for score in scores],
        correct,
        trials,
        shape=shape,
        falling=along == "spacing",
        **settings,
    )


def write_scores(scores: Iterable[Score], path: str | os.PathLike[str]) -> None:
    """Write scores to a CSV file, whole or not at all.

    Raises
    ------
    ValueError
        Where `read_scores` would refuse the file: the name of an observer begins with ``#``, as
        comments do, is empty, has spaces around it or more than one line, or two scores are of
        one condition.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    written = set()
    for score in scores:
        if score.observer.startswith("#"):
            raise ValueError(f"an observer is {score.observer!r}; lines with # first are comments")
        if [score.observer] != score.observer.strip().splitlines():
            raise ValueError(
                f"an observer is {score.observer!r}; one line without spaces around it is wanted"
            )
        condition = score.observer, score.length, score.spacing
        if condition in written:
            raise ValueError(
                f"two scores are of {score.observer!r} at length {score.length}, spacing "
                f"{score.spacing:g}; a file has one of each, such as `pooled` gives"
            )
        written.add(condition)
        trials = "" if score.trials is None else score.trials
        row = (score.observer, score.length, repr(score.spacing), repr(score.proportion), trials)
        writer.writerow(row)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.getvalue().encode())


def read_scores(path: str | os.PathLike[str]) -> list[Score]:
    """Read scores from a CSV file; the columns are told above.

    Raises
    ------
    ValueError
        Naming the file, the line and the column, and what was expected there.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> made_up = [Score(observer="nobody", length=9, spacing=0.35, proportion=0.8, trials=100)]
    >>> write_scores(made_up, file)
    >>> read_scores(file) == made_up
    True
    """
    scores: dict[tuple[str, int, float], tuple[str, Score]] = {}
    for row in read_table(path, COLUMNS, optional=("trials",), rows="scores"):
        spacing = row.number("spacing_deg")
        if spacing == 0:
            raise ValueError(f"{row.place}, column spacing_deg: 0; a number above 0 is wanted")
        score = Score(
            observer=row.name("observer"),
            length=row.whole("length"),
            spacing=spacing,
            proportion=row.number("proportion_correct", high=1),
            trials=row.whole("trials") if row.cells.get("trials") else None,
        )
        key = score.observer, score.length, score.spacing
        if key in scores:
            before = scores[key][0].rpartition(", ")[2]  # of the same file: its line alone
            raise ValueError(
                f"{row.place}: {score.observer!r} at length {score.length}, spacing "
                f"{score.spacing:g} is already in {before}"
            )
        scores[key] = row.place, score
    return [score for _, score in scores.values()]
