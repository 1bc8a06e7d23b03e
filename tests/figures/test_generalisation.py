import pytest

from hgru_vision.figures.generalisation import generalisation
from hgru_vision.figures.style import NothingToDraw


def test_each_change_has_a_panel_and_each_network_a_line(measured):
    rows = [measured("length", n, 95 - n, network=name) for n in (6, 14, 25) for name in "ab"]
    rows += [measured("steps", n) for n in (4, 8)] + [measured("preset", "authors", 60)]
    rows += [measured("probe", "paper", 3, 4), measured("probe", "matched", 0, 0)]
    figure = generalisation(rows)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_visible()}
    measured_alone = {"Path length", "Generator", "Processing time", "Where the probe errs"}
    assert set(panels) == measured_alone
    lengths, presets = panels["Path length"], panels["Generator"]
    lines = [line.get_xydata().round().tolist() for line in lengths.lines]
    assert lines.count([[6.0, 1.0], [14.0, 1.0], [25.0, 1.0]]) == 2  # the networks, side by side
    assert [0.89, 0.81, 0.7] in [list(line.get_ydata()) for line in lengths.lines]
    assert [text.get_text() for text in presets.get_xticklabels()] == ["authors"]
    assert [t.get_text() for t in panels["Where the probe errs"].get_xticklabels()] == ["paper"]
    large = [line for line in lengths.lines if line.get_markersize() == 7 and len(line.get_xdata())]
    assert {round(float(line.get_xdata()[0])) for line in large} == {14}
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"a", "b", "hgru.x"}
    note = figure._supxlabel.get_text()
    assert note.startswith("A mark: 100 test images; the bar is the 95 % interval")
    assert "Where the probe errs: images of that generator" in note.replace("\n", " ")
    note = note.replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")
    assert (
        "not run: Path length (hgru.x); Generator (a, b); Canvas, density kept; Density; " in note
    )
    assert "Where the probe errs (a, b); " in note
    assert "Where the probe errs (hgru.x on matched: no such image)" in note


def test_nothing_measured_is_nothing_drawn(measured):
    for rows in ([], [measured("probe", "matched", 0, 0)]):
        with pytest.raises(NothingToDraw, match="no network was measured; `hgru generalise` does"):
            generalisation(rows)
