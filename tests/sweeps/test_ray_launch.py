import builtins
import os
import signal
import sys
import threading
import time

import pytest

from hgru_vision.sweeps import ray_launch
from hgru_vision.sweeps.grid import load_grid
from hgru_vision.sweeps.launch import Job, Outcome, sweep
from hgru_vision.sweeps.ledger import read_ledger
from hgru_vision.sweeps.ray_launch import ray_launcher
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.files import CHECKPOINT, CURVE, RESULT


@pytest.fixture
def ray():
    module = pytest.importorskip("ray", reason="needs the extra `ray`")
    yield module
    module.shutdown()


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"cpus_per_run": -1}, "cpus_per_run must be 0 or more; got -1"),
        ({"gpus_per_run": -0.5}, r"gpus_per_run must be 0 or more; got -0\.5"),
        (
            {"gpus_per_run": 2},
            "gpus_per_run must be at most 1; got 2: a run of a sweep has one GPU",
        ),
        ({"retries": -1}, "retries must be 0 or more; got -1"),
    ],
)
def test_bad_shares_are_refused(keywords, text):
    with pytest.raises(ValueError, match=text):
        ray_launcher(**keywords)


def test_without_ray_the_error_tells_how_to_get_it(monkeypatch):
    original = builtins.__import__

    def refuse(name, *rest):
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return original(name, *rest)

    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'hgru-vision\[ray\]'"):
        ray_launcher()


def test_a_task_that_is_stopped_for_no_reason_of_ours_asks_to_be_tried_again(
    tmp_path, small_config, monkeypatch
):
    job = Job.under(tmp_path, small_config(0))
    stopped = Outcome(job=job, state="unfinished")
    monkeypatch.setattr(ray_launch, "run_job", lambda job, deadline: stopped)
    assert ray_launch._task(job, time.time() + 1, tmp_path) == stopped  # its time is up
    for deadline in (None, time.time() + 1000):
        with pytest.raises(ray_launch.StoppedEarlyError, match=r"gru-small-.* told to stop on its"):
            ray_launch._task(job, deadline, tmp_path)


def test_a_task_waits_for_the_lock_of_a_lost_node(tmp_path, small_config, monkeypatch):
    job = Job.under(tmp_path, small_config(0))
    states = iter(["busy", "busy", "failed"])
    monkeypatch.setattr(ray_launch, "run_job", lambda j, _: Outcome(job=j, state=next(states)))
    monkeypatch.setattr(ray_launch, "BUSY_SECONDS", 0.01)
    assert ray_launch._task(job, None, tmp_path).state == "failed"
    states = iter(["busy"] * 1000)
    monkeypatch.setattr(ray_launch, "LOST_NODE_SECONDS", 0.03)
    assert ray_launch._task(job, None, tmp_path).state == "busy"


def test_a_task_finds_files_where_the_sweep_was_started(tmp_path, small_config, monkeypatch):
    stages = (Stage(sources=(Source(path="data"),), images=64),)
    places = []

    def run_job(job, deadline):
        places.append(ray_launch.Path.cwd())
        return Outcome(job=job, state="busy")

    monkeypatch.setattr(ray_launch, "run_job", run_job)
    monkeypatch.setattr(ray_launch, "LOST_NODE_SECONDS", 0)
    shipped = small_config(0, start="hgru.pathfinder6")  # which every node has
    for config in (small_config(0, stages=stages), small_config(0), shipped):
        ray_launch._task(Job.under(tmp_path, config), None, tmp_path)
    assert places == [tmp_path, ray_launch.Path.cwd(), ray_launch.Path.cwd()]


def test_what_ray_says_is_cut_to_its_last_line():
    assert ray_launch._reason(RuntimeError("a\n  b\n\n")) == "RuntimeError: b"
    assert ray_launch._reason(RuntimeError()) == "RuntimeError: no reason given"


def test_runs_on_one_node(ray, tmp_path, small_config):
    refused = small_config(7, options={"steps": 3})
    configs = [small_config(0), refused, small_config(1)]
    launcher = ray_launcher(cpus_per_run=0.5)
    outcomes = sweep(configs, launcher, out=tmp_path / "runs", ledger=tmp_path / "a.jsonl")
    assert [outcome.state for outcome in outcomes] == ["done", "failed", "done"]
    assert "gru has no keyword 'steps'" in outcomes[1].error
    assert sorted(row.config.seed for row in read_ledger(tmp_path / "a.jsonl")) == [0, 1]
    assert not ray.is_initialized()


@pytest.fixture
def two_nodes(ray):
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    other = cluster.add_node(num_cpus=1)
    yield cluster, other
    ray.shutdown()
    cluster.shutdown()


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"nothing after {seconds} s"
        time.sleep(0.02)


@pytest.mark.slow
def test_twelve_runs_survive_the_loss_of_a_node(two_nodes, tmp_path):
    cluster, other = two_nodes
    configs = load_grid("tiny")
    out, ledger = tmp_path / "runs", tmp_path / "a.jsonl"

    def both_are_in_the_middle():
        begun = [path.parent for path in out.glob(f"*/{CHECKPOINT}")]
        return sum(not (folder / RESULT).exists() for folder in begun) == 2

    def lose_a_node():
        wait_for(both_are_in_the_middle)
        cluster.remove_node(other, allow_graceful=False)

    thread = threading.Thread(target=lose_a_node)
    thread.start()
    outcomes = sweep(configs, ray_launcher(address=cluster.address), out=out, ledger=ledger)
    thread.join()
    assert [outcome.state for outcome in outcomes] == ["done"] * 12
    lines = ledger.read_text().splitlines()
    assert len(lines) == 12
    assert {row.hash for row in read_ledger(ledger)} == {config.hash for config in configs}


@pytest.mark.slow
def test_the_budget_and_an_interrupt_stop_runs_with_checkpoints(two_nodes, tmp_path, small_config):
    cluster, _ = two_nodes
    endless = {"images": 1_000_000, "checkpoint_every": 1_000_000}  # but when they are stopped
    configs = [small_config(seed, **endless) for seed in range(3)]
    keywords = {"out": tmp_path / "runs", "ledger": tmp_path / "a.jsonl"}
    outcomes = sweep(configs, ray_launcher(address=cluster.address), budget=20, **keywords)
    assert [outcome.state for outcome in outcomes] == ["unfinished", "unfinished", "missing"]
    curve, checkpoint = (outcomes[0].job.folder / name for name in (CURVE, CHECKPOINT))
    points, saved = len(curve.read_bytes()), checkpoint.stat().st_mtime_ns

    def interrupt_once_it_goes_on():
        wait_for(lambda: len(curve.read_bytes()) > points)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt_once_it_goes_on)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sweep(configs, ray_launcher(address=cluster.address), **keywords)
    thread.join()
    assert checkpoint.stat().st_mtime_ns > saved
    points = curve.read_bytes()
    time.sleep(1)
    assert curve.read_bytes() == points  # nothing trains any more


@pytest.mark.slow
def test_runs_that_no_node_can_take_end_with_the_budget(
    two_nodes, tmp_path, small_config, monkeypatch
):
    monkeypatch.setattr(ray_launch, "GRACE", 1.0)
    cluster, _ = two_nodes
    launcher = ray_launcher(address=cluster.address, cpus_per_run=64)
    (outcome,) = sweep(
        [small_config(0)], launcher, budget=2, out=tmp_path, ledger=tmp_path / "a.jsonl"
    )
    assert outcome.state == "missing"
