import os

import pytest

from hgru_vision.training.files import check_output, replace_file


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
