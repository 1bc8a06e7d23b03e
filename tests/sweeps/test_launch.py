import json
import os
import signal
import threading
import time

import pytest

from hgru_vision.data.durable import only_writer
from hgru_vision.sweeps import jsonl, launch
from hgru_vision.sweeps.launch import Job, Outcome, run_job, sweep
from hgru_vision.sweeps.ledger import LedgerRow, append, read_ledger
from hgru_vision.sweeps.local import local_launcher
from hgru_vision.training import loop
from hgru_vision.training.files import CHECKPOINT, CURVE, PREVIOUS, RESULT, write_json


@pytest.fixture
def trained(monkeypatch, result):
    """Put a function in the place of `train` that does what the run's seed asks for."""
    seen = []

    def train(config, folder, *, resume, budget, progress, ledger, interrupted):
        assert resume
        earlier.append([row.config.seed for row in ledger])
        seen.append((config.seed, budget))
        folder.mkdir(parents=True, exist_ok=True)
        if config.seed == 90:
            raise RuntimeError("out of luck")
        if config.seed == 91:
            write_json(folder / RESULT, result(outcome="diverged", accuracy=None).to_json())
            raise loop.DivergedError("the loss is nan")
        if config.seed == 92:
            (folder / CHECKPOINT).touch()
            return None
        if config.seed == 94:
            return result(outcome="stuck", accuracy=0.5, stuck=True)
        if config.seed == 93:
            raise BlockingIOError("another process writes to it")
        return result()

    monkeypatch.setattr(loop, "train", train)
    return seen


earlier = []  # seeds of the rows that each run was told of


def run(configs, tmp_path, **keywords):
    launcher = local_launcher(progress=False, ledger=tmp_path / "a.jsonl")
    return sweep(configs, launcher, out=tmp_path / "runs", ledger=tmp_path / "a.jsonl", **keywords)


def states(outcomes):
    return {outcome.job.config.seed: outcome.state for outcome in outcomes}


def test_a_folder_is_named_for_people_and_told_apart_by_its_hash(tmp_path, small_config):
    config = small_config(3, recipe="mine.py:fast", options={"timesteps": 2})
    job = Job.under(tmp_path, config)
    assert job.folder == tmp_path / f"gru-mine.py-fast-paper-3-seed3-{config.hash[:8]}"
    assert job.name == job.folder.name
    other = small_config(3, recipe="mine.py:fast", options={"timesteps": 3})
    assert Job.under(tmp_path, other).folder != job.folder


def test_runs_go_in_order_and_each_gets_a_row(tmp_path, small_config, trained):
    told = []
    outcomes = run([small_config(seed) for seed in (4, 2, 4, 3)], tmp_path, report=told.append)
    assert [seed for seed, _ in trained] == [4, 2, 3]
    assert told == outcomes
    assert states(outcomes) == {4: "done", 2: "done", 3: "done"}
    assert [row.config.seed for row in read_ledger(tmp_path / "a.jsonl")] == [4, 2, 3]


def test_what_the_ledger_has_is_not_run_again(tmp_path, small_config, trained, result):
    run([small_config(1)], tmp_path)
    outcomes = run([small_config(seed) for seed in (0, 1, 2)], tmp_path)
    assert [seed for seed, _ in trained] == [1, 0, 2]
    assert states(outcomes) == {0: "done", 1: "done", 2: "done"}
    assert outcomes[1].result == result()
    run([small_config(seed) for seed in (0, 1, 2)], tmp_path)
    assert len(trained) == 3


def test_a_row_that_another_sweep_wrote_meanwhile_is_not_doubled(
    tmp_path, small_config, trained, result
):
    def write_first(outcome):
        append(tmp_path / "a.jsonl", LedgerRow(config=small_config(1), result=result()))

    run([small_config(0), small_config(1)], tmp_path, report=lambda outcome: write_first(outcome)
        if outcome.job.config.seed == 0 else None)  # fmt: skip
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 2


def test_a_failing_run_does_not_stop_the_others(tmp_path, small_config, trained):
    outcomes = run([small_config(90), small_config(1)], tmp_path)
    assert states(outcomes) == {90: "failed", 1: "done"}
    assert outcomes[0].error == "RuntimeError: out of luck"
    assert len(read_ledger(tmp_path / "a.jsonl")) == 1


def test_a_run_that_diverged_has_a_row(tmp_path, small_config, trained):
    assert states(run([small_config(91)], tmp_path)) == {91: "diverged"}
    (row,) = read_ledger(tmp_path / "a.jsonl")
    assert (row.result.outcome, row.result.accuracy) == ("diverged", None)
    assert states(run([small_config(91)], tmp_path)) == {91: "diverged"}
    assert len(trained) == 1


