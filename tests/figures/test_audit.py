import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import rcParams

from hgru_vision.figures.audit import audit_figure
from hgru_vision.figures.style import render
from hgru_vision.stimuli.audit import AuditReport, AuditRow, Cues, stratify

ROWS = [("marker distance", "20-bin lookup", 0.7)]
ROWS += [("everything", "quadratic logistic", 0.8), ("everything", "neural network", 0.9)]


@pytest.fixture
def cues() -> Cues:
    rng = np.random.default_rng(0)
    return Cues(
        label=np.arange(200) % 2,
        markers=rng.uniform(0, 150, (200, 2, 2)),
        directions=np.zeros((200, 2)),
        canvas=(150, 150),
        ink=np.zeros(200),
        curvature=np.zeros(200),
    )


@pytest.fixture
def report(cues: Cues) -> AuditReport:
    rows = tuple(
        AuditRow(features=features, probe=probe, accuracy=a, low=a - 0.02, high=a + 0.02, n=200)
        for features, probe, a in ROWS
    )
    probability = np.where(cues.label == 1, 0.95, 0.05)
    probability[:20] = 1 - probability[:20]
    return AuditReport(
        rows=rows, best=rows[-1], probability=probability, label=cues.label, folds=5, seed=0
    )


def test_without_a_network_there_are_three_panels(cues: Cues, report: AuditReport) -> None:
    figure = audit_figure(cues, report)
    titles = [axes.get_title(loc="left")[:1] for axes in figure.axes]
    assert sorted(titles) == ["a", "b", "c"]


def test_it_shows_the_numbers(cues: Cues, report: AuditReport) -> None:
    stratification = stratify(report, np.arange(200) >= 5)
    figure = audit_figure(cues, report, stratification)
    panels = {axes.get_title(loc="left")[:1]: axes for axes in figure.axes}
    shown = {name: [text.get_text() for text in axes.texts] for name, axes in panels.items()}
    assert [text for text in shown["b"] if "%" in text] == ["70.0%", "80.0%", "90.0%"]
    assert {"97.5%", "100.0%", "75.0%"} <= set(shown["d"])
    assert "probe wrong\nn = 20" in [label.get_text() for label in panels["d"].get_yticklabels()]
    assert "probe unsure\nn = 0" in [label.get_text() for label in panels["d"].get_yticklabels()]
    counts = panels["c"].yaxis.get_major_formatter()
    assert (counts(1), counts(1000)) == ("1", "1,000") and panels["c"].get_ylim()[0] < 1
    lookup, quadratic, network = (label.get_text() for label in panels["b"].get_legend().texts)
    assert (lookup, quadratic, network) == ("20-bin lookup", "quadratic logistic", "neural network")


def test_it_leaves_the_style_alone(cues: Cues, report: AuditReport) -> None:
    before = dict(rcParams)
    render(audit_figure(cues, report), "png")
    assert dict(rcParams) == before


def test_the_cues_must_be_those_audited(cues: Cues, report: AuditReport) -> None:
    other = replace(cues, label=1 - cues.label)
    with pytest.raises(ValueError, match=r"report must be the audit of these 200 cues, got one"):
        audit_figure(other, report)


def test_the_audit_itself_needs_no_matplotlib() -> None:
    code = "import hgru_vision.stimuli.audit, sys; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
