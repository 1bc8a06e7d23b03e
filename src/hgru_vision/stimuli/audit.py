"""Audit of a Pathfinder: how well its label can be read without following a path.

The task is meant to be solved by tracing, yet where the markers are and where the marked paddles
point may already give the answer away. `audit` measures by how much: small probes are trained on a
few numbers of each image and judged on images that they have not seen. `stratify` then asks whether
a network has learnt that shortcut, from its accuracy where the probe is wrong.

The probes are told which marker stands at the path's origin (the first) and which at its far end,
which an observer of the image is not: they have more to go by than anyone who does not follow
paths. What they find is still what these probes can find; a leak of another form may stay unseen.
"""

import json
from dataclasses import asdict, dataclass, fields
from functools import partial

import numpy as np
import numpy.typing as npt
from rich.table import Table

from hgru_vision.intervals import wilson_interval
from hgru_vision.stimuli._types import Floats, Indices
from hgru_vision.stimuli.probes import (
    Cues,
    Probe,
    feature_sets,
    lookup,
    multilayer_perceptron,
    out_of_fold,
    quadratic_logistic,
    stratified_folds,
)


@dataclass(frozen=True, kw_only=True)
class AuditRow:
    """Out-of-fold accuracy of one probe on one set of features, with its 95 % Wilson interval.

    The interval takes the n judgements as independent. Those of a cross-validation are not quite:
    on cues without a leak (n = 20,000, quadratic logistic) the accuracy varied by 1.2 times the
    standard error that is assumed.
    """

    features: str
    probe: str
    accuracy: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditReport:
    """What `audit` found.

    Parameters
    ----------
    rows
        One for each pair of features and probe.
    best
        The row of the highest accuracy. As the best of several it lies a little above chance, by
        about a standard error, where there is no leak at all.
    probability
        Out-of-fold probability of label 1 by the probe of `best`, (n,).
    label
        The true labels, (n,).
    folds, seed
        As given to `audit`.
    """

    rows: tuple[AuditRow, ...]
    best: AuditRow
    probability: Floats
    label: Indices
    folds: int
    seed: int

    @property
    def chance(self) -> float:
        """Accuracy of always naming the more frequent label."""
        ones = float(np.mean(self.label))
        return max(ones, 1 - ones)

    def to_json(self) -> str:
        """Give the rows, the best and the settings as JSON text."""
        report = {
            "n": len(self.label),
            "folds": self.folds,
            "seed": self.seed,
            "chance": self.chance,
            "best": asdict(self.best),
            "rows": [asdict(row) for row in self.rows],
        }
        return json.dumps(report, indent=2)

    def table(self, title: str = "Label read without following a path") -> Table:
        """Give the rows as a table for the terminal, the best in bold."""
        table = Table(
            title=title,
            caption=f"{len(self.label):,} images, {self.folds}-fold cross-validation; "
            f"chance {self.chance:.1%}",
        )
        table.add_column("features")
        table.add_column("probe")
        table.add_column("accuracy", justify="right")
        table.add_column("95 % interval", justify="right")
        for row in self.rows:
            table.add_row(
                row.features,
                row.probe,
                f"{row.accuracy:.1%}",
                _interval_text(row.low, row.high),
                style="bold" if row is self.best else None,
            )
        return table


