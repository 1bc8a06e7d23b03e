import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch

from hgru_vision.sweeps import local
from hgru_vision.sweeps.launch import Job, sweep
from hgru_vision.sweeps.ledger import read_ledger
from hgru_vision.sweeps.local import local_launcher
from hgru_vision.training.files import CHECKPOINT, CURVE

ENDLESS = {"images": 1_000_000, "checkpoint_every": 1_000_000}  # but when they are stopped


def wait_for(*paths, seconds=60):
    end = time.monotonic() + seconds
    while not all(path.exists() for path in paths):
        assert time.monotonic() < end, f"no {paths} after {seconds} s"
        time.sleep(0.02)


def run(configs, tmp_path, workers=2, **keywords):
    return sweep(
        configs,
        local_launcher(workers),
        out=tmp_path / "runs",
        ledger=tmp_path / "a.jsonl",
        **keywords,
    )


def states(outcomes):
    return [outcome.state for outcome in outcomes]


def test_no_workers_are_refused():
    with pytest.raises(ValueError, match="workers must be 1 or more; got 0"):
        local_launcher(0)


def test_processes_fail_and_die_alone(tmp_path, small_config, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    forever, short = small_config(0, images=1_000_000), small_config(1)
    refused = small_config(2, options={"steps": 3})
    begun = Job.under(tmp_path / "runs", forever).folder / CHECKPOINT

    def kill_the_other(outcome):
        if outcome.job.config == short:
            wait_for(begun)
            (process,) = active_children()
            process.kill()

    outcomes = run([forever, refused, short], tmp_path, report=kill_the_other)
    assert states(outcomes) == ["failed", "failed", "done"]
    assert outcomes[0].error == "its process was killed by SIGKILL (out of memory?)"
    assert "gru has no keyword 'steps'" in outcomes[1].error
    assert [row.config for row in read_ledger(tmp_path / "a.jsonl")] == [short]
    assert active_children() == []
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.slow
def test_the_budget_stops_processes_with_checkpoints(tmp_path, small_config):
    configs = [small_config(seed, **ENDLESS) for seed in range(3)]
    outcomes = run(configs, tmp_path, budget=20)
    assert states(outcomes) == ["unfinished", "unfinished", "missing"]
    assert all((outcome.job.folder / CHECKPOINT).exists() for outcome in outcomes[:2])


@pytest.mark.slow
def test_closing_a_launcher_stops_its_processes(tmp_path, small_config):
    endless = Job.under(tmp_path, small_config(0, **ENDLESS))
    launch = local_launcher(2)([endless, Job.under(tmp_path, small_config(1))], None)
    assert next(launch).state == "done"
    wait_for(endless.folder / CURVE)
    launch.close()
    assert active_children() == []
    assert (endless.folder / CHECKPOINT).exists()


SCRIPT = """
import sys
from pathlib import Path
from hgru_vision.sweeps.launch import sweep
from hgru_vision.sweeps.local import local_launcher
from hgru_vision.training.config import RunConfig
if __name__ == "__main__":
    import json
    configs = [RunConfig.from_json(each) for each in json.loads(Path("configs.json").read_text())]
    sweep(configs, local_launcher(2), out="runs", ledger="a.jsonl")
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_do_not_outlive_their_sweep(tmp_path, small_config, number):
    configs = [small_config(seed, **ENDLESS) for seed in range(2)]
    (tmp_path / "configs.json").write_text(json.dumps([config.to_json() for config in configs]))
    (tmp_path / "script.py").write_text(SCRIPT)
    parent = subprocess.Popen(
        [sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    jobs = [Job.under(tmp_path / "runs", config) for config in configs]
    try:
        wait_for(*(job.folder / CURVE for job in jobs))
        children = _children(parent.pid)
        assert len(children) >= 2
        parent.send_signal(number)
        _, told = parent.communicate(timeout=60)
    finally:
        parent.kill()
        parent.wait()
    end = time.monotonic() + 30
    while any(_alive(child) for child in children):
        assert time.monotonic() < end, "children live on"
        time.sleep(0.05)
    assert all((job.folder / CHECKPOINT).exists() for job in jobs)
    assert ("KeyboardInterrupt" in told) == (number == signal.SIGTERM)


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_cores_are_shared_unless_the_user_has_said_how(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert local._environments(3) == [{"OMP_NUM_THREADS": "2"}] * 3
    assert local._environments(16)[15] == {"OMP_NUM_THREADS": "1"}


def test_gpus_are_taken_in_turn(monkeypatch):
    def taken(workers):
        return [each["CUDA_VISIBLE_DEVICES"] for each in local._environments(workers)]

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert taken(3) == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-7")
    assert taken(2) == ["5", "GPU-7"]


def test_how_a_process_ended_is_put_in_words():
    assert local._death(-signal.SIGSEGV) == "its process was killed by SIGSEGV"
    assert local._death(3) == "its process ended with status 3 and no result"


def test_processes_of_their_own_make_a_users_network(tmp_path, small_config, nets):
    configs = [small_config(seed, model="nets.py:pixels", options={}) for seed in (0, 1)]
    wrong = small_config(2, model="nets.py:leaky", options={})
    *done, failed = run([*configs, wrong], tmp_path)
    assert states(done) == ["done", "done"]
    text = "ValueError: for two images, (2, 1, 32, 32), nets.py:leaky must give two logits a pixel"
    assert failed.error.startswith(text)
