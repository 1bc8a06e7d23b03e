"""Do scores show what is known of people? Qualitative findings, each with a verdict and numbers.

Of people it is known that they find a contour less often the wider its paddles are spaced, more
often the more paddles it has, and not at all beyond some distance (Li and Gilbert, 2002). Each
function here asks one of these of one observer's scores.

Answers are taken as binomial. Networks trained anew for each condition differ by more than that:
give scores of several runs of each condition, say that they are `trained_apart`, and what runs
differ by is allowed for. Where there is one run of most, no rise is then taken for sure.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.table import Table
from scipy.optimize import isotonic_regression
from scipy.special import xlog1py, xlogy
from scipy.stats import norm

from hgru_vision.analysis.psychophysics import Along, Score, alike
from hgru_vision.intervals import wilson_interval

__all__ = [
    "Finding",
    "at_chance_when_wide",
    "falls_with_spacing",
    "findings",
    "findings_table",
    "rises_with_length",
]

Verdict = Literal["holds", "fails", "undecided"]
Floats = npt.NDArray[np.float64]
_Groups = dict[tuple[float, float], list[Score]]  # by curve, and level on it

ALPHA = 0.05
LEAST = 0.05  # a change of accuracy smaller than this is none; so near to chance is at chance
BEYOND = 2.0  # degrees
CHANCE = 0.5
TINY = 1e-12  # smaller probabilities mean nothing
REPETITIONS = 1000  # simulated curves
DEALS = 9_999  # of runs


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What scores say about one claim.

    Attributes
    ----------
    claim
        What is asked.
    verdict
        ``holds``, ``fails``, or ``undecided`` where the scores allow either.
    reason
        Why, in a few words.
    statistics
        The numbers that the verdict rests on, by name.
    """

    claim: str
    verdict: Verdict
    reason: str
    statistics: dict[str, float]


class _Curve(NamedTuple):
    """Accuracies of one length by spacing, or of one spacing by length."""

    level: Floats
    correct: Floats
    trials: Floats


def falls_with_spacing(
    scores: Sequence[Score],
    *,
    alpha: float = ALPHA,
    least: float = LEAST,
    trained_apart: bool = False,
) -> Finding:
    """Ask whether accuracy falls as paddles are spaced wider, and nowhere rises.

    Two tests, over all lengths together. The trend: Cochran and Armitage's, one-sided; of runs that
    are `trained_apart`, against that of the same runs dealt out to spacings at random. And the
    departure from a falling curve: the deviance of the best curves that never rise, against that
    of simulated flat ones. The claim holds if there is a trend and no departure. It fails if there
    is a departure, a trend the other way, or surely no change as large as `least`.

    Parameters
    ----------
    scores
        Of one observer, with numbers of trials. Several of one condition are repeated runs.
    alpha
        Error rate of each test.
    least
        Change of accuracy, from the closest spacing to the widest, that would matter.
    trained_apart
        Each score is of a training of its own, and runs, not answers, are what is counted. Unless
        half of the conditions have several, what trainings differ by is not known: the trend is
        then judged by answers, and a departure leaves the claim undecided.

    Returns
    -------
    finding
        With ``trend_z`` (below 0 if accuracy falls), ``trend_p``, ``departure_p``, the mean
        ``change`` from one end to the other and its interval, ``dispersion``, the variance of
        repeated runs over the binomial one (1 without repetitions), and ``repeated``, how many
        runs there are beyond one a condition.

    Examples
    --------
    >>> scores = [Score(observer="a", length=9, spacing=x, proportion=y, trials=500)
    ...           for x, y in ((0.27, 0.95), (0.35, 0.8), (0.47, 0.6))]
    >>> falls_with_spacing(scores).verdict, rises_with_length(scores).verdict
    ('holds', 'undecided')
    """
    return _trend(scores, "spacing", -1, alpha, least, trained_apart)


