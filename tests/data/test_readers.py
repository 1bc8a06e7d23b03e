import contextlib
import pickle
import shutil
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from hgru_vision.data import readers
from hgru_vision.data.manifest import CorruptShardError
from hgru_vision.data.readers import open_dataset
from hgru_vision.data.store import write

FORMATS = ("npy", "parquet", "png")


@pytest.fixture(params=FORMATS)
def format(request):
    return request.param


def test_items_are_image_and_label(tmp_path, FakeSource, format):
    source = FakeSource()
    write(source, tmp_path, format=format, shard_size=10)
    dataset = open_dataset(tmp_path)
    assert len(dataset) == 23
    assert dataset.describe()["seed"] == 0
    for index in (0, 22, -1, -23):
        image, label = dataset[index]
        assert (image.dtype, tuple(image.shape)) == (torch.float32, (1, 9, 7))
        expected = source.batch(np.array([index % 23]))[0]
        np.testing.assert_array_equal(image[0].numpy(), expected / np.float32(255))
        assert type(label) is int
        assert label == source.labels(np.array([index % 23]))[0]


def test_items_are_image_and_mask(tmp_path, FakeSource, format):
    source = FakeSource(binary=False, target="segmentation")
    write(source, tmp_path, format=format, shard_size=10)
    image, mask = open_dataset(tmp_path)[12]
    assert (mask.dtype, mask.shape) == (torch.float32, image.shape)
    np.testing.assert_array_equal(mask[0].numpy(), source.segmentations(np.array([12]))[0])


def test_batches_may_repeat_and_be_empty(tmp_path, FakeSource, format):
    source = FakeSource()
    write(source, tmp_path, format=format, shard_size=10)
    dataset = open_dataset(tmp_path)
    indices = np.array([22, 3, 3, 11, 22, 0])
    np.testing.assert_array_equal(dataset.batch(indices), source.batch(indices))
    assert dataset.batch([]).shape == (0, 9, 7)
    assert dataset.labels([]).shape == (0,)


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_read_the_same(tmp_path, FakeSource, context):
    write(FakeSource(), tmp_path, shard_size=10)
    dataset = open_dataset(tmp_path)
    dataset.batch([0, 11])  # open in the parent
    alone = torch.cat([images for images, _ in DataLoader(dataset, batch_size=4)])
    loader = DataLoader(dataset, batch_size=4, num_workers=2, multiprocessing_context=context)
    assert torch.equal(torch.cat([images for images, _ in loader]), alone)


def test_a_forked_process_opens_its_own_files(tmp_path, FakeSource, monkeypatch):
    write(FakeSource(), tmp_path)
    dataset = open_dataset(tmp_path)
    dataset.batch([0])
    mine = dataset._open[0]
    monkeypatch.setattr("os.getpid", lambda: -1)
    dataset.batch([0])
    assert dataset._open[0] is not mine


def test_it_pickles_without_its_files(tmp_path, FakeSource, format):
    write(FakeSource(), tmp_path, format=format, shard_size=10)
    dataset = open_dataset(tmp_path)
    before = dataset.batch(range(23))
    data = pickle.dumps(dataset)
    assert len(data) < 3000
    np.testing.assert_array_equal(pickle.loads(data).batch(range(23)), before)


def test_few_shards_are_open_at_once(tmp_path, FakeSource, monkeypatch):
    monkeypatch.setattr(readers, "OPEN_SHARDS", 3)
    source = FakeSource(20)
    write(source, tmp_path, shard_size=2)
    dataset = open_dataset(tmp_path)
    np.testing.assert_array_equal(dataset.batch(range(20)), source.batch(np.arange(20)))
    assert len(dataset._open) == 3


def test_open_shards_leave_file_descriptors_for_others():
    """Of 256, the fewest that a system allows; a shard with masks holds two."""
    assert 2 * readers.OPEN_SHARDS + 32 <= 256


def test_shards_are_kept_under_the_lock(tmp_path, FakeSource):
    write(FakeSource(), tmp_path, shard_size=10)
    dataset = open_dataset(tmp_path)

    class Shards(dict):
        def __setitem__(self, number, reader):
            assert dataset._lock.locked()
            super().__setitem__(number, reader)

    dataset._open = Shards()
    dataset.batch([0, 22])
    assert list(dataset._open) == [0, 2]