def audit(cues: Cues, seed: int = 0, folds: int = 5) -> AuditReport:
    """Measure how well the label can be read from each set of features, cross-validated.

    A single feature is read by a lookup in 20 bins; several by a quadratic logistic regression and
    by a small neural network. Each image is judged by a probe that was trained on other folds.

    Parameters
    ----------
    cues
        Cues of n images of both classes.
    seed
        Seed of the folds and of the neural network. The same cues and seed give the same report.
    folds
        Number of folds, 2 or more.

    Returns
    -------
    report
        Accuracies with intervals, and the best probe's probability for each image.

    Examples
    --------
    >>> label, nothing = np.arange(40) % 2, np.zeros(40)
    >>> markers = np.zeros((40, 2, 2))
    >>> markers[:, 1, 0] = 20 + 5 * label  # the distance tells all
    >>> report = audit(Cues(label=label, markers=markers, directions=np.zeros((40, 2)),
    ...                     canvas=(50, 50), ink=nothing, curvature=nothing), folds=2)
    >>> report.best.features, report.best.accuracy
    ('marker distance', 1.0)
    """
    if folds < 2:
        raise ValueError(f"folds must be 2 or more, got {folds}")
    counts = np.bincount(cues.label, minlength=2)
    if counts.min() < folds:
        raise ValueError(
            f"{folds}-fold audit needs at least {folds} images of each label, "
            f"got {counts[0]} of label 0 and {counts[1]} of label 1"
        )
    fold = stratified_folds(cues.label, folds, np.random.default_rng(seed))
    several: dict[str, Probe] = {
        "quadratic logistic": quadratic_logistic,
        "neural network": partial(multilayer_perceptron, seed=seed),
    }
    found: list[tuple[AuditRow, Floats]] = []
    for name, features in feature_sets(cues).items():
        probes: dict[str, Probe] = {"20-bin lookup": lookup} if features.shape[1] == 1 else several
        for probe_name, probe in probes.items():
            probability = out_of_fold(probe, features, cues.label, fold)
            correct = int(np.sum((probability > 0.5) == cues.label))
            n = len(cues.label)
            low, high = wilson_interval(correct, n)
            row = AuditRow(
                features=name, probe=probe_name, accuracy=correct / n, low=low, high=high, n=n
            )
            found.append((row, probability))
    best, probability = max(found, key=lambda pair: pair[0].accuracy)
    return AuditReport(
        rows=tuple(row for row, _ in found),
        best=best,
        probability=probability,
        label=cues.label,
        folds=folds,
        seed=seed,
    )


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """A network's accuracy on n images, with its 95 % Wilson interval; None where n is 0."""

    accuracy: float | None
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True)
class Stratification:
    """A network's accuracy by how the audit's best probe fares on the same images.

    Parameters
    ----------
    everywhere
        On all images.
    right
        Where the probe gives the true label at least the probability `confidence`.
    unsure
        Where it gives neither label that much.
    wrong
        Where it gives the false label at least that much: a network that has learnt the shortcut
        fails here.
    confidence
        The probability that counts as confident.
    """

    everywhere: Stratum
    right: Stratum
    unsure: Stratum
    wrong: Stratum
    confidence: float

    def strata(self) -> dict[str, Stratum]:
        """Give the strata by name, in the order in which they are shown."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, Stratum)}

    def to_json(self) -> str:
        """Give everything as JSON text."""
        return json.dumps(asdict(self), indent=2)

    def table(self) -> Table:
        """Give the strata as a table for the terminal."""
        table = Table(
            title="The network, by what the probe says",
            caption=f"the probe is right or wrong where it is {self.confidence:.0%} sure",
        )
        table.add_column("probe")
        table.add_column("images", justify="right")
        table.add_column("network's accuracy", justify="right")
        table.add_column("95 % interval", justify="right")
        for name, stratum in self.strata().items():
            accuracy = "none" if stratum.accuracy is None else f"{stratum.accuracy:.1%}"
            interval = _interval_text(stratum.low, stratum.high)
            table.add_row(name, f"{stratum.n:,}", accuracy, interval)
        return table


def check_confidence(confidence: float) -> None:
    """Refuse what is no probability from which a probe counts as confident."""
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence must be above 0.5 and below 1, such as 0.9, got {confidence}")


def stratify(
    report: AuditReport, correct: npt.NDArray[np.bool_], confidence: float = 0.9
) -> Stratification:
    """Split a network's accuracy by whether the audit's best probe is right, unsure or wrong.

    Parameters
    ----------
    report
        Audit of the images that the network has seen, in the same order.
    correct
        Whether the network was right on each image, (n,) of bool.
    confidence
        Probability from which the probe counts as confident, above 0.5 and below 1.

    Returns
    -------
    stratification
        Accuracy with interval and count in each stratum.

    Examples
    --------
    >>> row = AuditRow(features="ink", probe="20-bin lookup", accuracy=0.5, low=0, high=1, n=4)
    >>> report = AuditReport(rows=(row,), best=row, probability=np.array([0.95, 0.95, 0.6, 0.1]),
    ...                      label=np.array([1, 0, 1, 0]), folds=2, seed=0)
    >>> shares = stratify(report, np.array([True, False, True, True]))
    >>> shares.right.n, shares.unsure.n, shares.wrong.n, shares.wrong.accuracy
    (2, 1, 1, 0.0)
    """
    correct = np.asarray(correct)
    if correct.dtype != np.bool_ or correct.shape != report.label.shape:
        raise ValueError(
            f"correct must be bool of shape {report.label.shape}, one for each image of the audit, "
            f"got {correct.dtype} of shape {correct.shape}"
        )
    check_confidence(confidence)
    confident = np.maximum(report.probability, 1 - report.probability) >= confidence
    agrees = (report.probability > 0.5) == report.label
    return Stratification(
        everywhere=_stratum(correct),
        right=_stratum(correct[confident & agrees]),
        unsure=_stratum(correct[~confident]),
        wrong=_stratum(correct[confident & ~agrees]),
        confidence=confidence,
    )


def _stratum(correct: npt.NDArray[np.bool_]) -> Stratum:
    """Accuracy and interval over the images of one stratum."""
    hits, n = int(correct.sum()), len(correct)
    low, high = wilson_interval(hits, n)
    return Stratum(accuracy=hits / n if n else None, low=low, high=high, n=n)


def _interval_text(low: float, high: float) -> str:
    return f"{low:.1%} to {high:.1%}"
