"""Psychometric functions: how accuracy depends on a stimulus level, fitted by maximum likelihood.

The probability of a correct answer at level x is guess + (1 - guess - lapse) F(x), where F goes
from 0 to 1, or from 1 to 0 where accuracy falls. The threshold is the level at which F is one half,
the slope the steepness of F there, per unit of x; both mean the same for every shape.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize
from scipy.special import expit, xlog1py, xlogy
from scipy.stats import chi2

__all__ = ["Psychometric", "PsychometricFit", "fit_psychometric"]

Shape = Literal["logistic", "weibull"]
Floats = npt.NDArray[np.float64]

LARGEST_LAPSE = 0.1
_THRESHOLD, _SLOPE, _LAPSE = 0, 1, 2  # places in an array of parameters; slopes as logarithms
LEAST_LEVELS = 3


@dataclass(frozen=True, kw_only=True)
class Psychometric:
    """A psychometric function.

    Attributes
    ----------
    threshold
        Level at which F is one half: accuracy half-way between guessing and the best there is.
    slope
        Absolute value of the derivative of F at the threshold, per unit of the level.
    lapse
        Share of wrong answers where F is 1.
    guess
        Accuracy where F is 0: one half if there are two alternatives.
    shape
        ``logistic``, or ``weibull``, which is defined for levels from 0 on and is 0 there (1 if
        it falls).
    falling
        Whether accuracy falls with the level.

    Examples
    --------
    >>> curve = Psychometric(threshold=0.4, slope=5.0, lapse=0.02)
    >>> curve(np.array([0.4])).round(2).tolist()
    [0.74]
    """

    threshold: float
    slope: float
    lapse: float = 0.0
    guess: float = 0.5
    shape: Shape = "logistic"
    falling: bool = False

    def __post_init__(self) -> None:
        _check_form(self.shape, self.guess, self.lapse)
        if not self.slope > 0:
            raise ValueError(
                f"slope must be above 0; got {self.slope:g} (falling=True lets accuracy fall)"
            )
        if self.shape == "weibull" and not self.threshold > 0:
            raise ValueError(
                f"threshold must be above 0 for the weibull shape; got {self.threshold:g}"
            )

    def __call__(self, level: npt.ArrayLike) -> Floats:
        """Probability of a correct answer at each level."""
        parameters = np.array([self.threshold, math.log(self.slope), self.lapse])
        levels = np.asarray(level, np.float64)
        return _probability(levels, parameters, self.guess, self.shape, self.falling)


@dataclass(frozen=True, kw_only=True)
class PsychometricFit:
    """What `fit_psychometric` found.

    Attributes
    ----------
    curve
        The most likely function.
    threshold_interval, slope_interval
        Profile-likelihood intervals. An end that the data do not bound is infinite (0 for the lower
        end of the slope), as that of a threshold where all accuracies are at chance or at ceiling.
    deviance
        Twice the log-likelihood that a free accuracy at each level would gain.
    levels, trials
        Number of distinct levels, and of trials in all.
    """

    curve: Psychometric
    threshold_interval: tuple[float, float]
    slope_interval: tuple[float, float]
    deviance: float
    levels: int
    trials: int


def fit_psychometric(
    level: npt.ArrayLike,
    correct: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    shape: Shape = "logistic",
    falling: bool = False,
    guess: float = 0.5,
    largest_lapse: float = LARGEST_LAPSE,
    confidence: float | None = 0.95,
) -> PsychometricFit:
    """Fit threshold, slope and lapse by maximum likelihood, with profile-likelihood intervals.

    Thresholds are sought up to one range of the levels outside them, lapses up to `largest_lapse`.

    Parameters
    ----------
    level, correct, trials
        Stimulus level, right answers and all answers. Entries of one level count together.
    shape, falling, guess
        See `Psychometric`.
    largest_lapse
        0 fits no lapse.
    confidence
        Coverage that the intervals aim at; None, where the curve is all that is wanted, seeks none
        (nothing is bounded), in a fortieth of the time.

    Returns
    -------
    fit
        The curve and how well it is known.

    Shape
    -----
    level : float (n,); correct, trials : int (n,)

    Examples
    --------
    >>> truth = Psychometric(threshold=0.4, slope=8.0, falling=True)
    >>> level = np.linspace(0.2, 0.6, 9)
    >>> correct = np.round(1000 * truth(level))
    >>> fit = fit_psychometric(level, correct, np.full(9, 1000), falling=True)
    >>> round(fit.curve.threshold, 2), round(fit.curve.slope)
    (0.4, 8)
    """
    levels, right, total = _by_level(*_checked(level, correct, trials, shape))
    _check_settings(shape, guess, largest_lapse, confidence)

    def log_likelihood(parameters: Floats) -> Floats:
        """Log-likelihoods (...,) of parameters (..., 3)."""
        share = _probability(levels, parameters[..., None, :], guess, shape, falling)
        return np.sum(xlogy(right, share) + xlog1py(total - right, -share), axis=-1)

    low, high = _bounds(levels, shape, largest_lapse)
    best = _maximise(log_likelihood, low, high)
    peak = float(log_likelihood(best))

    def ends(place: int) -> tuple[float, float]:
        if confidence is None:
            return -math.inf, math.inf
        drop = float(chi2.ppf(confidence, 1)) / 2

        def above(value: float) -> float:
            """Profile log-likelihood, from the level that ends the interval."""
            fixed = low.copy(), high.copy()
            fixed[0][place] = fixed[1][place] = value
            return float(log_likelihood(_maximise(log_likelihood, *fixed))) - peak + drop

        found = []
        for bound, unbounded in ((low[place], -math.inf), (high[place], math.inf)):
            # At the bound itself the profile is flat: what is not rejected there never is.
            inside = bound == best[place] or above(bound) >= 0
            found.append(unbounded if inside else brentq(above, best[place], bound, xtol=1e-6))
        return found[0], found[1]

    threshold, slope, lapse = best.tolist()
    threshold_interval, (slope_low, slope_high) = ends(_THRESHOLD), ends(_SLOPE)
    if not all(map(math.isfinite, threshold_interval)):
        slope_low = -math.inf  # a threshold further away would allow any: not the data bound it
    share = right / total
    saturated = float(np.sum(xlogy(right, share) + xlog1py(total - right, -share)))
    return PsychometricFit(
        curve=Psychometric(
            threshold=threshold, slope=math.exp(slope), lapse=lapse,
            guess=guess, shape=shape, falling=falling,
        ),
        threshold_interval=threshold_interval,
        slope_interval=(math.exp(slope_low), math.exp(slope_high)),
        deviance=2 * (saturated - peak),
        levels=len(levels),
        trials=int(total.sum()),
    )  # fmt: skip


def _probability(
    level: Floats, parameters: Floats, guess: float, shape: Shape, falling: bool
) -> Floats:
    threshold, log_slope, lapse = np.moveaxis(parameters, -1, 0)
    slope = np.exp(log_slope)
    if shape == "logistic":
        steepness = 4 * slope * (level - threshold)
        rise = expit(-steepness if falling else steepness)
    else:
        # 1 - 2^-(x/t)^k has half its height at t and the slope k ln 2 / (2 t) there.
        power = 2 * threshold * slope / math.log(2)
        with np.errstate(divide="ignore"):  # at level 0, where F is 0
            logarithm = np.log(level / threshold)
        remains = np.exp2(-np.exp(np.minimum(power * logarithm, 30)))
        rise = remains if falling else 1 - remains
    share = guess + (1 - guess - lapse) * rise
    # An impossible answer is very unlikely, so that likelihoods stay finite.
    return np.clip(share, 1e-9, 1 - 1e-9)


def _bounds(levels: Floats, shape: Shape, largest_lapse: float) -> tuple[Floats, Floats]:
    distinct = np.unique(levels)
    span = distinct[-1] - distinct[0]
    lowest = distinct[0] - span
    if shape == "weibull":
        lowest = max(lowest, distinct[0] / 10)
    # Nearly flat over all levels; a step between two of them.
    flattest, steepest = 0.02 / span, 20 / np.diff(distinct).min()
    return (
        np.array([lowest, math.log(flattest), 0.0]),
        np.array([distinct[-1] + span, math.log(steepest), largest_lapse]),
    )


def _maximise(log_likelihood: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Find the best parameters within bounds: on a grid, then by descent from its best points."""
    axes = [
        np.linspace(a, b, count) if a < b else np.array([a])
        for a, b, count in zip(low, high, (37, 25, 4), strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    values = log_likelihood(grid)
    scale = np.where(high > low, high - low, 1.0)

    def cost(unit: Floats) -> float:
        return -float(log_likelihood(low + unit * scale))

    best, lowest = grid[np.argmax(values)], -float(values.max())
    for start in grid[np.argsort(-values)[:3]]:
        limits = [(0.0, 1.0 if b > a else 0.0) for a, b in zip(low, high, strict=True)]
        found = minimize(cost, (start - low) / scale, method="L-BFGS-B", bounds=limits)
        if found.fun < lowest:
            best, lowest = low + found.x * scale, found.fun
    return best


def _checked(
    level: npt.ArrayLike, correct: npt.ArrayLike, trials: npt.ArrayLike, shape: Shape
) -> tuple[Floats, Floats, Floats]:
    arrays = [np.asarray(each, np.float64) for each in (level, correct, trials)]
    shapes = [each.shape for each in arrays]
    if arrays[0].ndim != 1 or len(set(shapes)) != 1:
        raise ValueError(
            f"level, correct and trials must have one entry a condition; got shapes {shapes}"
        )
    levels, right, total = arrays
    distinct = len(np.unique(levels))
    if distinct < LEAST_LEVELS:
        raise ValueError(
            f"a threshold, a slope and a lapse need {LEAST_LEVELS} distinct levels or more; "
            f"got {distinct}"
        )
    for number, (x, k, n) in enumerate(zip(levels, right, total, strict=True)):
        if not math.isfinite(x) or (shape == "weibull" and x <= 0):
            wanted = "a number above 0 for the weibull shape" if shape == "weibull" else "a number"
            raise ValueError(f"level[{number}] must be {wanted}; got {x:g}")
        if not n >= 1:
            raise ValueError(f"trials[{number}] must be 1 or more; got {n:g}")
        if not 0 <= k <= n:
            raise ValueError(f"correct[{number}] must be from 0 to its {n:g} trials; got {k:g}")
    # Counts that are expected may have fractions, but not all of them below a single answer.
    if 0 < right.max() <= 1 and (right % 1).any():
        raise ValueError(f"correct are numbers of answers, no shares; got {right.max():g} at most")
    return levels, right, total


def _by_level(levels: Floats, right: Floats, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Sum up the answers of each level."""
    distinct, place = np.unique(levels, return_inverse=True)
    right, total = (np.bincount(place, each).astype(np.float64) for each in (right, total))
    return distinct, right, total


def _check_settings(
    shape: str, guess: float, largest_lapse: float, confidence: float | None
) -> None:
    _check_form(shape, guess, largest_lapse, lapse_name="largest_lapse")
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1; got {confidence:g}")


def _check_form(shape: str, guess: float, lapse: float, lapse_name: str = "lapse") -> None:
    """Check the shape of a curve and the shares between which it runs."""
    if shape not in get_args(Shape):
        raise ValueError(f"shape must be {' or '.join(get_args(Shape))}; got {shape!r}")
    if not 0 <= guess < 1:
        raise ValueError(f"guess must be from 0 to below 1; got {guess:g}")
    if not 0 <= lapse < 1 - guess:
        raise ValueError(
            f"{lapse_name} must be from 0 to below 1 - guess = {1 - guess:g}; got {lapse:g}"
        )
