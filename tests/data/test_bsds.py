import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import hgru_vision as hv
from hgru_vision.data.augment import Augmentation
from hgru_vision.data.bsds import BSDS500

SMALL = Augmentation(crop=20, rotation=30)


@pytest.fixture(scope="session")
def root(tmp_path_factory, write_bsds):
    return write_bsds(tmp_path_factory.mktemp("bsds"))


def make(root, **settings):
    return BSDS500(root, allow_partial=True, **settings)


def test_it_has_a_public_name():
    assert hv.BSDS500 is BSDS500


def test_consensus_is_the_share_of_annotators(root):
    data = make(root)
    assert len(data) == 3 and data.ids == ("100", "101", "102")
    image, target = data[1]
    assert image.shape == (3, 36, 24) and target.shape == (1, 36, 24)
    assert image.dtype == target.dtype == torch.float32
    assert image[:, :, :10].mean() < 0.02 and abs(image[:, :, 14:].mean() - 200 / 255) < 0.02
    third = torch.tensor(1 / 3)
    torch.testing.assert_close(target[0, 0].unique(), torch.stack([torch.zeros(()), third]))
    assert int((target[0, 0] > 0).sum()) == 3


def test_each_annotator_is_an_item(root):
    data = make(root, target="annotator")
    assert len(data) == 2 + 3 + 4
    for index, person in enumerate([0, 1, 0, 1, 2, 0, 1, 2, 3]):
        _, target = data[index]
        middle = target.shape[2] // 2
        assert target[0, :, middle + person].all() and target.sum() == target.shape[1]
    assert torch.equal(data[-1][1], data[8][1])
    with pytest.raises(IndexError):
        data[9]


def test_pictures_are_had_by_name(root):
    data = make(root)
    assert data.image("101").shape == (36, 24, 3) and data.image("101").dtype == np.uint8
    assert data.annotations("102").shape == (4, 24, 36)
    with pytest.raises(
        ValueError, match="no picture '1' in train; `ids` names them, such as '100'"
    ):
        data.image("1")


def test_an_augmented_item_is_a_function_of_seed_epoch_and_index(root):
    data, again = make(root, augment=SMALL), make(root, augment=SMALL)
    image, target = data.item(0, epoch=3)
    assert image.shape == (3, 20, 20) and target.shape == (1, 20, 20)
    assert torch.equal(data.item(-3, epoch=3)[0], image)
    again[2]
    again.set_epoch(3)
    assert torch.equal(again[0][0], image) and torch.equal(again[0][1], target)
    other = make(root, augment=SMALL, seed=1)
    for different in (data.item(0, 4), data.item(2, 3), other.item(0, 3)):
        assert not torch.equal(different[0], image)


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_hear_of_a_new_epoch(root, persistent):
    data = make(root, augment=SMALL)
    loader = DataLoader(data, batch_size=3, num_workers=1, persistent_workers=persistent)
    for epoch in (0, 5):
        data.set_epoch(epoch)
        (batch,) = list(loader)
        assert torch.equal(batch[0], torch.stack([data.item(i, epoch)[0] for i in range(3)]))


def test_it_pickles(root):
    data = make(root, augment=SMALL)
    data.set_epoch(2)
    copy = pickle.loads(pickle.dumps(data))
    assert copy.epoch == 2 and torch.equal(copy[1][0], data[1][0])


def test_the_real_data_set_is_whole(shared_data):
    for split, items in (("train", 1087), ("val", 546), ("test", 1063)):
        data = BSDS500(shared_data / "bsds500", split, "annotator")
        assert len(data.ids) in (100, 200) and len(data) == items
    image, target = BSDS500(shared_data / "bsds500", augment=Augmentation())[0]
    assert image.shape == (3, 300, 300) and 0 < target.mean() < 0.2
    assert image.min() >= 0 and image.max() <= 1


def test_wrong_settings_are_refused(root):
    with pytest.raises(ValueError, match="split must be train, val, test; got 'validation'"):
        make(root, split="validation")
    with pytest.raises(ValueError, match="target must be consensus, annotator; got 'mean'"):
        make(root, target="mean")
    with pytest.raises(ValueError, match="seed must be 0 or more; got -1"):
        make(root, seed=-1)
    with pytest.raises(ValueError, match="epoch must be 0 or more; got -1"):
        make(root).set_epoch(-1)
    with pytest.raises(FileNotFoundError, match="holds 3 images; this split of BSDS500 has 200"):
        BSDS500(root)
    assert "train" in repr(make(root))