def rises_with_length(
    scores: Sequence[Score],
    *,
    alpha: float = ALPHA,
    least: float = LEAST,
    trained_apart: bool = False,
) -> Finding:
    """Ask whether accuracy rises with the paddles in a contour; see `falls_with_spacing`."""
    return _trend(scores, "length", 1, alpha, least, trained_apart)


def at_chance_when_wide(
    scores: Sequence[Score], *, beyond: float = BEYOND, least: float = LEAST
) -> Finding:
    """Ask whether accuracy is at chance where paddles are far apart.

    Each condition from that spacing on is looked at by itself, all of them with an error of 5 %
    together. The claim holds if the interval of every accuracy lies within `least` of one half, and
    fails if all of one lies outside. The numbers are those of the condition furthest from one half.

    Parameters
    ----------
    scores
        Of one observer, with numbers of trials.
    beyond
        Spacing in degrees. The paper's conditions end at 0.47, so that the default asks for others.
    least
        Distance from one half that would matter.

    Examples
    --------
    >>> wide = Score(observer="a", length=9, spacing=2.4, proportion=0.5, trials=4000)
    >>> at_chance_when_wide([wide]).verdict
    'holds'
    """
    _check(scores)
    claim = f"at chance from {beyond:g} degrees on"
    chosen = [score for score in scores if score.spacing >= beyond]
    if not chosen:
        widest = max(score.spacing for score in scores)
        reason = f"no condition is as wide; the widest is {widest:.2f} degrees"
        return Finding(claim=claim, verdict="undecided", reason=reason, statistics={})
    groups: dict[tuple[int, float], list[Score]] = defaultdict(list)
    for score in chosen:
        groups[score.length, score.spacing].append(score)
    dispersion, _ = _dispersion(groups.values())
    found = {}
    for condition, group in groups.items():
        correct, trials = _totals(group)
        ends = wilson_interval(correct / dispersion, trials / dispersion, 1 - ALPHA / len(groups))
        found[condition] = float(correct / trials), float(ends[0]), float(ends[1])
    worst = max(found, key=lambda condition: abs(found[condition][0] - CHANCE))
    share, low, high = found[worst]
    statistics = {"accuracy": share, "low": low, "high": high, "dispersion": dispersion}
    statistics["trials"] = float(_totals(chosen)[1])
    length, spacing = worst
    where = f" at length {length}, spacing {spacing:.2f}" if len(found) > 1 else ""
    shown = f"{share:.1%} correct{where}, {low:.1%} to {high:.1%}"
    verdict: Verdict = "undecided"
    if all(CHANCE - least <= low and high <= CHANCE + least for _, low, high in found.values()):
        verdict = "holds"
    elif any(low > CHANCE + least or high < CHANCE - least for _, low, high in found.values()):
        verdict = "fails"
    return Finding(claim=claim, verdict=verdict, reason=shown, statistics=statistics)


def findings(
    scores: Sequence[Score], *, beyond: float = BEYOND, trained_apart: bool = False
) -> list[Finding]:
    """Ask all that is known of people of one observer's scores.

    Trends are asked of the conditions nearer than `beyond`: those further are tasks of their own.
    """
    near = [score for score in scores if score.spacing < beyond] or scores
    return [
        falls_with_spacing(near, trained_apart=trained_apart),
        rises_with_length(near, trained_apart=trained_apart),
        at_chance_when_wide(scores, beyond=beyond),
    ]


def findings_table(
    scores: Iterable[Score], *, beyond: float = BEYOND, trained_apart: bool = False
) -> Table:
    """Give the findings of each observer as a table for the terminal."""
    table = Table(title="Does it behave as people do?")
    for column in ("observer", "claim", "verdict", "why"):
        table.add_column(column)
    own: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        own[score.observer].append(score)
    for observer, chosen in own.items():
        for found in findings(chosen, beyond=beyond, trained_apart=trained_apart):
            table.add_row(observer, found.claim, found.verdict, found.reason)
    return table


