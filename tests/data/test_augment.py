import numpy as np
import pytest
import torch

from hgru_vision.data.augment import Augmentation


def checks(height=60, width=80):
    """An image whose value tells the place, and a target of vertical lines."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([y, x]).float() / 100, (x % 7 == 0).float()[None]


def apply(seed, **settings):
    return Augmentation(**settings).apply(*checks(), np.random.default_rng(seed))


def test_the_paper_s_is_the_default():
    assert Augmentation() == Augmentation(crop=300, rotation=30, flip=True)


@pytest.mark.parametrize("seed", range(5))
def test_a_square_alone_is_a_part_of_the_image(seed):
    image, target = apply(seed, crop=32, rotation=0, flip=False)
    assert image.shape == (2, 32, 32) and target.shape == (1, 32, 32)
    top, left = (int(value) for value in (image[:, 0, 0] * 100).round())
    whole, lines = checks()
    torch.testing.assert_close(image, whole[:, top : top + 32, left : left + 32], atol=1e-4, rtol=0)
    assert torch.equal(target, lines[:, top : top + 32, left : left + 32])


def test_squares_reach_every_edge():
    tops, lefts = set(), set()
    for seed in range(300):
        image, _ = apply(seed, crop=58, rotation=0, flip=False)
        top, left = (image[:, 0, 0] * 100).round().tolist()
        tops.add(top)
        lefts.add(left)
    assert tops == {0, 1, 2} and lefts == set(range(23))


def test_flips_go_all_four_ways():
    found = set()
    for seed in range(40):
        image, _ = apply(seed, crop=32, rotation=0, flip=True)
        found.add((bool(image[0, 0, 0] > image[0, -1, 0]), bool(image[1, 0, 0] > image[1, 0, -1])))
    assert len(found) == 4


def test_angles_stay_inside_their_range():
    angles = []
    for seed in range(200):
        image, _ = apply(seed, crop=20, rotation=30, flip=False)
        along = image[:, 10, 12] - image[:, 10, 8]  # (row, column) of a step along a row
        angles.append(np.rad2deg(np.arctan2(*along.tolist())))
    assert -30.1 < min(angles) < -25 and 25 < max(angles) < 30.1
    assert abs(np.mean(angles)) < 4


def test_a_square_is_turned_not_sheared():
    for seed in range(5):
        placement = Augmentation(crop=20).place(60, 80, np.random.default_rng(seed))
        steps = np.array([placement.step_down, placement.step_right])
        np.testing.assert_allclose(steps @ steps.T, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_image_and_target_stay_together(seed):
    # The image tells where each pixel comes from; the target must come from there too.
    image, target = apply(seed, crop=32, rotation=30, flip=True)
    column = (image[1] * 100).double()
    near_middle = (column - column.round()).abs() < 0.4
    expected = (column.round() % 7 == 0).float()
    assert near_middle.sum() > 500
    assert torch.equal(target[0][near_middle], expected[near_middle])
    assert set(target.unique().tolist()) == {0, 1}


def test_corners_outside_go_on_mirrored():
    image, _ = apply(1, crop=60, rotation=180, flip=False)
    assert image.min() >= 0 and image[0].max() <= 0.59 and image[1].max() <= 0.79


def test_global_random_states_stay():
    torch.manual_seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    apply(0, crop=10)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


def test_what_cannot_be_done_is_refused():
    with pytest.raises(ValueError, match="an image of 60x80 has no square of 61 pixels"):
        apply(0, crop=61)
    with pytest.raises(ValueError, match="crop must be 1 pixel or more; got 0"):
        Augmentation(crop=0)
    with pytest.raises(ValueError, match="rotation must be from 0 to 180 degrees; got -30"):
        Augmentation(rotation=-30)


@pytest.mark.parametrize("seed", range(8))
def test_the_fast_way_takes_the_same_square(seed):
    draw = np.random.default_rng(100 + seed)
    image = draw.integers(0, 256, (45, 60, 3), dtype=np.uint8)
    target = draw.integers(0, 3, (45, 60), dtype=np.uint8)
    for rotation in (0, 30, 180):
        settings = Augmentation(crop=40, rotation=rotation)
        placement = settings.place(45, 60, np.random.default_rng(seed))
        slow = settings.apply(
            torch.from_numpy(image.transpose(2, 0, 1).copy()).float(),
            torch.from_numpy(target).float()[None],
            np.random.default_rng(seed),
        )
        fast = placement.sample_image(image, 40)
        assert fast.shape == (3, 40, 40) and fast.dtype == np.uint8
        error = fast - slow[0].numpy()
        assert np.abs(error).max() <= 1.6  # a byte's rounding, and 256ths
        assert abs(error.mean()) < 0.1  # rounded, not cut off
        same = placement.sample_target(target, 40) == slow[1][0].numpy()
        assert same.mean() > 0.999  # but for places midway between two pixels
