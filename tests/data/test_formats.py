import contextlib
import json
import os
import resource
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest

from hgru_vision.data import formats
from hgru_vision.data.archive import decode_png
from hgru_vision.data.manifest import CorruptShardError, Manifest
from hgru_vision.data.readers import open_dataset
from hgru_vision.data.store import write


def test_npy_is_what_numpy_saves(tmp_path):
    array = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    formats._save(tmp_path / "ours.npy", array)
    np.save(tmp_path / "theirs.npy", array)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x93NUMPY, but no header", r"images-00000.npy: foreign: not a .npy file \("),
        (b"\x93NUMPY\x01\x00\x0c\x00{'descr':'(u'}", r"foreign: not a .npy file \("),
        (
            np.zeros((23, 9), np.uint8),
            r"uint8 array of shape \(23, 9\), where uint8 of shape \(23, 8",
        ),
        (np.zeros((23, 8)), r"float64 array of shape \(23, 8\), where uint8"),
    ],
)
def test_foreign_arrays_are_refused(tmp_path, FakeSource, content, message):
    manifest = write(FakeSource(), tmp_path)
    path = tmp_path / "images-00000.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    layout = formats.make_format("npy", manifest.source)
    with pytest.raises(CorruptShardError, match=message):
        layout.open(tmp_path, manifest.shards[0])


def test_parquet_has_the_columns_of_the_hub(tmp_path, FakeSource):
    parquet = pytest.importorskip("pyarrow.parquet")
    source = FakeSource(target="segmentation")
    write(source, tmp_path, format="parquet", shard_size=10)
    table = parquet.read_table(tmp_path / "shard-00001.parquet")
    assert table.column("index").to_pylist() == list(range(10, 20))
    assert table.column("label").to_pylist() == source.labels(np.arange(10, 20)).tolist()
    for column in ("image", "segmentation"):
        cell = table.column(column)[0].as_py()
        assert list(cell) == ["bytes", "path"]
        assert cell["bytes"].startswith(b"\x89PNG")
        assert cell["path"] is None
        assert np.unique(decode_png(cell["bytes"], column)).tolist() == [0, 255]
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == features["segmentation"] == {"_type": "Image"}
    assert features["label"] == {"_type": "Value", "dtype": "int64"}


def test_parquet_row_groups_have_128_rows(tmp_path, FakeSource):
    parquet = pytest.importorskip("pyarrow.parquet")
    write(FakeSource(1_100, size=(2, 2)), tmp_path, format="parquet")
    file = parquet.ParquetFile(tmp_path / "shard-00000.parquet")
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert groups == [128] * 8 + [76]


def test_parquet_rows_are_read_across_row_groups(tmp_path, FakeSource, monkeypatch):
    monkeypatch.setattr(formats, "ROW_GROUP", 4)
    source = FakeSource()
    write(source, tmp_path, format="parquet")
    indices = np.array([22, 0, 4, 3, 22, 17])
    np.testing.assert_array_equal(open_dataset(tmp_path).batch(indices), source.batch(indices))


def test_parquet_is_read_by_one_thread_at_a_time(tmp_path, FakeSource):
    """pyarrow's readers do not stand two, and a run reads from two while it is evaluated."""
    source = FakeSource()
    write(source, tmp_path, format="parquet")
    stored = open_dataset(tmp_path)
    stored.batch([0])
    (reader,) = stored._open.values()
    reader._file = _OneAtATime(reader._file)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(stored.batch, [[number] for number in range(20)]))
    np.testing.assert_array_equal(np.concatenate(found), source.batch(np.arange(20)))


class _OneAtATime:
    """A file that notices if two threads read from it."""

    def __init__(self, file):
        self.file, self.lock = file, Lock()

    def read_row_group(self, *arguments, **keywords):
        assert self.lock.acquire(blocking=False), "two threads read at a time"
        time.sleep(0.01)
        try:
            return self.file.read_row_group(*arguments, **keywords)
        finally:
            self.lock.release()


def test_parquet_without_pyarrow_names_the_extra(tmp_path, FakeSource, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'hgru-vision\[data\]'"):
        write(FakeSource(), tmp_path / "out", format="parquet")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", ["parquet", "png"])
def test_foreign_files_are_refused(tmp_path, FakeSource, format):
    """A shard of another dataset under the right name, past the check of lengths."""
    write(FakeSource(), tmp_path / "ours", format=format)
    write(FakeSource(22), tmp_path / "theirs", format=format)
    name = {"parquet": "shard-00000.parquet", "png": "metadata/0.npy"}[format]
    shutil.copy(tmp_path / "theirs" / name, tmp_path / "ours" / name)
    manifest = Manifest.read(tmp_path / "ours")
    layout = formats.make_format(format, manifest.source)
    with pytest.raises(CorruptShardError, match=rf"{name}: foreign: 22 rows.* where 23"):
        layout.open(tmp_path / "ours", manifest.shards[0])
    (tmp_path / "ours" / name).write_bytes(b"\xffnothing of the kind")
    with pytest.raises(CorruptShardError, match=f"{name}: foreign: not (a Parquet file|metadata)"):
        layout.open(tmp_path / "ours", manifest.shards[0])


def test_a_parquet_file_of_other_columns_is_refused(tmp_path, FakeSource):
    manifest = write(FakeSource(), tmp_path, format="parquet")
    layout = formats.make_format("parquet", manifest.source | {"target": "segmentation"})
    with pytest.raises(CorruptShardError, match=r"where 23 rows of \[.*'segmentation'\] were writ"):
        layout.open(tmp_path, manifest.shards[0])


@pytest.mark.parametrize("format", ["npy", "parquet", "png"])
def test_what_the_system_says_of_a_file_is_no_damage_to_it(tmp_path, FakeSource, format):
    """A file that cannot be opened now is none to delete and generate again."""
    manifest = write(FakeSource(), tmp_path, format=format)
    layout = formats.make_format(format, manifest.source)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as files:
        files.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        lowest_free = files.enter_context(open(os.devnull)).fileno()
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + 1, limits[1]))
        with pytest.raises(OSError, match="Too many open files"):
            layout.open(tmp_path, manifest.shards[0])
    assert len(layout.open(tmp_path, manifest.shards[0]).labels) == 23


@pytest.mark.parametrize("format", ["parquet", "png"])
def test_foreign_images_are_refused(tmp_path, FakeSource, format):
    manifest = write(FakeSource(), tmp_path, format=format)
    layout = formats.make_format(format, manifest.source | {"height": 7, "width": 9})
    reader = layout.open(tmp_path, manifest.shards[0])
    with pytest.raises(CorruptShardError, match=r"foreign: an image of \(9, 7\), where one of \(7"):
        reader.images(np.array([3]))


def test_archives_of_png_know_two_labels(tmp_path, FakeSource, monkeypatch):
    monkeypatch.setattr(FakeSource, "labels", lambda self, indices: np.full(len(indices), 2))
    with pytest.raises(ValueError, match=r"returned 2; the authors' archives know 0 and 1: write"):
        write(FakeSource(), tmp_path, format="png")


def test_a_png_damaged_after_opening_is_named(tmp_path, FakeSource):
    write(FakeSource(), tmp_path, format="png")
    dataset = open_dataset(tmp_path)
    (tmp_path / "imgs/0/sample_3.png").write_bytes(b"not an image")
    with pytest.raises(
        CorruptShardError, match=r"sample_3.png: 12 bytes that are not a whole image"
    ):
        dataset[3]


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="format='tar'; known are npy, parquet, png"):
        formats.make_format("tar", {})
