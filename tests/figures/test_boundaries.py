import numpy as np
import pytest

from hgru_vision.analysis.boundaries import Counts, spread_thresholds, summarise
from hgru_vision.figures.boundaries import EQUAL_F, boundary_figure
from hgru_vision.figures.style import render


def score(quality):
    thresholds = spread_thresholds(9)
    predicted = np.array([1800, 1500, 1200, 1000, 800, 500, 300, 100, 0])
    right = (predicted * quality * np.linspace(0.5, 1, 9)).astype(int)
    counts = Counts(found=right, annotated=np.full(9, 1000), right=right, predicted=predicted)
    return summarise({"1": counts}, thresholds)


def test_each_score_is_a_curve_with_a_mark():
    scores = {"good": score(1.0), "poor": score(0.5)}
    figure = boundary_figure(scores)
    lines = figure.axes[0].lines[len(EQUAL_F) :]
    assert len(lines) == 4
    for (name, each), curve, point in zip(scores.items(), lines[::2], lines[1::2], strict=True):
        assert len(curve.get_xdata()) == 8  # nothing is predicted at the last threshold
        assert point.get_xdata()[0] == each.ods.recall
        assert point.get_ydata()[0] == each.ods.precision
        assert point.get_label().startswith(f"{name}: ODS {each.ods.f:.3f}")
    assert render(figure, "png").startswith(b"\x89PNG")


def test_lines_have_equal_f():
    for f, line in zip(EQUAL_F, boundary_figure({"a": score(1)}).axes[0].lines, strict=False):
        recall, precision = (np.asarray(values) for values in line.get_data())
        np.testing.assert_allclose(2 * recall * precision / (recall + precision), f)
        assert precision[0] == pytest.approx(1) and recall[-1] == 1


def test_no_line_of_the_legend_leaves_the_figure():
    long = "a_network_with_a_rather_long_name (val, 3 pictures, no --nms, 5 thresholds)"
    figure = boundary_figure({long: score(1), "contour_network_" * 6: score(0.5)})
    figure.set_dpi(200)  # as it is saved
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
    assert figure.axes[0].get_window_extent().y1 < box.y0 and box.y1 <= figure.bbox.y1
    assert "ODS" in legend.get_texts()[0].get_text()


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="no maps were scored; `hgru eval-boundaries"):
        boundary_figure({})
