import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from scipy.stats import norm

from hgru_vision.intervals import wilson_interval
from hgru_vision.stimuli.audit import (
    AuditReport,
    AuditRow,
    Cues,
    audit,
    stratify,
)

FEATURES = ["marker distance", "marker directions", "distance and directions"]
FEATURES += ["marker geometry", "ink", "curvature", "everything"]


def random_cues(n: int, seed: int = 0) -> Cues:
    """Cues that know nothing of the label."""
    rng = np.random.default_rng(seed)
    return Cues(
        label=rng.permutation(np.arange(n) % 2),
        markers=rng.uniform(20, 130, (n, 2, 2)),
        directions=rng.uniform(-np.pi, np.pi, (n, 2)),
        canvas=(150, 150),
        ink=rng.normal(0.1, 0.01, n),
        curvature=rng.uniform(1, 9, n),
    )


def with_distance(cues: Cues, distance: np.ndarray) -> Cues:
    markers = cues.markers.copy()
    angle = np.random.default_rng(7).uniform(-np.pi, np.pi, len(distance))
    markers[:, 1] = markers[:, 0] + (distance * [np.cos(angle), np.sin(angle)]).T
    return replace(cues, markers=markers)


def accuracies(report: AuditReport) -> dict[tuple[str, str], float]:
    return {(row.features, row.probe): row.accuracy for row in report.rows}


def rendered(table: Table) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def leaking() -> tuple[Cues, AuditReport]:
    """Distances two standard deviations apart: Bayes accuracy is Phi(1) = 84.1 %."""
    cues = random_cues(1_000)
    noise = np.random.default_rng(1).normal(size=1_000)
    cues = with_distance(cues, 60 + 5 * noise + 10 * cues.label)
    return cues, audit(cues)


# -- What the audit finds -----------------------------------------------------------------------


def test_a_distance_leak_is_found_and_only_there(leaking: tuple[Cues, AuditReport]) -> None:
    _, report = leaking
    found = accuracies(report)
    tolerance = 4 * np.sqrt(0.25 / 1_000)
    for (features, _), accuracy in found.items():
        if features in ("marker directions", "ink", "curvature"):
            assert accuracy == pytest.approx(0.5, abs=tolerance)
        else:
            assert accuracy == pytest.approx(norm.cdf(1), abs=tolerance)


def test_an_exclusive_or_of_the_directions_is_found() -> None:
    """Connected when both paddles turn to the same side of the line between the markers."""
    cues = random_cues(800, seed=2)
    line = cues.markers[:, 1] - cues.markers[:, 0]
    bearing = np.arctan2(line[:, 1], line[:, 0])
    sides = np.sin(cues.directions - np.stack([bearing, bearing + np.pi], axis=1)) > 0
    found = accuracies(audit(replace(cues, label=sides[:, 0] == sides[:, 1])))
    assert found["marker directions", "quadratic logistic"] > 0.9
    assert found["marker directions", "neural network"] > 0.9
    assert found["marker distance", "20-bin lookup"] == pytest.approx(0.5, abs=0.07)


def test_no_leak_is_no_finding() -> None:
    report = audit(random_cues(4_000, seed=3))
    for row in report.rows:
        assert row.accuracy == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 4_000)), row


def test_shuffled_labels_end_a_leak(leaking: tuple[Cues, AuditReport]) -> None:
    cues, _ = leaking
    label = np.random.default_rng(4).permutation(cues.label)
    best = audit(replace(cues, label=label)).best.accuracy
    assert best == pytest.approx(0.5, abs=0.065)


def test_the_order_of_the_markers_does_not_matter(leaking: tuple[Cues, AuditReport]) -> None:
    """Telling the probes the order the other way round tells them as much.

    Not checked for the network, whose random first weights meet other columns: its accuracy is
    the same only on average.
    """
    cues, report = leaking
    exchanged = replace(cues, markers=cues.markers[:, ::-1], directions=cues.directions[:, ::-1])
    found, again = accuracies(report), accuracies(audit(exchanged))
    for key, accuracy in found.items():
        if key[1] != "neural network":
            assert again[key] == pytest.approx(accuracy, abs=1e-3), key


# -- The report ---------------------------------------------------------------------------------


def test_rows_and_best(leaking: tuple[Cues, AuditReport]) -> None:
    cues, report = leaking
    assert list(dict.fromkeys(row.features for row in report.rows)) == FEATURES
    assert len(report.rows) == 3 + 2 * 4
    assert report.best in report.rows
    assert report.best.accuracy == max(row.accuracy for row in report.rows)
    assert np.mean((report.probability > 0.5) == cues.label) == report.best.accuracy
    for row in report.rows:
        assert (row.low, row.high) == wilson_interval(round(row.accuracy * row.n), row.n)