def test_a_run_that_diverged_is_not_tried_until_it_does_not(tmp_path, small_config, trained):
    """Killed before its row was written, it has its result in the folder."""
    config = small_config(91)
    run([config], tmp_path)
    (tmp_path / "a.jsonl").unlink()
    write_json(Job.under(tmp_path / "runs", config).folder / "config.json", config.to_json())
    assert states(run([config], tmp_path)) == {91: "diverged"}
    assert len(trained) == 1 and len(read_ledger(tmp_path / "a.jsonl")) == 1


def test_a_run_between_two_checkpoints_is_unfinished(tmp_path, small_config, trained):
    folder = Job.under(tmp_path / "runs", small_config(0)).folder
    folder.mkdir(parents=True)
    (folder / PREVIOUS).touch()
    assert states(run([small_config(0)], tmp_path, budget=0)) == {0: "unfinished"}


def test_a_run_that_ended_at_chance_has_a_row_and_stops_nothing(tmp_path, small_config, trained):
    assert states(run([small_config(94), small_config(1)], tmp_path)) == {94: "stuck", 1: "done"}
    assert states(run([small_config(94)], tmp_path)) == {94: "stuck"}
    assert len(trained) == 2


def test_a_run_is_told_of_the_rows_before_it(tmp_path, small_config, trained):
    earlier.clear()
    run([small_config(0), small_config(1)], tmp_path)
    run([small_config(2)], tmp_path)
    assert earlier == [[], [0], [0, 1]]


def test_a_run_that_stops_ends_the_sweep(tmp_path, small_config, trained):
    outcomes = run([small_config(seed) for seed in (0, 92, 2)], tmp_path)
    assert states(outcomes) == {0: "done", 92: "unfinished", 2: "missing"}
    assert not outcomes[0].stopped and outcomes[1].stopped and outcomes[2].stopped


def test_a_run_in_other_hands_is_passed_over(tmp_path, small_config, trained):
    assert states(run([small_config(93), small_config(1)], tmp_path)) == {93: "busy", 1: "done"}


def test_the_budget_is_shared_and_nothing_begins_after_it(tmp_path, small_config, trained):
    run([small_config(0), small_config(1)], tmp_path, budget=100)
    (_, first), (_, second) = trained
    assert 0 < second <= first <= 100
    for budget in (0, 1e-9):
        assert states(run([small_config(2)], tmp_path, budget=budget)) == {2: "missing"}
    assert len(trained) == 2


def test_an_absolute_path_is_refused_before_anything_runs(tmp_path, small_config, trained):
    from hgru_vision.training.config import Source, Stage

    stages = (Stage(sources=(Source(path="/data/x"),), images=64),)
    with pytest.raises(ValueError, match="path /data/x means nothing on another machine"):
        run([small_config(0), small_config(1, stages=stages)], tmp_path)
    assert trained == []


def test_sigterm_between_runs_interrupts(tmp_path, small_config):
    def launcher(jobs, deadline):
        signal.raise_signal(signal.SIGTERM)
        yield Outcome(job=jobs[0], state="missing")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        sweep([small_config(0)], launcher, out=tmp_path, ledger=tmp_path / "a.jsonl")
    assert signal.getsignal(signal.SIGTERM) is before


def test_after_a_signal_during_the_last_test_no_other_run_begins(
    tmp_path, small_config, monkeypatch, result
):
    begun = []

    def train(config, folder, *, interrupted, **_):
        begun.append(config.seed)
        interrupted.set()
        return result()

    monkeypatch.setattr(loop, "train", train)
    outcomes = run([small_config(0), small_config(1)], tmp_path)
    assert states(outcomes) == {0: "done", 1: "missing"}
    assert begun == [0]
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 1  # its row is kept


def test_after_a_signal_and_an_error_no_other_run_begins(tmp_path, small_config, monkeypatch):
    def train(config, folder, *, interrupted, **_):
        interrupted.set()
        raise OSError("no space left for the checkpoint")

    monkeypatch.setattr(loop, "train", train)
    outcomes = run([small_config(0), small_config(1)], tmp_path)
    assert states(outcomes) == {0: "failed", 1: "missing"}
    assert outcomes[0].error == "OSError: no space left for the checkpoint"


