"""Writing and resuming; kills are in `test_store_kills.py`, verifying in `test_store_verify.py`."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest

from hgru_vision.data import durable, formats
from hgru_vision.data.manifest import CorruptShardError
from hgru_vision.data.readers import open_dataset
from hgru_vision.data.store import DiskFullError, verify, write

FORMATS = ("npy", "parquet", "png")


@pytest.fixture(params=FORMATS)
def format(request):
    return request.param


# -- What is written -------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("target", ["label", "segmentation"])
def test_what_is_read_is_what_the_source_draws(tmp_path, FakeSource, format, binary, target):
    source = FakeSource(23, binary=binary, target=target)
    manifest = write(source, tmp_path, format=format, shard_size=10)
    assert manifest.complete
    assert [(s.start, s.stop) for s in manifest.shards] == [(0, 10), (10, 20), (20, 23)]
    dataset = open_dataset(tmp_path, verify=True)
    indices = np.random.default_rng(0).permutation(23)
    np.testing.assert_array_equal(dataset.batch(indices), source.batch(indices))
    np.testing.assert_array_equal(dataset.labels(indices), source.labels(indices))
    if target == "segmentation":
        np.testing.assert_array_equal(dataset.segmentations(indices), source.segmentations(indices))


def test_binary_images_take_a_bit_a_pixel(tmp_path, FakeSource):
    write(FakeSource(16), tmp_path)
    packed = np.load(tmp_path / "images-00000.npy")
    assert packed.dtype == np.uint8
    assert packed.shape == (16, 8)  # 9 x 7 = 63 bits
    assert np.load(tmp_path / "labels-00000.npy").dtype == np.uint8


def test_the_manifest_is_a_function_of_the_arguments(tmp_path, FakeSource, format, tree):
    for name in ("one", "two"):
        write(FakeSource(), tmp_path / name, format=format, shard_size=10)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert str(tmp_path) not in (tmp_path / "one" / "manifest.json").read_text()


def test_chunks_do_not_show(tmp_path, FakeSource, format, tree, monkeypatch):
    write(FakeSource(), tmp_path / "whole", format=format)
    monkeypatch.setattr("hgru_vision.data.items.CHUNK", 5)
    seen = []
    write(FakeSource(), tmp_path / "parts", format=format, progress=seen.append)
    assert seen == [5, 10, 15, 20, 23]
    whole, parts = tree(tmp_path / "whole"), tree(tmp_path / "parts")
    if format == "npy":  # in the others row groups and listings follow the chunks
        assert whole == parts
    reader = [open_dataset(tmp_path / name).batch(range(23)) for name in ("whole", "parts")]
    np.testing.assert_array_equal(*reader)


def test_a_stored_dataset_can_be_written_again(tmp_path, FakeSource, format, tree):
    write(FakeSource(target="segmentation"), tmp_path / "npy", shard_size=10)
    write(open_dataset(tmp_path / "npy"), tmp_path / "copy", format=format, shard_size=10)
    write(FakeSource(target="segmentation"), tmp_path / "first", format=format, shard_size=10)
    assert tree(tmp_path / "copy") == tree(tmp_path / "first")


def test_a_complete_directory_is_left_alone(tmp_path, FakeSource, format, tree):
    first = write(FakeSource(), tmp_path, format=format, shard_size=10)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    source = FakeSource()
    source.batch = None  # nothing is drawn
    assert write(source, tmp_path, format=format, shard_size=10) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


# -- Kills -----------------------------------------------------------------------------------------


def test_leftovers_of_a_kill_are_removed(tmp_path, FakeSource, format, tree, stop_after):
    write(FakeSource(), tmp_path / "whole", format=format, shard_size=10)
    broken = tmp_path / "broken"
    with pytest.raises(InterruptedError):
        write(FakeSource(), broken, format=format, shard_size=10, progress=stop_after(20))
    (broken / ".partial").mkdir()
    (broken / ".partial" / "half").write_bytes(b"half")
    for name in formats.make_format(format, FakeSource().describe()).names(1):
        path = broken / name
        if path.suffix:
            path.write_bytes(b"moved, but not in the manifest")
        else:
            path.mkdir()
            (path / "sample_0.png").write_bytes(b"stale")
    assert verify(broken).stored == 10  # what is left of shard 1 is no part of the dataset
    write(FakeSource(), broken, format=format, shard_size=10)
    assert tree(broken) == tree(tmp_path / "whole")


def test_what_is_moved_is_flushed_before_and_its_place_after(
    tmp_path, FakeSource, format, monkeypatch
):
    """Else a power failure could leave a manifest that names files which were never stored."""
    flushed, moved, replace = set(), [], os.replace

    def checked_replace(source, target):
        files = {str(path) for path in (source, *source.rglob("*"))}
        assert files <= flushed
        if target.name == "manifest.json":
            assert {str(path.parent) for path in moved} <= flushed
        replace(source, target)
        moved.append(target)
        flushed.difference_update(files, {str(target.parent)})

    monkeypatch.setattr(os, "fsync", lambda d: flushed.add(os.readlink(f"/proc/self/fd/{d}")))
    monkeypatch.setattr(os, "replace", checked_replace)
    write(FakeSource(), tmp_path, format=format, shard_size=10)
    names = len(formats.make_format(format, FakeSource().describe()).names(0))
    assert len(moved) == 1 + 3 * (names + 1)
    assert {str(path.parent) for path in moved} <= flushed


# -- Refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": 1}, "source.seed = 0, now it is 1"),
        ({"count": 24}, "count = 23, now it is 24"),
        ({"format": "png"}, "format = 'npy', now it is 'png'"),
        ({"shard_size": 5}, "shard_size = 10, now it is 5"),
        ({"size": (9, 8)}, "source.width = 7, now it is 8"),
    ],
)
def test_other_arguments_are_refused_by_name(tmp_path, FakeSource, tree, arguments, message):
    write(FakeSource(), tmp_path, shard_size=10)
    before = tree(tmp_path)
    options = {"format": "npy", "shard_size": 10}
    options |= {key: arguments.pop(key) for key in list(arguments) if key in options}
    with pytest.raises(ValueError, match=f"{re.escape(message)}; give the old value to resume"):
        write(FakeSource(**arguments), tmp_path, **options)
    assert tree(tmp_path) == before


def test_a_config_that_differs_within_is_refused_by_its_dotted_name(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    other = FakeSource()
    description = other.describe()
    description["config"]["length"] = 9
    other.describe = lambda: description
    with pytest.raises(ValueError, match=r"source\.config\.length = 14, now it is 9"):
        write(other, tmp_path)
    description["config"] |= {"length": 14, "ghost": True}  # a field that was not there before
    with pytest.raises(ValueError, match=r"source\.config\.ghost = 'nothing', now it is True"):
        write(other, tmp_path)
    del description["config"]["length"]
    with pytest.raises(ValueError, match=r"source\.config\.length = 14, now it is 'nothing'"):
        write(other, tmp_path)


def test_a_directory_with_other_files_is_refused(tmp_path, FakeSource, tree):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / ".partial").mkdir()
    before = tree(tmp_path)
    with pytest.raises(FileExistsError, match=r"holds 'thesis.tex' .*no manifest.json; give an em"):
        write(FakeSource(), tmp_path)
    assert tree(tmp_path) == before


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path, FakeSource):
    (tmp_path / "a.png").touch()
    with pytest.raises(NotADirectoryError, match=r"a\.png is a file; images need a folder"):
        write(FakeSource(), tmp_path / "a.png")


def test_no_dataset_is_written_into_another(tmp_path, FakeSource, tree):
    write(FakeSource(), tmp_path / "outer")
    before = tree(tmp_path)
    with pytest.raises(FileExistsError, match=r"a/b lies in the dataset .*outer, which would take"):
        write(FakeSource(), tmp_path / "outer" / "a" / "b")
    assert tree(tmp_path) == before
    (tmp_path / "manifest.json").write_text('{"name": "of a web page"}')
    write(FakeSource(), tmp_path / "beside")


def test_a_damaged_shard_is_not_resumed_over(tmp_path, FakeSource, stop_after):
    with pytest.raises(InterruptedError):
        write(FakeSource(), tmp_path, shard_size=10, progress=stop_after(20))
    (tmp_path / "images-00000.npy").write_bytes(b"short")
    with pytest.raises(
        CorruptShardError, match=r"images-00000.npy: truncated: 5 of \d+ bytes; rest"
    ):
        write(FakeSource(), tmp_path, shard_size=10)


def test_a_second_writer_is_refused(tmp_path, FakeSource):
    with (
        durable.only_writer(tmp_path),
        pytest.raises(BlockingIOError, match=r"another process writes to .*; wait for it or stop"),
    ):
        write(FakeSource(), tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"format": "zip"}, ValueError, "format='zip'; known are npy, parquet, png"),
        ({"shard_size": 0}, ValueError, "shard_size=0; it must be 1 or more"),
        ({"shard_size": 1e4}, TypeError, r"shard_size must be a whole number; got 10000\.0"),
        ({"shard_size": True}, TypeError, "shard_size must be a whole number; got True"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    tmp_path, FakeSource, options, error, message
):
    with pytest.raises(error, match=message):
        write(FakeSource(), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_whole_number_of_numpy_is_written_as_one(tmp_path, FakeSource):
    write(FakeSource(), tmp_path, shard_size=np.int64(10))
    assert write(FakeSource(), tmp_path, shard_size=10).complete


def test_an_empty_source_is_refused(tmp_path, FakeSource):
    with pytest.raises(ValueError, match="holds no items; give it a count of 1 or more"):
        write(FakeSource(0), tmp_path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_keeps_whole_shards_and_resumes(
    tmp_path, FakeSource, format, tree, monkeypatch, number
):
    write(FakeSource(), tmp_path / "whole", format=format, shard_size=10)
    kind = formats.FORMATS[format]
    whole_write = kind.write

    def failing(self, folder, shard, chunks):
        whole_write(self, folder, shard, chunks)
        if shard == 1:
            raise OSError(number, os.strerror(number))

    out = tmp_path / "full"
    monkeypatch.setattr(kind, "write", failing)
    with pytest.raises(
        DiskFullError,
        match=r"for shard 1 \(of 3, from 0\): the 13 items that are left need about 0\.0 MB, .* "
        "are free. Complete shards are kept: make room and give the same command to resume",
    ) as caught:
        write(FakeSource(), out, format=format, shard_size=10)
    assert caught.value.errno == number
    assert not (out / ".partial").exists()
    assert verify(out).stored == 10
    monkeypatch.undo()
    write(FakeSource(), out, format=format, shard_size=10)
    assert tree(out) == tree(tmp_path / "whole")


@pytest.mark.parametrize(
    ("binary", "target", "megabytes"),
    [(True, "label", "2.8"), (False, "label", "22.5"), (True, "segmentation", "5.6")],
)
def test_the_space_needed_is_estimated_before_the_first_shard(
    tmp_path, FakeSource, monkeypatch, binary, target, megabytes
):
    def failing(self, folder, shard, chunks):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(formats.Npy, "write", failing)
    source = FakeSource(1000, binary=binary, target=target, size=(150, 150))
    pattern = rf"the 1,000 items that are left need about {re.escape(megabytes)} MB"
    with pytest.raises(DiskFullError, match=pattern):
        write(source, tmp_path)


def test_the_space_needed_is_estimated_by_the_first_shard(
    tmp_path, FakeSource, format, monkeypatch
):
    source = FakeSource(60, binary=False, size=(200, 250))
    noise = source.batch
    source.batch = lambda indices: noise(indices) * (np.arange(250) < 125).astype(np.uint8)
    kind = formats.FORMATS[format]
    whole_write = kind.write

    def failing(self, folder, shard, chunks):
        if shard == 1:
            raise OSError(errno.ENOSPC, "full")
        whole_write(self, folder, shard, chunks)

    monkeypatch.setattr(kind, "write", failing)
    size = r"2\.0" if format == "npy" else r"1\.[01]"  # a PNG of which half is empty takes half
    with pytest.raises(DiskFullError, match=f"the 40 items that are left need about {size} MB"):
        write(source, tmp_path, format=format, shard_size=20)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_array_on_a_full_disk_tells_by_its_error_number():
    with pytest.raises(OSError, match="No space left") as caught:
        formats._save(Path("/dev/full"), np.zeros(100_000, np.uint8))
    assert caught.value.errno == errno.ENOSPC


def test_other_errors_of_the_disk_pass_through(tmp_path, FakeSource, monkeypatch):
    def failing(self, folder, shard, chunks):
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(formats.Npy, "write", failing)
    with pytest.raises(OSError, match="broken disk") as caught:
        write(FakeSource(), tmp_path)
    assert not isinstance(caught.value, DiskFullError)