def test_same_seed_same_report() -> None:
    cues = random_cues(60)
    first, again, other = audit(cues, seed=5), audit(cues, seed=5), audit(cues, seed=6)
    assert first.to_json() == again.to_json()
    assert np.array_equal(first.probability, again.probability)
    assert not np.array_equal(first.probability, other.probability)


def test_chance_is_the_more_frequent_label(leaking: tuple[Cues, AuditReport]) -> None:
    _, report = leaking
    assert report.chance == 0.5
    assert replace(report, label=np.array([0, 0, 0, 1])).chance == 0.75


def test_json(leaking: tuple[Cues, AuditReport]) -> None:
    _, report = leaking
    content = json.loads(report.to_json())
    assert (content["n"], content["folds"], content["seed"]) == (1_000, 5, 0)
    assert [AuditRow(**row) for row in content["rows"]] == list(report.rows)
    assert AuditRow(**content["best"]) == report.best


def test_table(leaking: tuple[Cues, AuditReport]) -> None:
    _, report = leaking
    text = rendered(report.table())
    assert all(name in text for name in FEATURES)
    assert f"{report.best.accuracy:.1%}" in text
    assert "1,000 images, 5-fold cross-validation; chance 50.0%" in text


@pytest.mark.parametrize(
    ("labels", "folds", "message"),
    [
        ([1] * 20, 5, "at least 5 images of each label, got 0 of label 0 and 20 of label 1"),
        ([0, 1, 0], 5, "5-fold audit needs at least 5 images of each label, got 2 of label 0"),
        ([0, 1] * 10, 1, "folds must be 2 or more, got 1"),
    ],
)
def test_too_little_to_audit(labels: list[int], folds: int, message: str) -> None:
    cues = replace(random_cues(len(labels)), label=labels)
    with pytest.raises(ValueError, match=message):
        audit(cues, folds=folds)


# -- A network, by what the probe says ----------------------------------------------------------


def small_report(probability: list[float], label: list[int]) -> AuditReport:
    n = len(label)
    row = AuditRow(features="ink", probe="20-bin lookup", accuracy=0.5, low=0.0, high=1.0, n=n)
    return AuditReport(
        rows=(row,),
        best=row,
        probability=np.array(probability),
        label=np.array(label),
        folds=2,
        seed=0,
    )


def test_stratification_by_hand() -> None:
    report = small_report(
        # right   right  right  wrong  wrong  unsure unsure
        [0.90, 0.10, 0.99, 0.90, 0.10, 0.89, 0.11],
        [1, 0, 1, 0, 1, 1, 1],
    )
    correct = np.array([True, True, False, False, True, True, True])
    found = stratify(report, correct)
    assert (found.right.n, found.wrong.n, found.unsure.n, found.everywhere.n) == (3, 2, 2, 7)
    assert found.right.accuracy == pytest.approx(2 / 3)
    assert found.wrong.accuracy == pytest.approx(1 / 2)
    assert found.unsure.accuracy == pytest.approx(1.0)
    assert found.everywhere.accuracy == pytest.approx(5 / 7)
    assert (found.right.low, found.right.high) == wilson_interval(2, 3)


def test_confidence_moves_the_line() -> None:
    report = small_report([0.7, 0.7, 0.3], [1, 0, 1])
    correct = np.array([True, True, True])
    assert stratify(report, correct).unsure.n == 3
    found = stratify(report, correct, confidence=0.7)
    assert (found.right.n, found.unsure.n, found.wrong.n) == (1, 0, 2)


def test_an_empty_stratum_has_no_accuracy() -> None:
    found = stratify(small_report([0.5, 0.5], [0, 1]), np.array([True, False]))
    assert found.wrong.accuracy is None
    assert (found.wrong.low, found.wrong.high, found.wrong.n) == (0.0, 1.0, 0)
    assert json.loads(found.to_json())["wrong"]["accuracy"] is None
    assert "none" in rendered(found.table())


def test_stratification_table_and_order() -> None:
    found = stratify(small_report([0.95, 0.95], [1, 0]), np.array([True, False]))
    assert list(found.strata()) == ["everywhere", "right", "unsure", "wrong"]
    text = rendered(found.table())
    assert "100.0%" in text
    assert "90% sure" in text


@pytest.mark.parametrize(
    ("correct", "confidence", "message"),
    [
        ([1, 0], 0.9, r"correct must be bool of shape \(2,\).*got int64 of shape \(2,\)"),
        ([True], 0.9, r"correct must be bool of shape \(2,\).*got bool of shape \(1,\)"),
        ([True, True], 0.5, r"confidence must be above 0.5 and below 1, such as 0.9, got 0.5"),
        ([True, True], 90, r"confidence must be above 0.5 and below 1, such as 0.9, got 90"),
    ],
)
def test_bad_stratification(correct: list[bool], confidence: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stratify(small_report([0.5, 0.5], [0, 1]), np.array(correct), confidence)
