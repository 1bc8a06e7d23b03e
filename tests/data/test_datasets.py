import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from hgru_vision.data.datasets import SPLIT_SIZE, Pathfinder
from hgru_vision.stimuli import PathfinderConfig, UnsatisfiableError, preset

SMALL = PathfinderConfig(
    length=3, canvas=40, edge_margin=2, distractor_length=2, distractor_paddles=6
)


def test_an_item_is_an_image_and_a_label():
    image, label = Pathfinder(length=6, count=10)[3]
    assert image.shape == (1, 150, 150)
    assert image.dtype == torch.float32
    assert set(image.unique().tolist()) == {0.0, 1.0}
    assert isinstance(label, int)
    assert label in (0, 1)


def test_an_item_is_an_image_and_a_mask():
    data = Pathfinder(preset="crbp-14", count=10, target="segmentation", seed=2, split="test")
    image, mask = data[3]
    assert image.shape == mask.shape == (1, 150, 150)
    assert set(mask.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_array_equal(mask[0].numpy(), data.segmentations([3])[0])
    np.testing.assert_array_equal(mask[0].numpy(), data.stimulus(3).segmentation)


def test_a_slice_is_refused_with_what_gives_several_images():
    with pytest.raises(TypeError, match=r"one number, not a slice; batch\(range\(...\)\) gives"):
        Pathfinder(length=6, count=10)[1:3]


@pytest.mark.filterwarnings("ignore:This DataLoader will create 8 worker processes")
def test_eight_workers_in_any_order_give_the_same_items():
    data = Pathfinder(count=96, seed=4, config=SMALL)
    expected = data.batch(np.arange(96))
    order = np.random.default_rng(0).permutation(96).tolist()
    loader = DataLoader(data, batch_size=8, sampler=order, num_workers=8)
    images, labels = (torch.cat(parts) for parts in zip(*loader, strict=True))
    np.testing.assert_array_equal((255 * images[:, 0]).numpy(), expected[order])
    np.testing.assert_array_equal(labels.numpy(), data.labels(order))


def test_splits_are_disjoint_streams():
    splits = [
        Pathfinder(count=200, seed=0, split=s, config=SMALL)
        for s in ("train", "validation", "test")
    ]
    drawn = [image.tobytes() for data in splits for image in data.batch(np.arange(200))]
    assert len(set(drawn)) == 600
    numbers = [data.numbers([0, 199]) for data in splits]
    assert [int(first) for first, _ in numbers] == [0, SPLIT_SIZE, 2 * SPLIT_SIZE]


def test_the_paper_has_900_000_images_to_train_on_and_100_000_to_test():
    assert len(Pathfinder(length=6)) == 900_000
    assert len(Pathfinder(length=6, split="test")) == 100_000
    assert len(Pathfinder(length=6, split="validation")) == 100_000


def test_labels_are_balanced_in_every_split():
    for split in ("train", "validation", "test"):
        data = Pathfinder(length=6, count=1000, split=split)
        assert data.labels(np.arange(1000)).sum() == 500


def test_it_pickles_and_describes_itself():
    data = Pathfinder(length=9, count=12, seed=3, preset="matched", split="test")
    again = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(again.batch([5]), data.batch([5]))
    description = data.describe()
    assert description["config"]["ghost"] is True
    assert description["generator"] == "PathfinderConfig"
    assert (description["seed"], description["split"], description["height"]) == (3, "test", 150)
    assert "length=9" in repr(data)


def test_a_new_version_of_a_generator_is_described(monkeypatch):
    monkeypatch.setattr(Pathfinder, "version", 7)
    assert Pathfinder(length=6, count=2).describe()["generator_version"] == 7


def test_a_stimulus_is_the_item_with_all_that_is_known_of_it():
    data = Pathfinder(length=6, count=20, seed=1, split="validation")
    stimulus = data.stimulus(7)
    np.testing.assert_array_equal(stimulus.image, data.batch([7])[0])
    assert stimulus.label == data[7][1]
    assert stimulus.index == SPLIT_SIZE + 7


def test_parameters_of_a_preset_can_be_changed():
    assert Pathfinder(length=6, count=4, contrast=0.5, canvas=200).config == preset(
        "paper", length=6, contrast=0.5, canvas=200
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"split": "dev"}, ValueError, "split must be train, validation or test; got 'dev'"),
        ({"target": "box"}, ValueError, "target must be label or segmentation; got 'box'"),
        ({"count": 0}, ValueError, r"count must be from 1 to 2\*\*40; got 0"),
        ({"count": 2**40 + 1}, ValueError, r"count must be from 1 to 2\*\*40; got 1099511627777"),
        ({"seed": -1}, ValueError, r"seed must be from 0 to 2\*\*63 - 1; got -1"),
        ({"count": True}, TypeError, "count must be a whole number; got True"),
        ({"count": 1.5}, TypeError, r"count must be a whole number; got 1\.5"),
        ({"config": SMALL, "length": 6}, TypeError, "give config or length, not both"),
        ({"config": SMALL, "preset": "paper"}, TypeError, "give config or preset, not both"),
        ({"config": SMALL, "canvas": 60}, TypeError, "give config or canvas, not both"),
        ({"config": "paper"}, TypeError, "config must be a PathfinderConfig or .*; got 'paper'"),
        ({"preset": "crbp-14"}, ValueError, "one marker, so there is nothing to classify"),
        ({"preset": "crbp-14"}, ValueError, "hgru generate: --target segmentation, hgru train"),
        ({"lenght": 6}, TypeError, "no parameter 'lenght'; did you mean 'length'"),
        ({"length": 14, "canvas": 32}, UnsatisfiableError, "length=14 does not fit"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Pathfinder(**arguments)


def test_an_index_out_of_range_is_refused():
    with pytest.raises(IndexError, match="index 10 is out of range: 10 items"):
        Pathfinder(length=6, count=10)[10]


def test_whole_numbers_of_numpy_are_whole_numbers():
    data = Pathfinder(np.int64(6), count=np.int64(4), seed=np.int64(3))
    assert (data.config.length, len(data), data.seed) == (6, 4, 3)
    assert type(data.count) is type(data.seed) is int
