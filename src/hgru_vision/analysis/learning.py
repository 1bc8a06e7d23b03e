"""The paper's measures of learning (Main, "Model implementation"), and how often it fails.

Accuracy on test images; the area under the learning curve (ALC); both "taken from the model that
achieved the highest accuracy across 5 separate runs". Beside them stand what the best of five
hides: mean and deviation over runs, and the share of runs that did not learn.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from hgru_vision.intervals import wilson_interval
from hgru_vision.papers.linsley2018 import RUNS
from hgru_vision.training.config import RunConfig
from hgru_vision.training.result import Result, area_under_curve

__all__ = [
    "FailureRate",
    "area_under_curve",
    "best_of",
    "failure_rate",
    "mean_and_sd",
    "name_of_alc",
]


def name_of_alc(runs: Iterable[RunConfig]) -> str:
    """Name the ALC of some runs: of several stages it is that of the last one alone.

    Examples
    --------
    >>> from hgru_vision.recipes import make_run
    >>> name_of_alc([make_run("paper")]), name_of_alc([make_run("curriculum")])
    ('ALC', 'ALC (last stage)')
    """
    return "ALC (last stage)" if any(len(run.stages) > 1 for run in runs) else "ALC"


def best_of(runs: Sequence[Result], n: int = RUNS) -> Result | None:
    """Find the run with the highest accuracy among the first `n`; its ALC goes with it.

    Later runs are left out: the best of more is higher for no better network.

    Parameters
    ----------
    runs
        In an order that does not depend on their results, such as that of their seeds. The first
        of equals is taken.
    n
        1 or more; the paper has 5.

    Returns
    -------
    run
        None where no run ended with an accuracy.
    """
    if n < 1:
        raise ValueError(f"n must be 1 or more; got {n}")
    ended = [run for run in runs[:n] if run.accuracy is not None]
    return max(ended, key=lambda run: run.accuracy or 0.0) if ended else None


def mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation, with n - 1; the deviation of one value is NaN.

    Examples
    --------
    >>> mean_and_sd([1.0, 2.0, 3.0])
    (2.0, 1.0)
    """
    if not values:
        raise ValueError("there is no value to take the mean of")
    return fmean(values), stdev(values) if len(values) > 1 else math.nan


@dataclass(frozen=True, kw_only=True)
class FailureRate:
    """How many of some runs failed, and the 95 % Wilson interval of their share."""

    failed: int
    runs: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Failed runs among all."""
        return self.failed / self.runs


def failure_rate(runs: Sequence[Result], bound: float) -> FailureRate:
    """Count the runs that diverged or ended below an accuracy.

    Parameters
    ----------
    runs
        Of one network on one task, with different seeds.
    bound
        Accuracy from which a run counts as having learnt, from 0 to 1.
    """
    if not runs:
        raise ValueError("there is no run to count failures of")
    if not 0 <= bound <= 1:
        raise ValueError(f"bound must be from 0 to 1; got {bound}")
    failed = sum(run.accuracy is None or run.accuracy < bound for run in runs)
    low, high = wilson_interval(failed, len(runs))
    return FailureRate(failed=failed, runs=len(runs), low=low, high=high)
