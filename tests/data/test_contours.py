import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import hgru_vision as hv
from hgru_vision.data.contours import SyntheticContours
from hgru_vision.data.datasets import SPLIT_SIZE
from hgru_vision.data.readers import open_dataset
from hgru_vision.data.store import write
from hgru_vision.stimuli import UnsatisfiableError
from hgru_vision.stimuli.contours import ContourConfig

SMALL = ContourConfig(length=3, canvas=32, cells=8, eccentricity=0.5)


def test_an_item_is_an_image_and_a_label():
    image, label = hv.SyntheticContours(length=9, shear=0.2, count=10)[3]
    assert image.shape == (1, 256, 256)
    assert image.dtype == torch.float32
    assert 0.9 < image.max() <= 1
    assert label in (0, 1)


def test_an_item_is_an_image_and_a_mask():
    data = SyntheticContours(count=4, target="segmentation", config=SMALL)
    for index in range(4):
        image, mask = data[index]
        assert image.shape == mask.shape == (1, 32, 32)
        assert mask.any() == bool(data.labels([index])[0])
        np.testing.assert_array_equal(mask[0].numpy(), data.segmentations([index])[0])


def test_workers_give_the_same_items():
    data = SyntheticContours(count=16, seed=4, config=SMALL)
    loader = DataLoader(data, batch_size=4, num_workers=2)
    images, labels = (torch.cat(parts) for parts in zip(*loader, strict=True))
    np.testing.assert_array_equal((255 * images[:, 0]).round().numpy(), data.batch(np.arange(16)))
    np.testing.assert_array_equal(labels.numpy(), data.labels(np.arange(16)))


def test_splits_are_disjoint_streams():
    splits = [
        SyntheticContours(count=50, config=SMALL, split=split)
        for split in ("train", "validation", "test")
    ]
    drawn = [image.tobytes() for data in splits for image in data.batch(np.arange(50))]
    assert len(set(drawn)) == 150
    assert [int(data.numbers([0])[0]) for data in splits] == [0, SPLIT_SIZE, 2 * SPLIT_SIZE]


def test_the_paper_has_900_000_images_to_train_on_and_100_000_to_test():
    assert len(SyntheticContours()) == 900_000
    assert len(SyntheticContours(split="test")) == 100_000


def test_it_pickles_describes_itself_and_knows_its_stimuli():
    data = SyntheticContours(length=5, shear=-0.6, count=12, seed=3, split="test", canvas=150)
    again = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(again.batch([5]), data.batch([5]))
    description = data.describe()
    assert description["config"]["shear"] == -0.6
    assert (description["seed"], description["split"], description["height"]) == (3, "test", 150)
    assert "length=5" in repr(data)
    stimulus = data.stimulus(7)
    np.testing.assert_array_equal(stimulus.image, data.batch([7])[0])
    assert stimulus.index == 2 * SPLIT_SIZE + 7


@pytest.mark.parametrize("format", ["npy", "png"])
@pytest.mark.parametrize("antialias", [True, False])
def test_it_can_be_written_and_read(tmp_path, format, antialias):
    config = replace(SMALL, thickness=1 / 16, antialias=antialias)
    data = SyntheticContours(count=6, target="segmentation", config=config)
    write(data, tmp_path / "files", format=format, shard_size=4)
    stored = open_dataset(tmp_path / "files")
    every = np.arange(6)
    np.testing.assert_array_equal(stored.batch(every), data.batch(every))
    np.testing.assert_array_equal(stored.labels(every), data.labels(every))
    np.testing.assert_array_equal(stored.segmentations(every), data.segmentations(every))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"split": "dev"}, ValueError, "split must be train, validation or test; got 'dev'"),
        ({"target": "box"}, ValueError, "target must be label or segmentation; got 'box'"),
        ({"count": 0}, ValueError, r"count must be from 1 to 2\*\*40; got 0"),
        ({"count": 2**40 + 1}, ValueError, r"count must be from 1 to 2\*\*40; got 1099511627777"),
        ({"count": 1.5}, TypeError, r"count must be a whole number; got 1\.5"),
        ({"config": SMALL, "length": 6}, TypeError, "give config or length, not both"),
        ({"config": SMALL, "canvas": 60}, TypeError, "give config or canvas, not both"),
        ({"config": {"length": 9}}, TypeError, r"config must be a ContourConfig; got \{'length'"),
        ({"sheer": 0.2}, TypeError, "have no parameter 'sheer'; did you mean 'shear'"),
        ({"preset": "paper"}, TypeError, "have no parameter 'preset'; there are length, shear,"),
        ({"length": 40}, UnsatisfiableError, "length=40 does not fit"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        SyntheticContours(**arguments)
