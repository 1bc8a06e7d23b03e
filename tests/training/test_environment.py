import subprocess

import pytest
import torch

from hgru_vision.training import environment


def test_the_process_has_used_some_memory():
    assert environment.peak_memory(torch.device("cpu")) > 50e6


def test_a_device_is_picked_or_refused(monkeypatch):
    for there, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert environment.pick_device().type == kind
    with pytest.raises(ValueError, match="device is cuda:1 and torch sees no GPU; give cpu"):
        environment.pick_device("cuda:1")
    with pytest.raises(ValueError, match="no device 'gpu'; give cpu, cuda or cuda:1"):
        environment.pick_device("gpu")


def test_the_device_has_a_name():
    assert "CPU" in environment.device_name(torch.device("cpu"))


def test_the_commit_is_that_of_the_checkout(monkeypatch, tmp_path):
    commit = environment.commit.__wrapped__  # which is not remembered
    found = commit()
    assert found is None or len(found) == 40
    package = tmp_path / "src" / "hgru_vision" / "__init__.py"
    monkeypatch.setattr("hgru_vision.__file__", str(package))
    assert commit() is None
    (tmp_path / ".git").mkdir()
    assert commit() is None  # no repository after all


@pytest.mark.parametrize("error", [FileNotFoundError, subprocess.CalledProcessError(1, "git")])
def test_no_git_is_no_error(monkeypatch, tmp_path, error):
    def fail(*_, **__):
        raise error

    (tmp_path / ".git").mkdir()
    package = tmp_path / "src" / "hgru_vision" / "__init__.py"
    monkeypatch.setattr("hgru_vision.__file__", str(package))
    monkeypatch.setattr(subprocess, "run", fail)
    assert environment.commit.__wrapped__() is None
