import numpy as np

from hgru_vision.figures.psychophysics_audit import contour_audit_figure
from hgru_vision.figures.style import render
from hgru_vision.stimuli.audit import stratify
from hgru_vision.stimuli.contour_audit import LINKING, audit_contours
from hgru_vision.stimuli.contours import ContourConfig

REPORT = audit_contours(ContourConfig(length=5, canvas=64), count=100)


def test_sets_of_features_have_their_accuracies_and_those_of_the_task_open_marks():
    rows, probability = contour_audit_figure(REPORT).axes
    points = [line for line in rows.lines if len(line.get_xdata()) == 1]
    assert [float(point.get_xdata()[0]) for point in points] == [r.accuracy for r in REPORT.rows]
    hollow = [point.get_markerfacecolor() == "white" for point in points]
    assert hollow == [row.features in LINKING for row in REPORT.rows]
    names = [text.get_text() for text in probability.get_legend().get_texts()]
    assert names == ["contour", "no contour"]


def test_a_network_has_a_panel_of_its_own():
    figure = contour_audit_figure(REPORT, stratify(REPORT, np.ones(100, bool)))
    assert [axes.get_title("left") for axes in figure.axes][2] == "c  The network"
    assert figure.axes[2].get_yticklabels()[0].get_text() == "all images\nn = 100"
    assert render(figure, "svg").startswith(b"<?xml")
