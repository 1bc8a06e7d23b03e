import errno
import fcntl
import os

import pytest

from hgru_vision.data import durable


def test_one_writer_at_a_time(tmp_path):
    with (
        durable.only_writer(tmp_path),
        pytest.raises(BlockingIOError, match=f"another process writes to {tmp_path}; wait"),
        durable.only_writer(tmp_path),
    ):
        pass
    with durable.only_writer(tmp_path):  # free again
        pass


@pytest.mark.parametrize(("number", "goes_on"), [(errno.ENOLCK, True), (errno.EIO, False)])
def test_a_file_system_without_locks_will_do(tmp_path, monkeypatch, number, goes_on):
    def flock(descriptor, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    if goes_on:
        with durable.only_writer(tmp_path):
            pass
    else:
        with pytest.raises(OSError, match=os.strerror(number)), durable.only_writer(tmp_path):
            pass


@pytest.mark.parametrize("files", [1, durable.MANY_FILES + 1])
def test_everything_is_flushed(tmp_path, monkeypatch, files):
    flushed, synced = set(), []
    monkeypatch.setattr(os, "fsync", lambda d: flushed.add(os.readlink(f"/proc/self/fd/{d}")))
    monkeypatch.setattr(os, "sync", lambda: synced.append(True))
    (tmp_path / "folder").mkdir()
    for number in range(files):
        (tmp_path / "folder" / str(number)).touch()
    durable.flush(tmp_path)
    everything = {str(path) for path in (tmp_path, *tmp_path.rglob("*"))}
    assert flushed == everything if files == 1 else synced == [True]


def test_the_partial_folder_goes_whatever_happens(tmp_path):
    with pytest.raises(KeyboardInterrupt), durable.partial_folder(tmp_path) as partial:
        (partial / "half").touch()
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