def _trend(
    scores: Sequence[Score],
    along: Along,
    sign: int,
    alpha: float,
    least: float,
    trained_apart: bool,
) -> Finding:
    _check(scores)
    verb = "rises" if sign > 0 else "falls"
    claim = f"accuracy {verb} with {along}"
    curves, groups = _curves(scores, along)
    dispersion, repeated = _dispersion(groups.values())
    if not curves:
        other = "length" if along == "spacing" else "spacing"
        reason = f"no {other} has scores at two {along}s or more"
        return Finding(claim=claim, verdict="undecided", reason=reason, statistics={})
    few = repeated < len(groups) / 2
    if trained_apart and not few:
        z, p = _dealt_out(groups, sign)
    else:
        z = _armitage(curves) / math.sqrt(dispersion)
        p = float(norm.sf(sign * z))
    departure_p = _departure(curves, sign > 0, dispersion)
    change, low, high = _change(curves, dispersion)
    statistics = {
        "trend_z": z, "trend_p": p, "departure_p": departure_p,
        "change": change, "change_low": low, "change_high": high,
        "dispersion": dispersion, "repeated": repeated,
    }  # fmt: skip
    shown = f"from end to end {change:+.1%} ({low:+.1%} to {high:+.1%})"
    verdict: Verdict = "undecided"
    if departure_p < alpha:
        against = "falls" if sign > 0 else "rises"
        verdict, reason = "fails", f"it {against} in places (p = {departure_p:.2g}); {shown}"
        if trained_apart and few:
            verdict, why = "undecided", "too few runs a condition to know what trainings differ by"
            reason = f"{reason}; {why}"
    elif -least < low and high < least:
        verdict, reason = "fails", f"it changes by less than {least:.0%}; {shown}"
    elif p < alpha:
        sure = f"p = {p:.2g}" if p >= TINY else f"p < {TINY:g}"
        verdict, reason = "holds", f"{sure}; {shown}"
    elif p > 1 - alpha:
        verdict, reason = "fails", f"the trend is the other way; {shown}"
    else:
        reason = f"no trend found (p = {p:.2g}), yet none excluded; {shown}"
    return Finding(claim=claim, verdict=verdict, reason=reason, statistics=statistics)


def _check(scores: Sequence[Score]) -> None:
    if not scores:
        raise ValueError("there are no scores to judge")
    names = sorted({score.observer for score in scores})
    if len(names) > 1:
        raise ValueError(f"a finding is of one observer; got {', '.join(names)}")
    for score in scores:
        if score.trials is None:
            raise ValueError(
                f"the number of trials of {score.observer!r} at length {score.length}, spacing "
                f"{score.spacing:g} is not known, so that no test can be made"
            )


def _totals(scores: Iterable[Score]) -> Floats:
    """Right answers and all, over scores with known trials."""
    return np.array([(score.correct, score.trials) for score in scores], np.float64).sum(axis=0)


def _curves(scores: Sequence[Score], along: Along) -> tuple[list[_Curve], _Groups]:
    """Give the curves of two levels or more, and the scores of each condition."""
    groups: _Groups = defaultdict(list)
    spacings = alike(score.spacing for score in scores)
    for score in scores:
        panel, level = float(score.length), score.spacing
        if along == "length":
            panel, level = spacings[score.spacing], float(score.length)
        groups[panel, level].append(score)
    panels: dict[float, list[tuple[float, Floats]]] = defaultdict(list)
    for panel, level in sorted(groups):
        panels[panel].append((level, _totals(groups[panel, level])))
    curves = [
        _Curve(np.array([level for level, _ in points]), *np.array([t for _, t in points]).T)
        for points in panels.values()
        if len(points) > 1
    ]
    return curves, groups


def _dispersion(groups: Iterable[Sequence[Score]]) -> tuple[float, int]:
    """Variance between runs of one condition over the binomial one, at least 1; from how many."""
    square, freedom = 0.0, 0
    for group in groups:
        correct, trials = np.array([(s.correct, s.trials) for s in group], np.float64).T
        share = correct.sum() / trials.sum()
        if len(group) > 1 and 0 < share < 1:
            square += float(np.sum((correct - trials * share) ** 2 / trials)) / (
                share * (1 - share)
            )
            freedom += len(group) - 1
    return max(1.0, float(square) / freedom) if freedom else 1.0, freedom


