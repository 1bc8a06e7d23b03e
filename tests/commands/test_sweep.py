from pathlib import Path

import pytest

from hgru_vision.cli import main
from hgru_vision.sweeps.ledger import read_ledger

GRID = """
from dataclasses import replace
from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.config import RunConfig, Stage

def run(seed, **options):
    return RunConfig(
        recipe="mine", model="gru", options={"timesteps": 1, **options}, seed=seed,
        stages=(Stage(sources=(SMALL,), images=32),), target="segmentation", batch=16,
        evaluate_every=2, evaluation_images=16, test_images=16, statistics_batches=1,
    )

def two():
    return [run(0), run(1)]

def staged():
    short = run(0)
    return [replace(short, stages=short.stages * 2), short]

def broken():
    return [run(2, steps=3), run(0)]
"""


@pytest.fixture
def grids(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(GRID)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sweep_runs_what_is_missing_and_tells_where_it_stands(grids, capsys):
    assert main(["sweep", "mine.py:two", "--budget", "0s"]) == 0
    assert "missing" in capsys.readouterr().out
    assert main(["sweep", "mine.py:two", "--budget", "9m"]) == 0
    out, err = capsys.readouterr()
    assert out.count(": done, ") == 2
    assert "of 16,384 test pixels right" in out
    assert "(1 of 2)" in err and "(2 of 2)" in err
    assert "ledger: results/two.jsonl; runs: runs" in out
    assert len(read_ledger(grids / "results")) == 2
    assert len(list((grids / "runs").glob("gru-mine-paper-3-seed?-????????"))) == 2
    assert main(["sweep", "mine.py:two"]) == 0
    assert ": done, " not in capsys.readouterr().out


def test_a_failing_run_is_told_and_makes_the_status_1(grids, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "mine.py:broken", "--ledger", "other/a.jsonl", "--out", "elsewhere"])
    assert stop.value.code == 1
    out = capsys.readouterr().out
    assert "failed, TypeError: gru has no keyword 'steps'" in out
    assert len(read_ledger(grids / "other" / "a.jsonl")) == 1
    assert (grids / "elsewhere").is_dir()


def test_fields_of_all_runs_are_changed_and_recorded(grids, capsys):
    assert main(["sweep", "mine.py:staged", "--set", "learning_rate=1e-4", "data_seed=7"]) == 0
    long, short = sorted(read_ledger(grids / "results"), key=lambda row: -len(row.config.stages))
    assert {row.config.learning_rate for row in (long, short)} == {1e-4}
    assert {row.config.data_seed for row in (long, short)} == {7}
    # Every run has another folder than without the change.
    told = " ".join(capsys.readouterr().out.split())
    assert f"; the first 32 of 64 images are those of run {short.hash[:8]}" in told
    assert main(["sweep", "mine.py:staged", "--budget", "0s"]) == 0
    assert "missing" in capsys.readouterr().out


def test_runs_that_are_there_but_for_how_a_step_is_executed_are_told(grids, capsys):
    assert main(["sweep", "mine.py:two", "--set", "channels_last=true"]) == 0
    assert "of these runs" not in capsys.readouterr().out
    look = ["sweep", "mine.py:two", "--budget", "0s"]
    assert main(look) == 0
    out = capsys.readouterr().out
    told = "results/two.jsonl has 2 of these runs but for how a step is executed; --set"
    hint, table = f"{told} channels_last=true goes on with them\n", out.index("missing")
    assert out.count(hint) == 2
    assert out.index(hint) < table < out.rindex(hint)  # a long table takes the first out of sight
    assert "missing" in out
    assert main([*look, "--set", "data_seed=0", "channels_last=false", "compile=true"]) == 0
    out = capsys.readouterr().out
    assert f"{told} data_seed=0 channels_last=true compile=false goes on" in out
    assert main([*look, "--set", "data_seed=1"]) == 0
    assert "of these runs" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["tinny"], "no grid 'tinny'"),
        (["tiny", "--budget", "9"], "a time is a number with s, m or h"),
        (["tiny", "--gpus-per-run", "1"], "--gpus-per-run is for --on ray"),
        (["tiny", "--address", "auto"], "--address is for --on ray"),
        (["tiny", "--on", "ray", "--workers", "2"], "--workers is for --on local"),
        (["tiny", "--set", "bacth=3"], "bacth is not a field of RunConfig"),
        (["tiny", "--ledger", "."], ". is a folder; give a file"),
        (["tiny", "--out", "a.file"], "a.file is a file; runs need a folder"),
        (["tiny", "--workers", "0"], "workers must be 1 or more; got 0"),
    ],
)
def test_bad_flags_are_refused_in_a_line(grids, capsys, flags, text):
    Path("a.file").touch()
    assert main(["sweep", *flags]) == 2
    assert text in capsys.readouterr().err
