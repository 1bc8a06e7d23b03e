"""Verifying what was written."""

import re
from pathlib import Path

import numpy as np
import pytest

from hgru_vision.data.manifest import CorruptShardError
from hgru_vision.data.store import verify, write

FORMATS = ("npy", "parquet", "png")


@pytest.fixture(params=FORMATS)
def format(request):
    return request.param


def test_a_good_directory_passes(tmp_path, FakeSource, format, tree):
    source = FakeSource(target="segmentation")
    write(source, tmp_path, format=format, shard_size=10)
    report = verify(tmp_path, source=source, regenerate=1000)
    assert (report.stored, report.count, report.regenerated) == (23, 23, 23)
    sizes = {name: len(data) for name, data in tree(tmp_path).items() if Path(name).suffix}
    del sizes["manifest.json"]
    assert (report.files, report.bytes) == (len(sizes), sum(sizes.values()))
    assert "23 of 23 items\n23 items drawn again, equal" in str(report)


def test_an_incomplete_directory_is_reported_as_such(tmp_path, FakeSource, stop_after):
    with pytest.raises(InterruptedError):
        write(FakeSource(), tmp_path, shard_size=10, progress=stop_after(20))
    assert str(verify(tmp_path)).endswith("10 of 23 items (incomplete)")
    assert verify(tmp_path, source=FakeSource(), regenerate=4).regenerated == 4


def _data_files(directory: Path) -> list[Path]:
    return sorted(p for p in directory.rglob("*") if p.is_file() and p.name != "manifest.json")


def test_every_damage_to_every_file_is_named(tmp_path, FakeSource, format):
    write(FakeSource(12, target="segmentation"), tmp_path, format=format, shard_size=8)
    for path in _data_files(tmp_path):
        good = path.read_bytes()
        flipped = bytearray(good)
        flipped[len(good) // 2] ^= 1
        for damaged, what in (
            (None, "missing"),
            (good[:-1], rf"truncated: {len(good) - 1} of {len(good)} bytes"),
            (good + b"x", rf"changed: {len(good) + 1} bytes, {len(good)} were written"),
            (bytes(flipped), "changed: its sha256 is not"),
        ):
            if damaged is None:
                path.unlink()
            else:
                path.write_bytes(damaged)
            with pytest.raises(CorruptShardError, match=f"{re.escape(str(path))}: {what}"):
                verify(tmp_path)
        path.write_bytes(good)
    verify(tmp_path)


def test_a_foreign_data_file_is_named_and_a_readme_is_not(tmp_path, FakeSource, format):
    write(FakeSource(), tmp_path, format=format)
    (tmp_path / "README.md").write_text("A dataset card.")
    verify(tmp_path)
    for name in ("images-00009.npy", "shard-00009.parquet", "imgs/sample_0.png", "0.tsv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
        with pytest.raises(CorruptShardError, match=f"{name}: foreign: manifest.json does not"):
            verify(tmp_path)
        path.unlink()


def test_the_items_to_draw_again_are_chosen_by_the_seed(tmp_path, FakeSource):
    write(FakeSource(), tmp_path, shard_size=10)

    def chosen(**options):
        source, drawn = FakeSource(), []
        batch = source.batch
        source.batch = lambda indices: drawn.extend(indices.tolist()) or batch(indices)
        verify(tmp_path, source=source, **options)
        return drawn

    first = chosen(regenerate=8)
    assert first == sorted(set(first)) == chosen(regenerate=8, seed=0)
    assert len(first) == 8 and first[-1] > 10
    assert chosen(regenerate=8, seed=1) != first
    assert chosen() == []


@pytest.mark.parametrize("kind", ["batch", "labels", "segmentations"])
def test_items_that_the_source_does_not_draw_are_named(
    tmp_path, FakeSource, format, kind, monkeypatch
):
    monkeypatch.setattr("hgru_vision.data.store.CHUNK", 5)
    source = FakeSource(target="segmentation")
    write(source, tmp_path, format=format, shard_size=10)
    right = getattr(source, kind)

    def wrong(indices):
        values = right(indices)
        values[np.asarray(indices) == 17] ^= 1
        return values

    setattr(source, kind, wrong)
    name = {"npy": "images-00001.npy", "parquet": "shard-00001.parquet", "png": "imgs/1"}[format]
    message = f"{name}: changed: {kind} of item 17 is not what the source draws"
    with pytest.raises(CorruptShardError, match=message):
        verify(tmp_path, source=source, regenerate=23)


def test_the_source_to_compare_with_must_be_the_right_one(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    with pytest.raises(ValueError, match="regenerate=5 needs the source that was written"):
        verify(tmp_path, regenerate=5)
    with pytest.raises(ValueError, match="regenerate=-5; it must be 0 or more"):
        verify(tmp_path, source=FakeSource(), regenerate=-5)
    with pytest.raises(ValueError, match=r"source\.seed = 0, the source has 1"):
        verify(tmp_path, source=FakeSource(seed=1), regenerate=5)
