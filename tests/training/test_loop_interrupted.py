"""The loop when it is stopped, signalled or killed: interruptions must not change a run."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.checkpoint import load_checkpoint
from hgru_vision.training.config import Stage
from hgru_vision.training.session import Session


@pytest.fixture(autouse=True)
def _interruptible():
    """Let Ctrl-C interrupt; a suite that runs in the background was started to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_stopped_after_every_batch_it_ends_the_same(whole, tiny, tmp_path, quiet, assert_same):
    sessions = 0
    while quiet(tiny(), tmp_path, resume=True, budget=0) is None:
        sessions += 1
        assert load_checkpoint(tmp_path)["position"]["batches"] == min(sessions, 12)
        if sessions == 12:
            break
    quiet(tiny(), tmp_path, resume=True)
    assert_same(whole[0], tmp_path)


def test_the_learning_rate_of_a_resumed_run_goes_on_rising_and_falls(
    tiny, tmp_path, quiet, assert_same
):
    config = tiny(warm_up=9, cool_down=4)
    quiet(config, tmp_path / "whole")
    for _ in range(12):
        quiet(config, tmp_path / "parts", resume=True, budget=0)
    quiet(config, tmp_path / "parts", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "parts")


def signal_after(monkeypatch, batches, *numbers):
    """Send this process signals when a run has had so many batches."""
    keep = Session.keep

    def keep_and_signal(session, loss):
        keep(session, loss)
        if session.position.batches == batches:
            for number in numbers:
                os.kill(os.getpid(), number)

    monkeypatch.setattr(Session, "keep", keep_and_signal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_a_checkpoint(
    whole, tiny, tmp_path, monkeypatch, number, quiet, assert_same
):
    handler = signal.getsignal(number)
    with monkeypatch.context() as patch:
        signal_after(patch, 7, number)
        assert quiet(tiny(), tmp_path) is None
    assert signal.getsignal(number) is handler
    assert load_checkpoint(tmp_path)["position"]["batches"] == 7
    quiet(tiny(), tmp_path, resume=True)
    assert_same(whole[0], tmp_path)


def test_a_second_interrupt_does_not_wait(tiny, tmp_path, monkeypatch, quiet):
    signal_after(monkeypatch, 7, signal.SIGINT, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        quiet(tiny(), tmp_path)
    assert load_checkpoint(tmp_path)["position"]["batches"] == 4


def test_a_signal_that_is_ignored_stays_so(tiny, tmp_path, monkeypatch, quiet):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        signal_after(monkeypatch, 7, signal.SIGINT)
        assert quiet(tiny(), tmp_path).outcome == "finished"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_it_runs_outside_the_main_thread(tiny, tmp_path, quiet):
    found = []
    thread = threading.Thread(target=lambda: found.append(quiet(tiny(), tmp_path, budget=0)))
    thread.start()
    thread.join()
    assert found == [None]


CHILD = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
import hgru_vision.training.outcome as outcome
outcome._shortcut = lambda _: None
from hgru_vision.training.config import RunConfig
from hgru_vision.training.loop import train
import json
config = RunConfig.from_json(json.loads(Path(sys.argv[1]).read_text()))
print("ready", flush=True)
train(config, Path(sys.argv[2]), resume=True, progress=False, device="cpu")
"""


def killed_run(config, folder: Path, moments) -> int:
    """Train in processes that are killed after so many seconds; give how many kills there were."""
    plan = folder.with_suffix(".json")
    plan.write_text(json.dumps(config.to_json()))
    command = [sys.executable, "-c", CHILD, str(plan), str(folder)]
    kills = 0
    for moment in (*moments, None):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            try:
                status = child.wait(timeout=moment)
            except subprocess.TimeoutExpired:
                child.kill()
                kills += 1
            else:
                assert status == 0
    return kills


@pytest.mark.slow
def test_killed_at_ten_random_moments_it_ends_the_same(tiny, tmp_path, assert_same):
    config = tiny(
        stages=(Stage(sources=(SMALL,), images=8 * 400),), checkpoint_every=3, evaluate_every=20
    )
    assert killed_run(config, tmp_path / "whole", []) == 0
    draw = random.Random(0)
    kills = killed_run(config, tmp_path / "killed", [draw.uniform(0.1, 2.0) for _ in range(10)])
    assert kills == 10
    assert_same(tmp_path / "whole", tmp_path / "killed")


class Killed(BaseException):
    """What nothing catches, like a kill."""


@pytest.mark.parametrize("moment", range(4))
def test_killed_while_a_file_is_replaced_it_ends_the_same(
    whole, tiny, tmp_path, monkeypatch, moment, quiet, assert_same
):
    """The second checkpoint takes three renames, and `moment` says before which the kill comes."""
    replace_file, calls = os.replace, []

    def die(source, target):
        if "checkpoint" in str(target):
            calls.append(target)
        if len(calls) == 3 + moment:
            raise Killed
        replace_file(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(Killed):
            quiet(tiny(), tmp_path)
    quiet(tiny(), tmp_path, resume=True)
    assert_same(whole[0], tmp_path)
