import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, label

from hgru_vision.analysis.thinning import NEIGHBOURS, REMOVABLE, thin

# A picture and what scikit-image 0.26's `thin` makes of it.
THICK = """
...###...#..................
..####......................
.#######.............###....
#########...........######..
#########.....##..##########
.#########...###############
.####..###.#################
..##....####################
........#..#################
###.........################
###..........######...#####.
###..........#####.....#####
###...........####....######
###...##......####....######
"""
THIN = """
.........#..................
............................
............................
....##......................
...#..#.....................
...#...#....................
..#.....#...........###.....
.........#####....##...#....
........#.....####.....#....
...............#........#...
.#.............#........#...
.#.............#........#...
.#.............#............
......##....................
"""


def picture(text):
    return np.array([[letter == "#" for letter in line] for line in text.split()])


def blobs(seed):
    random = np.random.default_rng(seed)
    smooth = gaussian_filter(
        random.standard_normal(random.integers(1, 70, 2)), random.uniform(0, 3)
    )
    return smooth > np.quantile(smooth, random.uniform(0.1, 0.9))


def thin_whole(mask):
    """The two passes over the whole picture, until neither changes it."""
    mask, before = mask.copy(), None
    while before is None or (mask != before).any():
        before = mask.copy()
        for kind in range(2):
            padded = np.pad(mask, 1)
            rows, columns = padded.shape
            number = sum(
                padded[1 + y : rows - 1 + y, 1 + x : columns - 1 + x].astype(int) << bit
                for bit, (y, x) in enumerate(NEIGHBOURS)
            )
            mask = mask & ~REMOVABLE[kind][number]
    return mask


def test_a_picture_thins_as_elsewhere():
    np.testing.assert_array_equal(thin(picture(THICK)), picture(THIN))


@pytest.mark.parametrize("seed", range(20))
def test_looking_only_where_something_changed_loses_nothing(seed):
    mask = blobs(seed)
    np.testing.assert_array_equal(thin(mask), thin_whole(mask))


@pytest.mark.parametrize("seed", range(20))
def test_objects_and_holes_stay(seed):
    mask = blobs(seed)
    thinned = thin(mask)
    assert not (thinned & ~mask).any()
    around = np.ones((3, 3))
    assert label(thinned, around)[1] == label(mask, around)[1]
    assert (
        label(np.pad(~thinned, 1, constant_values=True))[1]
        == (label(np.pad(~mask, 1, constant_values=True))[1])
    )
    np.testing.assert_array_equal(thin(thinned), thinned)


def test_what_is_given_is_not_changed():
    mask = np.ones((5, 9), np.uint8)
    thin(mask)
    assert mask.all()


def test_a_stack_of_pictures_is_refused():
    with pytest.raises(ValueError, match=r"mask must be a picture \(H, W\), got shape \(2, 3, 4\)"):
        thin(np.ones((2, 3, 4)))
