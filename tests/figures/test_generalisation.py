from dataclasses import replace

import pytest

from hgru_vision.figures.generalisation import generalisation
from hgru_vision.figures.style import NothingToDraw


def tables(figure):
    """Give the panel of each title."""
    return {axes.get_title(loc="left"): axes for axes in figure.get_axes()}


def numbers(axes, networks):
    """Read a panel as a reader does: {network: {column: text}}."""
    columns = [text.get_text() for text in axes.get_xticklabels()]
    found = {}
    for text in axes.texts:
        x, y = text.get_position()
        found.setdefault(networks[y], {})[columns[x]] = text.get_text()
    return found


def framed(axes):
    return {
        tuple(patch.get_xy())
        for patch in axes.patches
        if patch.get_facecolor()[3] == 0  # no colour of its own
    }


def test_each_change_has_a_table_with_a_row_for_each_network(measured):
    rows = [measured("length", n, 95 - n, network=name) for n in (25, 14, 6) for name in "ba"]
    rows += [measured("preset", "authors", 60), measured("steps", 8), measured("steps", 4, 38)]
    panels = tables(generalisation(rows))
    assert set(panels) == {"Path length", "Generator", "Processing time"}
    networks = ["a", "b", "hgru.x"]
    for title in ("Path length", "Processing time"):  # the first of each line
        assert [text.get_text() for text in panels[title].get_yticklabels()] == networks
    each = {"6": "89", "14": "81", "25": "70"}
    assert numbers(panels["Path length"], networks) == {"a": each, "b": each}
    assert numbers(panels["Generator"], networks) == {"hgru.x": {"authors": "60"}}
    assert numbers(panels["Processing time"], networks) == {"hgru.x": {"4": "38", "8": "90"}}
    assert framed(panels["Path length"]) == {(0.5, -0.5), (0.5, 0.5)}  # 14 paddles, a and b
    assert not framed(panels["Processing time"])  # which its rows do not tell


def test_what_is_worse_than_guessing_has_another_colour(measured):
    rows = [measured("length", n, correct) for n, correct in ((6, 90), (9, 50), (12, 30))]
    panel = tables(generalisation(rows))["Path length"]
    better, chance, worse = (patch.get_facecolor()[:3] for patch in panel.patches)
    assert better[2] > better[0] and worse[0] > worse[2]  # blue, orange
    assert min(chance) > 0.99  # white


def test_canvases_and_densities_are_multiples_of_those_of_the_training(measured):
    rows = [measured("canvas", n, 97) for n in (300, 150, 120)]
    rows += [measured("density", n, 96) for n in (50, 150, 170)]
    panels = tables(generalisation(rows))
    names = [[text.get_text() for text in axes.get_xticklabels()] for axes in panels.values()]
    assert names == [["1/3", "1", "1.1"], ["4/5", "1", "2"]]  # 170 is none of ours


def test_few_images_are_told_from_many_and_from_none(measured):
    rows = [measured("probe", "paper", 3, 4), measured("probe", "matched", 0, 0)]
    figure = generalisation([*rows, replace(rows[0], network="b", n=100, correct=90)])
    read = numbers(tables(figure)["Probe errs"], ["b", "hgru.x"])
    assert read == {"b": {"paper": "90"}, "hgru.x": {"paper": "(75)", "matched": "\N{EN DASH}"}}
    note = figure._supxlabel.get_text().replace("\n", " ")
    assert "in brackets if their 95 % interval is wider than 20 points" in note
    assert "Probe errs: images of that generator of whose label a probe" in note
    assert "among 100; \N{EN DASH}: there is none." in note


def test_the_note_says_what_was_not_measured(measured):
    note = generalisation([measured("length", 6)])._supxlabel.get_text().replace("\n", " ")
    assert note.startswith("Right answers in %, of 100 test images. Framed: the task of the train")
    missing = "not run: Generator; Canvas; Density; Processing time; Probe errs"
    assert note.replace("\N{NO-BREAK SPACE}", " ").endswith(missing)


def test_nothing_measured_is_nothing_drawn(measured):
    for rows in ([], [measured("probe", "matched", 0, 0)]):
        with pytest.raises(NothingToDraw, match="no network was measured; `hgru generalise` does"):
            generalisation(rows)