def _armitage(curves: Sequence[_Curve]) -> float:
    """Trend of right answers with the level, in standard errors; curves have their own means."""
    trend = variance = 0.0
    for level, correct, trials in curves:
        share = correct.sum() / trials.sum()
        centred = level - np.sum(trials * level) / trials.sum()
        trend += float(np.sum(correct * centred))
        variance += float(share * (1 - share) * np.sum(trials * centred**2))
    return trend / math.sqrt(variance) if variance > 0 else 0.0


def _dealt_out(groups: _Groups, sign: int) -> tuple[float, float]:
    """Trend over runs, in standard deviations of runs dealt out at random within their curves.

    And how often those show a trend as strong in the direction of `sign`.
    """
    random = np.random.default_rng(0)
    panels: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for (panel, level), runs in sorted(groups.items()):
        panels[panel] += [(level, run.proportion) for run in runs]
    seen, dealt = 0.0, np.zeros(DEALS)
    for points in panels.values():
        level, share = np.array(points).T
        centred = level - level.mean()
        seen += float(centred @ share)
        dealt += random.permuted(np.tile(share, (DEALS, 1)), axis=1) @ centred
    as_strong = int(np.sum(sign * dealt >= sign * seen - TINY))
    spread = float(dealt.std())
    return seen / spread if spread > 0 else 0.0, (1 + as_strong) / (1 + DEALS)


def _departure(curves: Sequence[_Curve], rising: bool, dispersion: float) -> float:
    """Probability that curves which never go the wrong way would seem to by so much.

    At most: flat curves, which are drawn for it, seem to more often than any others.
    """
    random = np.random.default_rng(0)
    seen = 0.0
    simulated = np.zeros(REPETITIONS)
    for _, correct, trials in curves:
        seen += _deviance(correct, trials, _monotone(correct, trials, rising))
        flat = correct.sum() / trials.sum()
        drawn = random.binomial(trials.astype(np.int64), flat, (REPETITIONS, len(trials)))
        for number, each in enumerate(drawn.astype(np.float64)):
            simulated[number] += _deviance(each, trials, _monotone(each, trials, rising))
    as_far = int(np.sum(simulated >= seen / dispersion - 1e-9))
    return (1 + as_far) / (1 + REPETITIONS)


def _monotone(correct: Floats, trials: Floats, rising: bool) -> Floats:
    """Most likely accuracies that never go the wrong way."""
    fitted = isotonic_regression(correct / trials, weights=trials, increasing=rising).x
    return np.clip(fitted, 0.0, 1.0)


def _deviance(correct: Floats, trials: Floats, fitted: Floats) -> float:
    share = correct / trials

    def likelihood(probability: Floats) -> float:
        return float(np.sum(xlogy(correct, probability) + xlog1py(trials - correct, -probability)))

    return 2 * (likelihood(share) - likelihood(fitted))


def _change(curves: Sequence[_Curve], dispersion: float) -> tuple[float, float, float]:
    """Accuracy at the last level less that at the first, mean over curves, with a 95 % interval."""
    ends = np.array([[(c[i], t[i]) for i in (-1, 0)] for _, c, t in curves])  # (curves, 2, 2)
    # With a success and a failure added the interval is right for accuracies near 0 and 1 too.
    correct, trials = ends[..., 0] + 1, ends[..., 1] + 2
    share = correct / trials
    middle = float(np.mean(share[:, 0] - share[:, 1]))
    error = math.sqrt(dispersion * float(np.sum(share * (1 - share) / trials))) / len(curves)
    plain = ends[..., 0] / ends[..., 1]
    half = float(norm.ppf(0.975)) * error
    return float(np.mean(plain[:, 0] - plain[:, 1])), middle - half, middle + half
