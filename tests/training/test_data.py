from dataclasses import replace

import numpy as np
import pytest

from hgru_vision.data.store import write
from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.data import (
    Files,
    Mixture,
    evaluation_data,
    final_data,
    shuffled,
    training_data,
)

LONGER = replace(SMALL, length=4)


def one(source, images, **keywords):
    return Stage(sources=(source,), images=images, **keywords)


def test_stages_share_no_image(tiny):
    config = tiny(stages=(one(SMALL, 40), one(SMALL, 40)))
    first, second = training_data(config, 0), training_data(config, 1)
    stream = first.sources[0]
    assert np.array_equal(first.batch(range(40)), stream.batch(range(40)))
    assert np.array_equal(second.batch(range(40)), stream.batch(range(40, 80)))
    assert np.array_equal(second.labels(range(40)), stream.labels(range(40, 80)))


def test_the_three_splits_share_no_image(tiny):
    config = tiny(evaluation_images=8, test_images=8)
    parts = [training_data(config, 0), evaluation_data(config, 0), final_data(config)]
    images = [part.batch(range(8)) for part in parts]
    assert len({image.tobytes() for image in np.concatenate(images)}) == 24
    assert [len(part) for part in parts[1:]] == [8, 8]


def test_unique_images_come_again_in_another_order(tiny):
    config = tiny(stages=(one(SMALL, 48, unique=16),))
    data = training_data(config, 0)
    epochs = [[image.tobytes() for image in data.batch(range(i, i + 16))] for i in (0, 16, 32)]
    assert set(epochs[0]) == set(epochs[1]) == set(epochs[2])
    assert len(set(epochs[0])) == 16
    assert epochs[0] != epochs[1] != epochs[2]


def test_an_order_is_whole_and_its_own(tiny):
    orders = [tuple(shuffled(np.arange(i, i + 100), 100, seed=3)) for i in (0, 100)]
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert orders[0] != orders[1]
    assert tuple(shuffled(np.arange(100), 100, seed=4)) != orders[0]
    assert shuffled(np.array([7, 107, 8]), 100, seed=3).tolist() == [
        orders[0][7], orders[1][7], orders[0][8],
    ]  # fmt: skip


def test_a_mixture_is_a_pure_function_of_the_item(tiny):
    stage = Stage(sources=(SMALL, LONGER), shares=(3, 1), images=4000)
    data = training_data(tiny(stages=(stage,)), 0)
    short, long = data.sources
    items = np.arange(4000)
    images, labels = data.batch(items), data.labels(items)
    from_short = (images == short.batch(items)).all(axis=(1, 2))
    from_long = (images == long.batch(items)).all(axis=(1, 2))
    assert (from_short ^ from_long).all()
    assert from_short.mean() == pytest.approx(0.75, abs=0.03)
    assert labels.sum() == 2000  # pairs stay together, so that classes stay balanced
    some = np.array([77, 3, 3999])
    assert np.array_equal(data.batch(some), images[some])
    assert np.array_equal(data.segmentations(some)[0].shape, (32, 32))


def test_other_seeds_mix_otherwise(tiny):
    stage = Stage(sources=(SMALL, LONGER), images=400)
    mixes = []
    for seed in (0, 1):
        data = training_data(tiny(stages=(stage,), data_seed=seed), 0)
        same = data.batch(range(400)) == data.sources[0].batch(range(400))
        mixes.append(same.all(axis=(1, 2)))
    assert (mixes[0] != mixes[1]).any()


def test_sources_of_two_sizes_do_not_mix(tiny):
    larger = replace(SMALL, changes=SMALL.changes | {"canvas": 40})
    stage = Stage(sources=(SMALL, larger), images=400)
    with pytest.raises(ValueError, match="its sources have 32 x 32 and 40 x 40 pixels"):
        training_data(tiny(stages=(stage,)), 0)


@pytest.fixture
def folder(tiny, tmp_path):
    stream = training_data(tiny(), 0).sources[0]
    stream.count = 120
    write(stream, tmp_path, shard_size=50)
    return tmp_path, stream


def test_files_hold_out_their_last_items(tiny, folder):
    path, stream = folder
    config = tiny(stages=(one(Source(path=str(path)), 96),))  # 32 + 40 are held out
    train, held, final = training_data(config, 0), evaluation_data(config, 0), final_data(config)
    assert np.array_equal(held.batch(range(32)), stream.batch(range(48, 80)))
    assert np.array_equal(final.batch(range(40)), stream.batch(range(80, 120)))
    assert np.array_equal(final.labels(range(40)), stream.labels(range(80, 120)))
    seen = {image.tobytes() for image in train.batch(range(48))}
    assert seen == {image.tobytes() for image in stream.batch(range(48))}
    assert not np.array_equal(train.batch(range(48)), train.batch(range(48, 96)))
    assert isinstance(final, Files) and isinstance(train, Mixture)
    assert len(final) == 40


def test_too_few_files_are_refused(tiny, folder):
    config = tiny(stages=(one(Source(path=str(folder[0])), 96),), test_images=100)
    with pytest.raises(ValueError, match=r"holds 120 images; 132 are held out .* batch of 8"):
        training_data(config, 0)


def test_files_without_masks_are_refused_for_segmentation(tiny, folder):
    config = tiny(stages=(one(Source(path=str(folder[0])), 96),), target="segmentation")
    with pytest.raises(ValueError, match="holds labels and the run's target is segmentation"):
        training_data(config, 0)
