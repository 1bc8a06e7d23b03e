import numpy as np

from hgru_vision.data.datasets import Pathfinder
from hgru_vision.figures.contact_sheet import PATH_COLOURS, coloured, contact_sheet_figure


def test_each_example_carries_its_label():
    data = Pathfinder(length=6, count=8, seed=2)
    figure = contact_sheet_figure(data, rows=2, columns=4)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["connected" if data[i][1] else "not connected" for i in range(8)]
    np.testing.assert_array_equal(
        figure.axes[3].images[0].get_array().data, data.batch([3])[0] / 255
    )


def test_a_sheet_has_no_more_rows_than_it_needs():
    figure = contact_sheet_figure(Pathfinder(length=6, count=3), rows=3, columns=2)
    assert len(figure.axes) == 4
    assert "6 paddles" in figure.get_suptitle()


def test_target_paths_are_coloured_and_markers_white():
    stimulus = Pathfinder(length=6, count=4, seed=0).stimulus(1)
    picture = coloured(stimulus)
    distractors = stimulus.masks[2:].any(0)
    assert (picture[distractors] == 1).all()
    for mask, colour in zip(stimulus.masks[:2], PATH_COLOURS, strict=True):
        painted = picture[mask]
        assert (np.isclose(painted, colour).all(1) | (painted == 1).all(1)).all()
        assert np.isclose(painted, colour).all(1).any()


def test_one_marker_has_no_label():
    data = Pathfinder(preset="crbp-14", count=1, target="segmentation")
    assert contact_sheet_figure(data).axes[0].get_title() == "14 paddles"
