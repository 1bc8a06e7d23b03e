import numpy as np
import pytest
import torch

from hgru_vision.data.augment import Augmentation
from hgru_vision.data.bsds import BSDS500
from hgru_vision.data.bsds_stream import IGNORED, BoundaryCrops, BoundarySettings
from hgru_vision.data.epochs import shuffled

SMALL = BoundarySettings(crop=32, allow_partial=True)


def test_a_crop_is_the_one_that_the_dataset_gives(natural):
    crops = BoundaryCrops(natural, "train", SMALL, seed=5)
    whole = BSDS500(natural, augment=Augmentation(crop=32), seed=5, allow_partial=True)
    images, targets = crops.batch(range(6)), crops.segmentations(range(6))
    assert images.dtype == targets.dtype == np.uint8
    found = []
    for position in range(6):
        epoch = position // 3
        for item in range(3):
            image, share = whole.item(item, epoch)
            if np.abs(images[position] / 255 - image.numpy()).max() < 1.5 / 255:
                found.append((epoch, item))
                boundary = (targets[position] == 1) == (share[0].numpy() >= 0.3)
                nothing = (targets[position] == 0) == (share[0].numpy() == 0)
                assert boundary.mean() > 0.99 and nothing.mean() > 0.99  # ties of the nearest pixel
    assert sorted(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [item for _, item in found] == shuffled(np.arange(6), 3, seed=5).tolist()


def test_an_item_is_a_function_of_its_position_and_the_seed(natural):
    crops = BoundaryCrops(natural, "train", SMALL, seed=5)
    images = crops.batch(range(9))
    again = BoundaryCrops(natural, "train", SMALL, seed=5)
    assert np.array_equal(again.batch([7, 2]), images[[7, 2]])
    assert len({image.tobytes() for image in images}) == 9
    other = BoundaryCrops(natural, "train", SMALL, seed=6)
    assert not np.array_equal(other.batch(range(9)), images)
    assert len(crops) == 2**40 and crops.epoch_size == 3
    assert crops.batch([2**40 - 1]).shape == (1, 3, 32, 32)


def test_pixels_marked_by_few_are_left_out(natural):
    # Annotator k of the first picture, of 2, marks column 24 + k; of the third, of 4, likewise.
    held_out = BoundaryCrops(natural, "val", SMALL)
    first, _, third = held_out.segmentations([0, 1, 2])
    assert np.unique(first).tolist() == [0, 1] and (first == 1).sum() == 2 * 32
    assert np.unique(third).tolist() == [0, IGNORED] and (third == IGNORED).sum() == 4 * 32
    all_agree = BoundarySettings(crop=32, share=0.25, allow_partial=True)
    assert (BoundaryCrops(natural, "val", all_agree).segmentations([2]) == 1).sum() == 4 * 32


def test_each_annotator_is_an_item_in_training_alone(natural):
    people = BoundarySettings(crop=32, target="annotator", rotation=0, allow_partial=True)
    crops = BoundaryCrops(natural, "train", people, seed=0)
    assert crops.epoch_size == 2 + 3 + 4
    targets = crops.segmentations(range(9))
    assert np.unique(targets).tolist() == [0, 1]
    assert (targets.sum(axis=(1, 2)) == 32).all()
    assert len(BoundaryCrops(natural, "val", people)) == 3


def test_held_out_crops_are_the_middles(natural):
    held_out = BoundaryCrops(natural, "val", SMALL, count=2)
    assert len(held_out) == 2
    assert len(BoundaryCrops(natural, "val", SMALL, count=9)) == 3
    picture = BSDS500(natural, "val", allow_partial=True).image("101")  # 48x40
    middle = picture[8:40, 4:36].transpose(2, 0, 1)
    assert np.array_equal(held_out.batch([1])[0], middle)
    image, target = held_out[1]
    assert image.shape == (3, 32, 32) and target.shape == (1, 32, 32)
    assert image.dtype == torch.float32 and image.max() <= 1
    described = held_out.describe()
    assert (described["target"], described["channels"], described["height"]) == (
        "boundaries",
        3,
        32,
    )


def test_pictures_are_those_of_the_split(tmp_path, write_bsds):
    for split, shapes in (("train", ((40, 48),)), ("val", ((40, 48),) * 2)):
        write_bsds(tmp_path, split=split, shapes=shapes)
    found = [BoundaryCrops(tmp_path, split, SMALL, seed=4) for split in ("train", "val")]
    assert [crops.epoch_size for crops in found] == [1, 2]
    assert [crops.describe()["split"] for crops in found] == ["train", "val"]
    assert found[0].describe()["seed"] == 4


def test_what_cannot_be_done_is_refused(natural):
    with pytest.raises(ValueError, match="BSDS500 has no labels; the run's target must be"):
        BoundaryCrops(natural, "val", SMALL).labels([0])
    too_large = BoundarySettings(crop=41, allow_partial=True)
    with pytest.raises(ValueError, match="picture 100 of 40x48 has no square of 41 pixels; set cr"):
        BoundaryCrops(natural, "train", too_large, seed=0)
    with pytest.raises(FileNotFoundError, match="holds 3 images; this split of BSDS500 has 200"):
        BoundaryCrops(natural, "train", seed=0)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("target", "all", "target must be consensus or annotator; got 'all'"),
        ("share", 0.0, "share must be above 0 and at most 1; got 0.0"),
        ("crop", 0, "crop must be 1 pixel or more; got 0"),
        ("rotation", 200.0, "rotation must be from 0 to 180 degrees; got 200.0"),
    ],
)
def test_bad_settings_are_named(field, value, message):
    with pytest.raises(ValueError, match=message):
        BoundarySettings(**{field: value})