def test_two_threads_keep_to_the_limit(tmp_path, FakeSource, monkeypatch):
    monkeypatch.setattr(readers, "OPEN_SHARDS", 3)
    write(FakeSource(40), tmp_path, shard_size=1)
    dataset = open_dataset(tmp_path)
    meet, opened = threading.Barrier(2, timeout=5), dataset.layout.open

    def both_at_once(*given):
        with contextlib.suppress(threading.BrokenBarrierError):
            meet.wait(0.2)
        return opened(*given)

    monkeypatch.setattr(dataset.layout, "open", both_at_once)
    threads = [
        threading.Thread(target=lambda first=first: [dataset[i] for i in range(first, 8, 2)])
        for first in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(dataset._open) == 3


def test_wrong_indices_are_named(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    dataset = open_dataset(tmp_path)
    for index in (23, -24):
        with pytest.raises(IndexError, match=f"index {index} is out of range: 23 items"):
            dataset[index]
    with pytest.raises(IndexError, match="index 18446744073709551615 is out of range: 23 items"):
        dataset.batch(np.array([2**64 - 1], np.uint64))
    with pytest.raises(TypeError, match=r"indices are float64 of shape \(1,\); a one-dimensional"):
        dataset.batch([0.5])
    with pytest.raises(TypeError, match=r"indices are bool of shape \(23,\); a one-dimensional"):
        dataset.batch(np.ones(23, bool))  # a choice, not the items 0 and 1


def test_masks_that_were_not_written_are_refused(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    with pytest.raises(ValueError, match="no segmentations: it was written with target 'label'"):
        open_dataset(tmp_path).segmentations([0])


def test_an_incomplete_directory_is_refused_with_the_command(tmp_path, FakeSource, format):
    def stop(done):
        if done > 10:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        write(FakeSource(), tmp_path, format=format, shard_size=10, progress=stop)
    command = (
        rf"hgru generate pathfinder --length 14 --count 23 --seed 0 --split train --target label "
        rf"--format {format} --shard-size 10 --out {tmp_path}"
    )
    with pytest.raises(ValueError, match=rf"10 of 23 items. Resume with .*\({command}, and what"):
        open_dataset(tmp_path)
    partial = open_dataset(tmp_path, allow_partial=True)
    assert len(partial) == 10
    np.testing.assert_array_equal(partial.batch([9]), FakeSource().batch(np.array([9])))
    with pytest.raises(IndexError, match="index 10 is out of range: 10 items"):
        partial[10]


def test_damage_is_refused_on_opening(tmp_path, FakeSource, format):
    write(FakeSource(), tmp_path / "good", format=format, shard_size=10)
    name = {"npy": "images-00001.npy", "parquet": "shard-00001.parquet"}.get(
        format, "imgs/1/sample_3.png"
    )
    bad = tmp_path / "bad"
    for damage, what in (
        (lambda data: data[:-5], "truncated"),
        (lambda data: data + b"12345", "changed"),
        (lambda data: None, "missing"),
    ):
        shutil.copytree(tmp_path / "good", bad)
        data = damage((bad / name).read_bytes())
        (bad / name).unlink()
        if data is not None:
            (bad / name).write_bytes(data)
        with pytest.raises(CorruptShardError, match=f"{name}: {what}"):
            open_dataset(bad)
        shutil.rmtree(bad)


def test_a_foreign_shard_is_refused_on_opening(tmp_path, FakeSource):
    """Of the right length, so that its header alone tells."""
    write(FakeSource(), tmp_path, shard_size=10)
    path = tmp_path / "images-00001.npy"
    path.write_bytes(path.read_bytes().replace(b"|u1", b"|i1"))
    with pytest.raises(CorruptShardError, match=r"images-00001.npy: foreign: int8 array of shape"):
        open_dataset(tmp_path)


def test_a_changed_byte_is_found_by_verify_alone(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    path = tmp_path / "images-00000.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    open_dataset(tmp_path)
    with pytest.raises(CorruptShardError, match=r"images-00000.npy: changed: its sha256"):
        open_dataset(tmp_path, verify=True)


def test_a_changed_listing_is_refused_on_opening(tmp_path, FakeSource):
    write(FakeSource(), tmp_path, format="png")
    path = tmp_path / "listing" / "0.tsv"
    path.write_text(path.read_text().replace("sample_1.png", "sample_2.png", 1))
    with pytest.raises(CorruptShardError, match=r"listing/0.tsv: changed: its sha256"):
        open_dataset(tmp_path)
