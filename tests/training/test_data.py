from dataclasses import replace

import numpy as np
import pytest

from hgru_vision.data.readers import open_dataset
from hgru_vision.data.store import write
from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.data import (
    Files,
    Mixture,
    check_data,
    contour_config,
    evaluation_data,
    final_data,
    trained_on,
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


def test_stages_share_no_image_where_more_are_unique_than_shown(tiny):
    config = tiny(stages=(one(SMALL, 16, unique=200), one(SMALL, 100)))
    first, second = (
        {image.tobytes() for image in training_data(config, number).batch(range(count))}
        for number, count in ((0, 16), (1, 100))
    )
    assert not first & second


def test_images_of_a_training_are_known_wherever_they_lie(tiny, tmp_path):
    config = tiny(stages=(one(SMALL, 40), one(SMALL, 48, unique=16)))
    stream = training_data(config, 0).sources[0]
    assert trained_on(config, stream, np.arange(30, 100)) == 10 + 16  # to 40, and 40 to 56
    assert trained_on(config, final_data(config), np.arange(30)) == 0
    assert trained_on(tiny(stages=config.stages, data_seed=1), stream, np.arange(30)) == 0
    stream.count = 120
    write(stream, tmp_path / "files", shard_size=50)
    files = tiny(stages=(one(Source(path=str(tmp_path / "files"), length=3), 96),))
    assert trained_on(files, open_dataset(tmp_path / "files"), np.arange(120)) == 48
    (tmp_path / "files").rename(tmp_path / "elsewhere")
    assert trained_on(files, open_dataset(tmp_path / "elsewhere"), np.arange(120)) == 0


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
    with pytest.raises(ValueError, match="have 32 x 32 pixels and 40 x 40 pixels"):
        training_data(tiny(stages=(stage,)), 0)


@pytest.fixture
def folder(tiny, tmp_path):
    stream = training_data(tiny(), 0).sources[0]
    stream.count = 120
    write(stream, tmp_path, shard_size=50)
    return tmp_path, stream


def test_files_hold_out_their_last_items(tiny, folder):
    path, stream = folder
    config = tiny(stages=(one(Source(path=str(path), length=3), 96),))  # 32 + 40 are held out
    train, held, final = training_data(config, 0), evaluation_data(config, 0), final_data(config)
    assert np.array_equal(held.batch(range(32)), stream.batch(range(48, 80)))
    assert np.array_equal(final.batch(range(40)), stream.batch(range(80, 120)))
    assert np.array_equal(final.labels(range(40)), stream.labels(range(80, 120)))
    seen = {image.tobytes() for image in train.batch(range(48))}
    assert seen == {image.tobytes() for image in stream.batch(range(48))}
    assert not np.array_equal(train.batch(range(48)), train.batch(range(48, 96)))
    assert isinstance(final, Files) and isinstance(train, Mixture)
    assert len(final) == 40


def test_files_of_another_length_are_refused(tiny, folder):
    config = tiny(stages=(one(Source(path=str(folder[0])), 96),))
    with pytest.raises(ValueError, match="holds paths of 3 paddles, and length is 14; give length"):
        training_data(config, 0)


def test_too_few_files_are_refused(tiny, folder):
    config = tiny(stages=(one(Source(path=str(folder[0]), length=3), 96),), test_images=100)
    with pytest.raises(ValueError, match=r"holds 120 images; 132 are held out .* batch of 8"):
        training_data(config, 0)


def test_files_whose_held_out_items_are_trained_on_are_refused(tiny, folder):
    files = Source(path=str(folder[0]), length=3)
    config = tiny(stages=(one(SMALL, 800), one(files, 96)))
    with pytest.raises(ValueError) as error:
        check_data(config)
    assert "items 48 to 119 of " in str(error.value)
    assert "are held out, and stages[0], " in str(error.value)
    assert "trains on items 0 to 799 of the same stream; generate " in str(error.value)
    assert "generate the files with another --seed" in str(error.value)
    check_data(tiny(stages=(one(SMALL, 800), one(files, 96)), data_seed=1))
    check_data(tiny(stages=(one(SMALL, 48), one(files, 96))))
    with pytest.raises(ValueError, match=r"trains on items 0 to 99 of the same stream"):
        check_data(tiny(stages=(one(SMALL, 48, unique=100), one(files, 96))))


@pytest.mark.parametrize(("split", "stage"), [("validation", 0), ("test", 1)])
def test_files_of_what_others_hold_out_are_refused(tiny, tmp_path, split, stage):
    """Written as the drawn images on which the run is evaluated, or judged in the end."""
    held = evaluation_data(tiny(), 0).sources[0] if split == "validation" else final_data(tiny())
    held.count = 120
    write(held, tmp_path, shard_size=50)
    other = replace(SMALL, length=4)
    stages = [one(SMALL, 48), one(SMALL, 48)] if split == "test" else [one(SMALL, 48)]
    stages.insert(stage, one(Source(path=str(tmp_path), length=3), 96))
    stages.append(one(other if split == "validation" else SMALL, 48))
    with pytest.raises(ValueError, match=rf"of paper-3, split {split}, are held out, and stages"):
        check_data(tiny(stages=tuple(stages)))
    check_data(tiny(stages=tuple(stages), data_seed=1))


def test_files_with_masks_are_trained_on_by_label(tiny, folder):
    config = tiny(stages=(one(Source(path=str(folder[0]), length=3), 96),))
    final = final_data(config)
    final.stored.describe = lambda: {"target": "segmentation"}
    assert final.describe()["target"] == "label"


def test_files_without_masks_are_refused_for_segmentation(tiny, folder):
    config = tiny(stages=(one(Source(path=str(folder[0]), length=3), 96),), target="segmentation")
    with pytest.raises(ValueError, match="holds labels and the run's target is segmentation"):
        training_data(config, 0)


NATURAL = {"crop": 32, "allow_partial": True}


def natural_run(tiny, root, *, changes=NATURAL, **more):
    source = Source(dataset="bsds500", path=str(root), changes=changes)
    settings = {"target": "segmentation", "evaluation_images": 3, "test_images": 2} | more
    return tiny(model="contour_vgg", options={}, stages=(one(source, 96),), **settings)


def test_natural_images_come_in_colour(tiny, natural):
    config = natural_run(tiny, natural)
    parts = [training_data(config, 0), evaluation_data(config, 0), final_data(config)]
    assert [len(part) for part in parts] == [96, 3, 2]
    for part in parts:
        assert part.batch([0, 1]).shape == (2, 3, 32, 32)
        assert part.segmentations([0, 1]).shape == (2, 32, 32)
    assert [part.split for part in (parts[0].sources[0], parts[1].sources[0], parts[2])] == [
        "train", "val", "test",
    ]  # fmt: skip


def test_natural_images_mix_item_by_item(tiny, natural):
    source = natural_run(tiny, natural).task
    other = replace(source, changes=NATURAL | {"rotation": 0})
    stage = Stage(sources=(source, other), images=96)
    config = replace(natural_run(tiny, natural), stages=(stage,))
    data = training_data(config, 0)
    images = data.batch(range(24))
    parts = [source.batch(range(24)) for source in data.sources]
    came = [(images == part).all(axis=(1, 2, 3)) for part in parts]
    assert (came[0] | came[1]).all() and came[0].any() and came[1].any()
    with pytest.raises(ValueError, match=r"have 32 x 32 pixels and 32 x 32 pixels in colour"):
        training_data(replace(config, stages=(Stage(sources=(SMALL, source), images=96),)), 0)


def test_what_natural_images_cannot_be_asked_is_refused(tiny, natural):
    with pytest.raises(ValueError, match=r"bsds500 has boundaries and no labels, and .* is label"):
        training_data(natural_run(tiny, natural, target="label"), 0)
    few = r"evaluation_images must be at most 3, the pictures in split val of .*; got 4"
    with pytest.raises(ValueError, match=few):
        evaluation_data(natural_run(tiny, natural, evaluation_images=4), 0)
    with pytest.raises(ValueError, match=r"test_images must be at most 3, .* split test .*; got 9"):
        final_data(natural_run(tiny, natural, test_images=9))
    unknown = r"changes.corp is not a field of BoundarySettings; did you mean 'crop'\?"
    with pytest.raises(TypeError, match=unknown):
        training_data(natural_run(tiny, natural, changes={"corp": 32}), 0)


def test_contours_are_a_source(tiny):
    source = Source(dataset="contours", length=5, changes={"canvas": 64, "cells": 8})
    assert contour_config(source).canvas == 64
    config = tiny(stages=(one(source, 96),), evaluation_images=8, test_images=10)
    parts = [training_data(config, 0), evaluation_data(config, 0), final_data(config)]
    assert [len(part) for part in parts] == [96, 8, 10]
    assert parts[0].batch([0, 1]).shape == (2, 64, 64)
    assert parts[0].describe()["stimulus"] == "contours"
    assert len({part.batch([0]).tobytes() for part in parts}) == 3
