import json
from dataclasses import replace
from pathlib import Path

import pytest

from hgru_vision.data.manifest import CorruptShardError, Manifest
from hgru_vision.data.store import write


def test_it_survives_the_disk(tmp_path, FakeSource):
    manifest = write(FakeSource(), tmp_path, shard_size=10)
    assert Manifest.read(tmp_path) == manifest
    fields = json.loads((tmp_path / "manifest.json").read_text())
    assert list(fields) == ["format", "format_version", "count", "shard_size", "source", "shards"]
    assert list(fields["shards"][0]) == ["number", "start", "stop", "files"]
    assert list(fields["shards"][0]["files"][0]) == ["name", "bytes", "sha256"]


def test_a_directory_without_one_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no manifest.json.* use ArchiveFolder"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("count"), "changed: not a manifest"),
        (lambda m: m.update(colour="red"), "changed: not a manifest .*colour"),
        (lambda m: m["source"].pop("height"), "changed: not a manifest .*height"),
        (lambda m: m["shards"][0]["files"][0].pop("bytes"), "changed: not a manifest .*bytes"),
        (lambda m: m.update(count="23"), "changed: not a manifest .*count is '23'"),
        (lambda m: m.update(shard_size=10.0), r"changed: not a manifest .*shard_size is 10\.0"),
        (lambda m: m["source"].update(width="7"), "changed: not a manifest .*width is '7'"),
        (lambda m: m.update(shards={"a": 1}), "changed: not a manifest"),
        (lambda m: m["shards"][1].update(stop=None), "changed: not a manifest .*stop is None"),
        (lambda m: m["shards"][0]["files"][0].update(bytes=1.5), "not a manifest .*bytes is 1.5"),
        (lambda m: m["shards"].pop(0), r"start, stop\) is \(1, 10, 20\), \(0, 0, 10\) was due"),
        (lambda m: m["shards"][2].update(stop=99), r"is \(2, 20, 99\), \(2, 20, 23\) was due"),
    ],
)
def test_a_changed_one_is_refused(tmp_path, FakeSource, change, message):
    write(FakeSource(), tmp_path, shard_size=10)
    path = tmp_path / "manifest.json"
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
    with pytest.raises(CorruptShardError, match=f"manifest.json: .*{message}"):
        Manifest.read(tmp_path)


def test_a_truncated_one_is_refused(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    path = tmp_path / "manifest.json"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CorruptShardError, match=r"manifest.json: changed: not a manifest"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize("version", [0, 9])
def test_another_version_is_refused(tmp_path, FakeSource, version):
    write(FakeSource(), tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"format_version": 1', f'"format_version": {version}'))
    with pytest.raises(
        ValueError, match=f"format_version is {version}, this version of hgru-vision reads 1"
    ):
        Manifest.read(tmp_path)


def test_it_is_complete_with_its_last_item(tmp_path, FakeSource):
    manifest = write(FakeSource(21), tmp_path, shard_size=10)
    assert (manifest.stored, manifest.complete) == (21, True)
    before = replace(manifest, shards=manifest.shards[:-1])
    assert (before.stored, before.complete) == (20, False)


def test_the_command_to_resume_with_can_be_pasted(tmp_path, FakeSource):
    manifest = write(FakeSource(), tmp_path)
    command = manifest.resume_command(Path("my data") / "set")
    assert command.endswith(
        "--seed 0 --split train --target label --format npy --shard-size 10000 --out 'my data/set'"
    )
