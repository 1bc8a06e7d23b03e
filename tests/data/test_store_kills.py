"""Kills at any moment; run as a script, this file kills and resumes `store.write` many times."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hgru_vision.data import store
from hgru_vision.data.readers import open_dataset


@pytest.mark.parametrize(
    ("format", "how"),
    [
        ("npy", "each step"),
        pytest.param("parquet", "each step", marks=pytest.mark.slow),
        pytest.param("png", "each step", marks=pytest.mark.slow),
        *((format, "random moments") for format in ("npy", "parquet", "png")),
    ],
)
def test_a_killed_and_resumed_directory_is_byte_identical(tmp_path, format, how):
    command = [sys.executable, "-W", "ignore", __file__, format, how, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    kills = int(run.stdout)
    assert kills >= (15 if how == "each step" else 3)


def _in_child(function: Callable[[], object], kill_after: float | None = None) -> int:
    """Run in a forked process; give its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _count_steps(until: int) -> None:
    """Let the process be killed at its nth call that changes or flushes the disk."""
    steps = iter(range(until))

    def counted(function):
        def call(*arguments, **options):
            if next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in ("replace", "fsync", "sync", "mkdir", "rmdir", "unlink"):
        setattr(os, name, counted(getattr(os, name)))


def _main(format: str, how: str, folder: Path) -> None:
    from conftest import FakeSource, tree

    # A kill, unlike a power failure, loses nothing that was written: flushing only costs time here.
    os.fsync = os.sync = lambda *_: None
    source = FakeSource(7, target="segmentation", size=(5, 5))

    def fill(out: Path, delay: float = 0.0, until: int | None = None) -> None:
        source.delay = delay
        if until is not None:
            _count_steps(until)
        store.write(source, out, format=format, shard_size=4)

    def check_and_resume(out: Path, **options: float) -> None:
        if (out / "manifest.json").exists():
            report = store.verify(out, source=source, regenerate=100)
            assert report.stored in (0, 4, 7)
            assert len(open_dataset(out, allow_partial=True)) == report.stored
        fill(out, **options)

    whole = folder / "whole"
    assert _in_child(lambda: fill(whole)) == 0
    kills = 0
    if how == "each step":
        while True:
            out = folder / f"step{kills}"
            if _in_child(lambda out=out, until=kills: fill(out, until=until)) == 0:
                break
            assert _in_child(lambda out=out: check_and_resume(out)) == 0, kills
            assert tree(out) == tree(whole), kills
            kills += 1
    else:
        random = np.random.default_rng(5)
        out = folder / "random"
        killed = -signal.SIGKILL
        # Later and later, so that it ends on a slow machine too.
        while killed == _in_child(
            lambda: check_and_resume(out, delay=0.05), random.uniform(0, 0.03 * (kills + 1))
        ):
            kills += 1
        assert _in_child(lambda: check_and_resume(out)) == 0
        assert tree(out) == tree(whole)
    print(kills)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
