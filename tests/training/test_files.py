import os

import pytest

from hgru_vision.training import files
from hgru_vision.training.files import (
    check_output,
    check_run,
    keep_network,
    located,
    read_network,
    replace_file,
)


def test_a_file_that_could_not_be_written_is_refused(tmp_path, monkeypatch):
    check_output(tmp_path / "new" / "folder" / "a.json")
    with pytest.raises(IsADirectoryError, match="is a folder; give a file"):
        check_output(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"file/a.json cannot be written: .*file is no fo"):
        check_output(tmp_path / "file" / "a.json")
    monkeypatch.setattr(os, "access", lambda path, mode: path == tmp_path)
    with pytest.raises(PermissionError, match="file cannot be written: no permission"):
        check_output(tmp_path / "file")


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path):
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "folder", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_another_file_than_the_runs_is_refused(tiny, nets):
    config = tiny(model="nets.py:leaky", options={})
    assert read_network(config) == nets.read_bytes()
    nets.write_text("other")
    with pytest.raises(ValueError) as refused:
        read_network(config)
    assert str(refused.value) == (
        "nets.py is not the file of the run: its sha256 is d9298a10d1b0..., model_sha256 says "
        f"{config.model_sha256[:12]}..."
    )


def test_a_file_is_kept_once_and_only_for_a_network_of_ones_own(tiny, nets, tmp_path):
    config = tiny(model="nets.py:leaky", options={})
    kept = keep_network(config, tmp_path / "a")
    assert kept.reference == f"{tmp_path}/a/nets.py:leaky" and kept.hash == config.hash
    nets.unlink()
    assert keep_network(config, tmp_path / "a") == kept  # it is there
    with pytest.raises(FileNotFoundError, match=r"no file nets\.py \(from the network nets\.py:le"):
        keep_network(config, tmp_path / "b")
    assert keep_network(tiny(), tmp_path / "b") == tiny() and not (tmp_path / "b").exists()


def test_two_sweeps_may_keep_a_file_at_once(tiny, nets, tmp_path, monkeypatch):
    config = tiny(model="nets.py:leaky", options={})
    flush, kept = files.flush, []

    def flush_after_the_other(path):
        if not kept:  # the other one begins and ends while this one writes
            kept.append(None)
            kept.append(keep_network(config, tmp_path / "a"))
        flush(path)

    monkeypatch.setattr(files, "flush", flush_after_the_other)
    assert keep_network(config, tmp_path / "a") == kept[1]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["nets.py"]
    assert (tmp_path / "a" / "nets.py").read_bytes() == nets.read_bytes()


def test_a_copy_that_was_changed_is_none(tiny, nets, tmp_path):
    config = tiny(model="nets.py:leaky", options={})
    keep_network(config, tmp_path / "a")
    (tmp_path / "a" / "nets.py").write_text("other")
    assert located(config, tmp_path / "a") == config


def test_what_a_start_that_failed_left_for_tensorboard_is_no_others_file(tiny, tmp_path):
    (tmp_path / "events.out.tfevents.1.host").touch()
    assert check_run(tmp_path, tiny(), resume=False) is None
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileExistsError, match=r"holds 'notes\.txt' and no run"):
        check_run(tmp_path, tiny(), resume=False)
