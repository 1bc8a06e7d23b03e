import threading

import numpy as np
import pytest
import torch

from hgru_vision.training.ahead import CHUNK, Ahead
from hgru_vision.training.data import training_data

CPU = torch.device("cpu")


def ahead(data, share=slice(0, 8), first=0, last=12, **keywords):
    return Ahead(data, batch=8, share=share, first=first, last=last, device=CPU, **keywords)


@pytest.fixture
def data(tiny):
    return training_data(tiny(), 0)


def test_batches_are_those_of_the_data_in_order(data):
    with ahead(data) as stream:
        batches = list(stream)
    assert len(batches) == 12
    images = torch.cat([images for images, _ in batches])
    labels = torch.cat([labels for _, labels in batches])
    assert np.array_equal(images, data.batch(range(96)))
    assert np.array_equal(labels, data.labels(range(96)))
    assert images.dtype == torch.uint8
    assert stream.waiting > 0


def test_it_starts_anywhere_and_gives_one_process_its_share(data):
    with ahead(data, share=slice(4, 8), first=5, last=7) as stream:
        batches = [images for images, _ in stream]
    assert np.array_equal(batches[0], data.batch(range(44, 48)))
    assert np.array_equal(batches[1], data.batch(range(52, 56)))


def test_what_is_asked_for_comes_beside_the_images(data):
    with ahead(data, last=1, targets=("labels", "segmentations")) as stream:
        ((images, labels, masks),) = stream
    assert np.array_equal(images, data.batch(range(8)))
    assert np.array_equal(labels, data.labels(range(8)))
    assert np.array_equal(masks, data.segmentations(range(8)))
    with ahead(data, last=1, targets=()) as stream:
        assert [len(batch) for batch in stream] == [1]


def test_nothing_to_draw_is_no_batch(data):
    with ahead(data, first=12) as stream:
        assert list(stream) == []


def test_leaving_early_ends_the_thread(data):
    before = threading.active_count()
    with ahead(data, last=12) as stream:
        next(iter(stream))
    assert threading.active_count() == before


def test_an_error_of_the_thread_is_raised_where_the_batch_is_asked_for(data):
    class Broken:
        def batch(self, indices):
            if indices[-1] >= CHUNK * 8:
                raise OSError("the disk is gone")
            return data.batch(indices)

        labels = staticmethod(data.labels)

    with ahead(Broken()) as stream, pytest.raises(OSError, match="the disk is gone"):
        list(stream)
