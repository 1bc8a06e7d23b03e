import shutil
import subprocess

import pytest
import torch

from hgru_vision.training import environment


def test_the_process_has_used_some_memory():
    assert environment.peak_memory(torch.device("cpu")) > 50e6


def test_a_device_is_picked_or_refused(monkeypatch):
    for there, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        monkeypatch.setattr(torch.cuda, "device_count", lambda there=there: int(there))
        assert environment.pick_device().type == kind
    with pytest.raises(ValueError, match="device is cuda:1 and torch sees no GPU; give cpu"):
        environment.pick_device("cuda:1")
    with pytest.raises(ValueError, match="no device 'gpu'; give cpu, cuda or cuda:1"):
        environment.pick_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert environment.pick_device("cuda:1").index == 1
    with pytest.raises(ValueError, match="device is cuda:2 and torch sees 2 of them; give cuda:0"):
        environment.pick_device("cuda:2")


def test_the_device_has_a_name():
    assert "CPU" in environment.device_name(torch.device("cpu"))


def test_the_commit_is_that_of_the_checkout(monkeypatch, tmp_path):
    commit = environment.commit.__wrapped__  # which is not remembered
    found = commit()
    assert found is None or len(found.removesuffix("-dirty")) == 40
    package = tmp_path / "src" / "hgru_vision" / "__init__.py"
    monkeypatch.setattr("hgru_vision.__file__", str(package))
    assert commit() is None
    (tmp_path / ".git").mkdir()
    assert commit() is None  # no repository after all


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_files_of_the_package_that_are_not_of_the_commit_are_told(monkeypatch, tmp_path):
    def git(*words):
        name = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *name, *words], check=True, capture_output=True)

    package = tmp_path / "src" / "hgru_vision"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("x = 1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    monkeypatch.setattr("hgru_vision.__file__", str(package / "__init__.py"))
    commit = environment.commit.__wrapped__
    clean = commit()
    assert len(clean) == 40
    (tmp_path / "results.jsonl").write_text("a row\n")  # no part of the package
    assert commit() == clean
    (package / "more.py").write_text("")
    assert commit() == f"{clean}-dirty"
    (package / "more.py").unlink()
    (package / "__init__.py").write_text("x = 2\n")
    assert commit() == f"{clean}-dirty"


@pytest.mark.parametrize("error", [FileNotFoundError, subprocess.CalledProcessError(1, "git")])
def test_no_git_is_no_error(monkeypatch, tmp_path, error):
    def fail(*_, **__):
        raise error

    (tmp_path / ".git").mkdir()
    package = tmp_path / "src" / "hgru_vision" / "__init__.py"
    monkeypatch.setattr("hgru_vision.__file__", str(package))
    monkeypatch.setattr(subprocess, "run", fail)
    assert environment.commit.__wrapped__() is None