def test_two_sweeps_that_find_the_same_run_ended_write_one_row(
    tmp_path, small_config, trained, result, monkeypatch
):
    ledger, lock = tmp_path / "a.jsonl", jsonl._lock

    def lock_after_the_other(descriptor):
        monkeypatch.setattr(jsonl, "_lock", lock)
        append(ledger, LedgerRow(config=small_config(0), result=result()))
        lock(descriptor)

    monkeypatch.setattr(jsonl, "_lock", lock_after_the_other)
    assert states(run([small_config(0)], tmp_path)) == {0: "done"}
    assert ledger.read_text().count("\n") == 1


def test_a_launcher_is_closed_when_its_outcome_cannot_be_told(tmp_path, small_config):
    closed = []

    def launcher(jobs, deadline):
        try:
            for job in jobs:
                yield Outcome(job=job, state="missing")
        finally:
            closed.append(True)

    def report(outcome):
        raise OSError("no paper in the printer")

    with pytest.raises(OSError, match="no paper"):
        sweep([small_config(0)], launcher, out=tmp_path, ledger=tmp_path / "a", report=report)
    assert closed == [True]


def test_a_sweep_works_outside_the_main_thread(tmp_path, small_config, trained):
    thread = threading.Thread(target=run, args=([small_config(0)], tmp_path))
    thread.start()
    thread.join()
    assert len(read_ledger(tmp_path / "a.jsonl")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_run_with_a_checkpoint_and_the_next_call_goes_on(
    tmp_path, small_config, number
):
    config = small_config(0, images=1_000_000, checkpoint_every=1_000_000)
    job = Job.under(tmp_path, config)
    curve = job.folder / CURVE

    def signal_once_it_trains():
        while not curve.exists() or not curve.read_bytes():
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    thread = threading.Thread(target=signal_once_it_trains)
    thread.start()
    outcome = run_job(job, time.time() + 60)
    thread.join()
    assert signal.getsignal(number) is before
    assert outcome == Outcome(job=job, state="unfinished")
    assert (job.folder / CHECKPOINT).exists()
    points = curve.read_text().splitlines()
    outcome = run_job(job, time.time() + 0.5)
    assert outcome.state == "unfinished"
    assert curve.read_text().splitlines()[: len(points)] == points


def test_a_sweep_of_real_runs_ends_in_real_rows(tmp_path, small_config):
    outcomes = run([small_config(0), small_config(1)], tmp_path)
    assert states(outcomes) == {0: "done", 1: "done"}
    lines = (tmp_path / "a.jsonl").read_text()
    assert str(tmp_path) not in lines
    assert len(json.loads(lines.splitlines()[0])["result"]["curve"]) == 2
    (tmp_path / "a.jsonl").unlink()  # the folders know it still
    before = (outcomes[0].job.folder / RESULT).stat().st_mtime_ns
    assert states(run([small_config(0)], tmp_path)) == {0: "done"}
    assert (outcomes[0].job.folder / RESULT).stat().st_mtime_ns == before
    assert len(read_ledger(tmp_path / "a.jsonl")) == 1


def test_time_left_is_counted_to_the_deadline():
    assert launch.seconds_left(None) is None
    assert 9 < launch.seconds_left(time.time() + 10) <= 10


def test_a_real_run_that_diverges_has_a_row(tmp_path, small_config):
    (outcome,) = run([small_config(0, model="hgru", learning_rate=1e10)], tmp_path)
    assert outcome.state == "diverged"
    (row,) = read_ledger(tmp_path / "a.jsonl")
    assert (row.result.outcome, row.result.accuracy) == ("diverged", None)


def test_a_folder_that_another_process_trains_in_is_busy(tmp_path, small_config):
    job = Job.under(tmp_path, small_config(0))
    job.folder.mkdir()
    with only_writer(job.folder):
        assert run_job(job, None) == Outcome(job=job, state="busy")


def test_a_network_of_ones_own_is_as_it_was_when_the_sweep_began(tmp_path, small_config, nets):
    source = nets.read_bytes()
    configs = [
        small_config(seed, model=f"{tmp_path}/nets.py:pixels", options={}) for seed in (0, 1)
    ]
    assert states(run(configs, tmp_path, budget=0)) == {0: "missing", 1: "missing"}
    assert not (tmp_path / "runs").exists()
    edited = run(configs, tmp_path, report=lambda _: nets.write_text("other"))
    assert states(edited) == {0: "done", 1: "done"}
    assert edited[0].job.name.startswith("pixels-small-paper-3-seed0-")
    copies = sorted((tmp_path / "runs").rglob("*.py"))
    assert len(copies) == 3 and all(copy.read_bytes() == source for copy in copies)
    assert str(tmp_path) not in (tmp_path / "a.jsonl").read_text()
    assert [row.config.network for row in read_ledger(tmp_path / "a.jsonl")] == ["pixels"] * 2
