from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from hgru_vision.data.durable import only_writer
from hgru_vision.sweeps.jobs import Job, Queue, beginnings, take_over
from hgru_vision.sweeps.launch import run_job, sweep
from hgru_vision.sweeps.local import local_launcher
from hgru_vision.training.config import Stage
from hgru_vision.training.files import CHECKPOINT, RESULT, WEIGHTS, read_result
from hgru_vision.training.loop import train


def staged(small_config, images=(48, 32, 48), **changes):
    """Make a run of several stages; its batch norms and odd losses would show any difference."""
    source = small_config().stages[0].sources
    stages = tuple(Stage(sources=source, images=count) for count in images)
    options = {"timesteps": 2}
    fields = {"model": "hgru_bn", "options": options, "stages": stages, "evaluate_every": 2}
    return small_config(**(fields | {"checkpoint_every": 100} | changes))


def first(config, count):
    return replace(config, stages=config.stages[:count])


def numbers(result):
    """Give what of a result no clock and no process has a part in."""
    curve = [replace(point, seconds=0.0) for point in result.curve]
    return result.accuracy, result.correct, result.alc, result.overlap, result.images, curve


def test_beginnings_are_the_runs_of_the_first_stages(small_config):
    config = staged(small_config)
    assert beginnings(config) == [first(config, 2), first(config, 1)]
    assert beginnings(first(config, 1)) == []
    assert beginnings(replace(config, cool_down=1)) == []


@pytest.mark.parametrize("stuck", [False, True])
def test_a_run_that_goes_on_from_its_beginning_is_the_run_from_scratch(
    tmp_path, small_config, stuck, monkeypatch
):
    monkeypatch.setattr("hgru_vision.training.outcome._shortcut", lambda _: None)  # takes seconds
    # Stuck: the second stage is at chance, and its end is that of the longer run.
    changes = {"target": "label", "stuck_after": 32, "stop_when_stuck": True} if stuck else {}
    config = staged(small_config, learning_rate=1e-9 if stuck else 1e-3, **changes)
    whole = train(config, tmp_path / "whole", progress=False)
    for count in (1, 2, 3):
        outcome = run_job(Job.under(tmp_path / "runs", first(config, count)), None)
        assert outcome.state == ("stuck" if stuck else "done")
    result = outcome.result
    assert numbers(result) == numbers(whole)
    scratch, shared = (
        load_file(each / WEIGHTS) for each in (tmp_path / "whole", outcome.job.folder)
    )
    assert scratch.keys() == shared.keys()
    assert all(torch.equal(scratch[name], shared[name]) for name in scratch)
    assert whole.shared is None
    images = 32 if stuck else 80
    assert result.shared["run"] == first(config, 2).hash
    assert (result.shared["images"], result.images) == (images, images + (0 if stuck else 48))
    assert 0 < result.shared["seconds"] < result.seconds


def test_it_is_told_and_stages_are_trained_once(tmp_path, small_config, capsys):
    config = staged(small_config)
    grid = [config, first(config, 1)]  # the longer first, as a user may have it
    told = []
    launcher = local_launcher(progress=True)
    arguments = {"out": tmp_path / "runs", "ledger": tmp_path / "a.jsonl", "report": told.append}
    long, short = sweep(grid, launcher, **arguments)
    assert [outcome.job for outcome in told] == [short.job, long.job]
    assert long.result.curve[:1] == short.result.curve
    words = " ".join(capsys.readouterr().err.split())
    assert f"{long.job.name} begins as {short.job.name} did, and goes on from its check" in words


def test_a_run_that_has_begun_is_left_alone(tmp_path, small_config):
    config = staged(small_config)
    long, short = Job.under(tmp_path, config), Job.under(tmp_path, first(config, 1))
    assert take_over(long) is None and not long.folder.exists()
    train(short.config, short.folder, progress=False)
    long.folder.mkdir()
    (long.folder / RESULT).touch()
    assert take_over(long) is None and not (long.folder / CHECKPOINT).exists()
    (long.folder / RESULT).unlink()
    with only_writer(long.folder), pytest.raises(BlockingIOError, match="another process writes"):
        take_over(long)
    assert take_over(long) == short
    assert (long.folder / CHECKPOINT).exists()


def test_a_damaged_beginning_is_passed_over(tmp_path, small_config):
    config = staged(small_config)
    long, short = Job.under(tmp_path, config), Job.under(tmp_path, first(config, 1))
    short.folder.mkdir()
    assert take_over(long) is None
    (short.folder / CHECKPOINT).write_bytes(b"no checkpoint")
    assert take_over(long) is None
    newer = {"config": {"a_field_of_tomorrow": 1}}
    torch.save(newer, short.folder / CHECKPOINT)
    assert take_over(long) is None
    assert read_result(long.folder) is None


def test_jobs_wait_for_their_beginnings(tmp_path, small_config):
    config, other = staged(small_config), small_config(7)
    long, middle, alone, short = (
        Job.under(tmp_path, each) for each in (config, first(config, 2), other, first(config, 1))
    )
    queue = Queue([long, middle, alone, short])
    assert (queue.take(), queue.take(), queue.take()) == (alone, short, None)
    assert len(queue) == 2
    queue.end(alone)
    assert queue.take() is None
    queue.end(short)
    assert (queue.take(), queue.take()) == (middle, None)
    queue.clear()
    assert (len(queue), queue.take()) == (0, None)


@pytest.mark.slow
def test_processes_side_by_side_wait_for_beginnings(tmp_path, small_config):
    config = staged(small_config)
    grid = [config, first(config, 2), first(config, 1), small_config(3)]
    outcomes = sweep(grid, local_launcher(2), out=tmp_path / "runs", ledger=tmp_path / "a.jsonl")
    assert [outcome.state for outcome in outcomes] == ["done"] * 4
    shared = [outcome.result.shared for outcome in outcomes]
    assert shared[0]["run"] == grid[1].hash and shared[1]["run"] == grid[2].hash
    assert shared[2:] == [None, None]
