import numpy as np
import pytest

from hgru_vision.stimuli.contour_kernels import RANDOM, lay_out, mirrored
from hgru_vision.stimuli.contours import ContourConfig, scenes


@pytest.mark.parametrize(
    ("mirror", "expected"), [(0, (1, 2)), (1, (-1, 2)), (2, (2, 1)), (3, (2, -1))]
)
def test_mirror_images(mirror, expected):
    assert mirrored(1.0, 2.0, mirror) == expected


def test_rows_wrap_around():
    config = ContourConfig(length=3, cells=8, canvas=80, cell=0.25, shear=0.5, eccentricity=0.5)
    grown = scenes(config, 0, np.arange(20))
    for places in grown.paddles[..., :2]:
        rows = places.reshape(8, 8, 2)
        moved = np.argmax([np.ptp(rows[0, :, axis]) for axis in (0, 1)])  # x, or y if exchanged
        for row in rows[..., moved]:
            np.testing.assert_allclose(np.diff(np.sort(row)), 10)  # ten pixels a cell
        # Half a cell further each row.
        phase = np.sort((rows[:, 0, moved] % 10).round(9))
        assert len(set(phase)) == 2


def test_the_next_paddle_of_a_contour_is_a_row_and_a_column_further():
    config = ContourConfig(length=5, shear=-0.4)
    grown = scenes(config, 0, np.arange(10))
    for kinds in grown.kinds:
        cells = np.flatnonzero(kinds == 0)
        if len(cells):
            row, column = np.divmod(cells, 32)
            np.testing.assert_array_equal(np.diff(row), 1)
            assert set(np.diff(column) % 32) == {1}


def test_a_scattered_paddle_takes_the_last_free_place():
    """With one place more than paddles the draw still ends, and no cell is taken twice."""
    places = np.array([[column, 0] for column in range(4)])
    count, length = 50, 3
    paddles, kinds = np.empty((count, 64, 5)), np.full((count, 64), RANDOM, np.int8)
    lay_out(
        8, length, 0.0, 4.0, True, places, np.tile([0.6, 0.8, 0.9], (4, 1)), 0,
        np.arange(count), np.zeros(count, np.int64), paddles, kinds, np.empty(count),
    )  # fmt: skip
    assert ((kinds != RANDOM).sum(1) == length).all()
