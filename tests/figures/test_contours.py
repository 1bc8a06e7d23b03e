import numpy as np

from hgru_vision.figures.contours import RED, contour_sheet_figure, reddened
from hgru_vision.stimuli.contours import ContourConfig, draw

SMALL = ContourConfig(
    length=3, canvas=32, cells=8, eccentricity=0.5, thickness=1 / 16, antialias=False
)


def test_the_contour_is_red_and_all_else_is_grey():
    for index in (0, 1):
        stimulus = draw(SMALL, 0, index)
        picture = reddened(stimulus)
        np.testing.assert_allclose(
            picture[stimulus.masks[0]], np.broadcast_to(RED, (stimulus.masks[0].sum(), 3))
        )
        grey = picture[~stimulus.masks[0]]
        assert (grey == grey[:, :1]).all()
        np.testing.assert_allclose(grey[:, 0], stimulus.image[~stimulus.masks[0]] / 255)


def test_a_sheet_has_no_more_rows_than_it_needs():
    figure = contour_sheet_figure([draw(SMALL, 0, index) for index in range(5)], columns=3)
    assert len(figure.axes) == 6
    titles = [axes.get_title() for axes in figure.axes]
    assert sorted(title.split(",")[0] for title in titles[:4]) == ["absent"] * 2 + ["present"] * 2
    assert titles[5] == ""


def test_contours_can_stay_white():
    stimulus = draw(SMALL, 0, 0)
    figure = contour_sheet_figure([stimulus], show_contour=False)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), stimulus.image / 255)
