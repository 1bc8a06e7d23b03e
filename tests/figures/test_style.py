from pathlib import Path

import pytest
from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg

from hgru_vision.figures.style import (
    PALETTE,
    accuracy_axis,
    check_picture,
    family,
    mark,
    missing_note,
    new_figure,
    place_labels,
    render,
    save,
    save_figure,
    style,
)


def test_the_readers_settings_are_left_alone():
    before = dict(rcParams)
    with style():
        assert rcParams["font.size"] == 8
    assert dict(rcParams) == before


def test_marks_differ_in_colour_and_shape():
    looks = [mark(number) for number in range(2 * len(PALETTE))]
    assert len(set(looks)) == len(looks)
    assert len({look.shape for look in looks[: len(PALETTE)]}) == len(PALETTE)


def test_a_network_of_ones_own_is_beyond_the_paper():
    assert family("hgru") == "recurrent" and family("of_my_own") == "beyond"


def test_names_cover_neither_each_other_nor_the_marks():
    with style():
        figure = new_figure(3)
        axes = figure.subplots()
        axes.set(xlim=(0, 10), ylim=(0, 10))
        points = [(2 + i % 3 / 10, 5 + i / 20, f"network number {i}", "k") for i in range(10)]
        place_labels(axes, points)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    boxes = [t.get_window_extent(renderer) for t in axes.texts if t.get_text()]
    assert len(boxes) == 10
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])


def test_names_of_points_that_lie_together_have_lines_that_do_not_cross():
    with style():
        figure = new_figure(3)
        axes = figure.subplots()
        axes.set(xlim=(0, 10), ylim=(0, 10))
        points = [(2, 5 + height / 20, str(height), "k") for height in (1, 3, 0, 2)]
        place_labels(axes, [*points, (8, 5, "alone", "k")])
    names = [text for text in axes.texts if text.get_text()]
    assert len(axes.texts) - len(names) == 4  # lines: all but "alone"
    for side in ("left", "right"):
        there = [text for text in names if text.get_ha() == side and text.get_text() != "alone"]
        figure.draw_without_rendering()
        heights = [
            text.get_window_extent().y0 for text in sorted(there, key=lambda t: t.get_text())
        ]
        assert heights == sorted(heights)


@pytest.mark.parametrize("along", ["x", "y"])
def test_accuracies_are_shown_from_below_chance_in_per_cent(along):
    axes = new_figure(2).subplots()
    accuracy_axis(axes, along=along)
    low, high = axes.get_ylim() if along == "y" else axes.get_xlim()
    assert (low, high) == (0.4, 1.02)
    (line,) = axes.lines
    assert list(line.get_ydata() if along == "y" else line.get_xdata()) == [0.5, 0.5]
    axis = axes.yaxis if along == "y" else axes.xaxis
    assert axis.get_major_formatter()(0.75) == "75%"


@pytest.mark.parametrize("along", ["x", "y"])
def test_chance_is_named_at_its_tick_where_no_data_are(along):
    figure = new_figure(2)
    named, plain = figure.subplots(1, 2)
    accuracy_axis(named, along=along)
    accuracy_axis(plain, along=along, chance=False)
    figure.draw_without_rendering()
    axis, other = (getattr(axes, f"{along}axis") for axes in (named, plain))
    (label,) = (text for text in axis.get_ticklabels() if "chance" in text.get_text())
    assert label.get_text().split() == ["50%", "chance"]
    assert not label.get_window_extent().overlaps(named.get_window_extent())
    assert not plain.lines and "50%" in [text.get_text() for text in other.get_ticklabels()]


def test_what_is_missing_is_written_without_breaking_names():
    text = missing_note(["hGRU, no time-gain"] * 20, columns=60)
    assert text.startswith("not run: ") and max(map(len, text.splitlines())) <= 60
    assert all(line.split("; ")[-1].rstrip(";").endswith("time-gain") for line in text.splitlines())
    assert missing_note([]) == ""


@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]
)
def test_a_figure_is_the_same_file_each_time(kind, start):
    def draw():
        with style():
            figure = new_figure(1)
            figure.subplots().plot([0, 1])
        return render(figure, kind)

    assert draw().startswith(start)
    assert draw() == draw()


def test_a_picture_that_cannot_be_written_is_refused():
    assert check_picture(Path("a.png")) == "png"
    with pytest.raises(ValueError, match=r"pictures end in \.svg, \.pdf, \.png; got a\.jpg"):
        check_picture(Path("a.jpg"))


def test_files_appear_whole(tmp_path):
    path = tmp_path / "new" / "a.svg"
    for height in (1, 2):
        save_figure(new_figure(height), path)
        assert path.read_bytes() == render(new_figure(height), "svg")
    assert [each.name for each in path.parent.iterdir()] == ["a.svg"]
    with pytest.raises(NotADirectoryError, match=r"page\.md cannot be written: .*a\.svg is no fol"):
        save(b"", path / "page.md")
