import random

import numpy as np
import pytest
import torch

from hgru_vision.stimuli import PRESETS, cues, draw, images, labels, preset, scenes, segmentations
from hgru_vision.stimuli.scenes import check_seed

FEW = np.arange(20)


@pytest.mark.parametrize("name", ["paper", "matched", "authors", "lra-128"])
def test_an_image_is_a_function_of_seed_and_index(name):
    config = preset(name, length=6)
    together = images(config, 5, np.arange(150), threads=2)
    np.testing.assert_array_equal(together, images(config, 5, np.arange(150), threads=1))
    order = np.random.default_rng(0).permutation(150)
    np.testing.assert_array_equal(images(config, 5, order), together[order])
    np.testing.assert_array_equal(images(config, 5, [77])[0], together[77])
    assert (images(config, 6, FEW) != together[:20]).any((1, 2)).all()


def test_labels_do_not_need_the_images_and_match_them():
    config = preset("paper", length=6)
    expected = [draw(config, 2, int(index)).label for index in FEW]
    assert labels(config, 2, FEW).tolist() == expected


def test_no_global_random_state_is_read_or_moved():
    config = preset("paper", length=6)
    before = images(config, 0, FEW)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    np.testing.assert_array_equal(images(config, 0, FEW), before)
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])


def test_a_million_numbers_apart_images_still_differ():
    config = preset("paper", length=6)
    far = images(config, 0, [0, 1_000_000, 2**40, 2**61])
    assert len({image.tobytes() for image in far}) == 4


@pytest.mark.slow
def test_a_million_images_have_no_duplicate_and_need_no_memory():
    import resource

    config = preset("paper", length=14)
    seen = set()
    positives = 0
    for start in range(0, 1_000_000, 10_000):
        indices = np.arange(start, start + 10_000)
        drawn = images(config, 0, indices)
        seen.update(hash(image.tobytes()) for image in drawn)
        positives += int(labels(config, 0, indices).sum())
        if start == 100_000:
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(seen) == 1_000_000
    assert positives == 500_000
    assert late - early < 150_000  # kB; the set of hashes itself takes about 100,000


@pytest.mark.parametrize("name", ["paper", "matched"])
def test_masks_and_markers_make_up_the_image(name):
    stimulus = draw(preset(name, length=9), 1, 4)
    assert stimulus.masks.dtype == bool
    assert stimulus.masks.shape == (2 + 44, 150, 150)
    assert (stimulus.masks.sum(0) <= 1).all()  # paddles never touch
    lit = stimulus.image == 255
    assert (stimulus.masks.any(0) <= lit).all()
    row, column = np.nonzero(lit & ~stimulus.masks.any(0))
    for x, y in zip(column + 0.5, row + 0.5, strict=True):  # the rest is markers
        assert np.hypot(*(stimulus.markers - [x, y]).T).min() <= 2.5


def test_masks_follow_the_paddles():
    stimulus = draw(preset("authors", length=6), 0, 0)
    assert set(stimulus.paddles["path"]) == set(range(len(stimulus.masks)))
    centres = np.stack([stimulus.paddles["y"], stimulus.paddles["x"]])
    hits = stimulus.masks[stimulus.paddles["path"], *centres.astype(int)]
    assert hits.mean() > 0.5


def test_segmentation_is_the_marked_paths():
    config = preset("paper", length=6)
    for index in range(6):
        stimulus = draw(config, 0, index)
        grown = scenes(config, 0, [index])
        expected = stimulus.masks[np.unique(grown.marked)].any(0)
        assert (expected <= stimulus.segmentation.astype(bool)).all()
        assert len(np.unique(grown.marked)) == (1 if stimulus.label else 2)
        outside = stimulus.segmentation.astype(bool) & ~expected
        row, column = np.nonzero(outside)
        for x, y in zip(column + 0.5, row + 0.5, strict=True):
            assert np.hypot(*(stimulus.markers - [x, y]).T).min() <= config.marker_radius


def test_one_marker_is_enough_for_segmentation():
    config = preset("crbp-14")
    assert labels(config, 0, FEW).all()
    stimulus = draw(config, 0, 0)
    assert stimulus.markers.shape == (1, 2)
    covered = segmentations(config, 0, [0])[0].astype(bool)
    marked = int(scenes(config, 0, [0]).marked[0, 0])
    assert (stimulus.masks[marked] <= covered).all()


def test_cues_are_those_of_the_drawn_image():
    config = preset("paper", length=6)
    read = cues(config, 3, FEW)
    for row, index in enumerate(FEW):
        stimulus = draw(config, 3, int(index))
        np.testing.assert_allclose(read.markers[row], stimulus.markers)
        assert read.ink[row] == pytest.approx(stimulus.image.mean() / 255)
        turns = 0.0
        for path in (0, 1):
            angles = stimulus.paddles["angle"][stimulus.paddles["path"] == path]
            turns += np.abs(np.angle(np.exp(1j * np.diff(angles)))).sum()
        assert read.curvature[row] == pytest.approx(turns)
        assert read.label[row] == stimulus.label


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_draws(name):
    config = preset(name, length=6)
    drawn = images(config, 0, FEW)
    assert drawn.shape == (20, config.size, config.size)
    assert drawn.dtype == np.uint8
    assert set(np.unique(drawn)) == {0, 255} if config.binary else len(np.unique(drawn)) > 10


def test_no_images_are_an_empty_array():
    assert images(preset("paper"), 0, []).shape == (0, 150, 150)


def test_bad_indices_and_seeds_are_refused():
    config = preset("paper")
    with pytest.raises(TypeError, match="indices must be whole numbers in one dimension; got"):
        images(config, 0, [0.5])
    with pytest.raises(IndexError, match=r"index -3 is outside 0 to 2\*\*62 - 1"):
        images(config, 0, [0, -3])
    with pytest.raises(TypeError, match="seed must be a whole number; got 'a'"):
        check_seed("a")
    with pytest.raises(ValueError, match=r"seed must be from 0 to 2\*\*63 - 1; got -1"):
        images(config, -1, [0])
