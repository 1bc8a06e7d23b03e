import numpy as np

from hgru_vision.stimuli.raster import mean_reduce
from hgru_vision.stimuli.stamps import DEGREES, MASK_FROM, make_stamps

AUTHORS = make_stamps(5, 2.0, 3, 1.8, 5.0, 2, 2)


def test_the_circle_has_the_pixels_that_the_released_program_has():
    assert len(AUTHORS.heads) == 49
    radius = np.linalg.norm(AUTHORS.heads, axis=1)
    assert radius.min() >= 7.0
    assert radius.max() < 9.3
    assert abs(radius.mean() - 7.90) < 0.02


def test_paddles_and_discs_hold_the_ink_of_the_released_ones():
    ink = AUTHORS.lines[:DEGREES].sum((1, 2)) / 255
    assert abs(ink.mean() - 11.1) < 0.1
    assert abs(ink.std() - 1.05) < 0.1
    assert abs((AUTHORS.lines[:DEGREES] > 127).sum((1, 2)).mean() - 10.7) < 0.3
    assert abs(AUTHORS.marker.sum() / 255 - 79.5) < 0.5


def test_masks_begin_at_a_brightness_that_every_paddle_reaches():
    assert AUTHORS.mask_from == MASK_FROM
    faint = make_stamps(5, 1.0, 3, 1.8, 5.0, 2, 4)
    assert 0 < faint.mask_from < MASK_FROM
    for stamp in faint.lines[::7]:
        for offset in np.ndindex(4, 4):
            canvas = np.zeros((32, 32), np.uint8)
            canvas[tuple(slice(at, at + len(stamp)) for at in offset)] = stamp
            small = np.empty((8, 8), np.uint8)
            mean_reduce(canvas, 4, small)
            assert small.max() >= faint.mask_from


def test_a_paddle_is_drawn_from_the_middle_of_its_picture():
    middle = AUTHORS.lines.shape[1] // 2
    rows, columns = np.indices(AUTHORS.lines.shape[1:]) - middle
    for direction in (0, 90, 200, DEGREES + 7):
        weight = AUTHORS.lines[direction] / AUTHORS.lines[direction].sum()
        centre = np.array([(weight * rows).sum(), (weight * columns).sum()])
        forward = 1 if direction < DEGREES else -1
        angle = AUTHORS.angles[direction]
        expected = 2.5 * forward * np.array([np.sin(angle), np.cos(angle)])
        assert np.linalg.norm(centre - expected) < 0.9


def test_turns_have_the_spread_of_the_released_program():
    turn = AUTHORS.angles[:, None] - AUTHORS.angles[None, DEGREES:]
    turn = np.rad2deg((turn + np.pi) % (2 * np.pi) - np.pi)
    share = AUTHORS.weights / AUTHORS.weights.sum(1, keepdims=True)
    assert abs(np.sqrt((share * turn**2).sum(1).mean()) - 18.0) < 0.3
    assert np.abs(turn[AUTHORS.weights > 1e-9]).max() < 50
