import json
import sys
from pathlib import Path

import pytest

from hgru_vision.cli import main
from hgru_vision.commands.train import change
from hgru_vision.recipes import make_run
from hgru_vision.training.checkpoint import build

TINY = (
    "batch=8", "stages[0].images=96", "evaluate_every=5", "evaluation_images=32",
    "test_images=40", "statistics_batches=2", "options.timesteps=2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "hgru_vision.training.outcome._shortcut", lambda _: {"accuracy": 0.75, "probe": "none"}
    )


def train(*arguments, changes=(), out="run"):
    start = ["train", "quick", "--out", out, "--device", "cpu", *arguments]
    return main([*start, "--set", *TINY, *changes])


def test_a_run_ends_in_its_numbers(capsys):
    assert train() == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "of 40 test images right (95 % interval" in out
    assert "after 96 images" in out
    assert "Without following a path a probe gets 75.0% (hgru audit)." in out
    assert "The run is in run" in out


def test_a_spent_budget_says_how_to_go_on(capsys):
    assert train("--budget", "0s") == 0
    assert "with --resume goes on" in " ".join(capsys.readouterr().out.split())
    assert train() == 2
    assert "run holds a run; resume it, or give another folder" in capsys.readouterr().err
    assert train("--resume", "--seed", "1") == 2
    assert "seed: 0 there, 1 here" in capsys.readouterr().err
    assert train("--resume") == 0


def test_pixels_have_an_overlap(capsys):
    assert train(changes=("target=segmentation",)) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "of 40,960 test pixels right (overlap of masks 0." in out


@pytest.mark.parametrize(("stop", "words"), [("false", "It is at"), ("true", "ended early, at")])
def test_a_run_at_chance_says_so(capsys, stop, words):
    slow = ("stuck_after=40", "learning_rate=1e-9", "test_images=20")
    assert train(changes=(*slow, f"stop_when_stuck={stop}")) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{words} chance; see 'Stuck at 0.693' in docs/training.md." in out


def test_a_run_that_diverges_is_one_line(capsys):
    assert train(changes=("learning_rate=1e30", "clip=null")) == 2
    err = capsys.readouterr().err
    assert err.splitlines()[-1].startswith("hgru: the loss is nan at batch")


def test_a_missing_tensorboard_is_one_line(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert train("--tensorboard") == 2
    assert "hgru: tensorboard is not installed" in capsys.readouterr().err


def test_options_of_the_network_are_within_reach():
    run = change(make_run("curriculum"), ("options.drive_gain=1", "options.timesteps=6"))
    assert run.options == {"drive_gain": 1, "timesteps": 6}
    assert build(run).input.gain == 1


def test_fields_are_changed_by_their_place():
    run = change(make_run("quick"), ("clip=null", "stages[0].sources[0].length=4", "recipe=mine"))
    assert (run.clip, run.task.length, run.recipe) == (None, 4, "mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch", "--set takes field=value, such as batch=64; got 'batch'"),
        ("stages[7].images=3", "the run has no field 'stages[7].images' (from --set stages[7]"),
        ("batch.size=3", "the run has no field 'batch.size'"),
        ("=3", "--set takes field=value, such as batch=64; got '=3'"),
        ("bacth=3", "bacth is not a field of RunConfig; did you mean 'batch'?"),
        ("batch=many", "batch must be a whole number; got 'many'"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(text, message):
    with pytest.raises((ValueError, TypeError)) as error:
        change(make_run("quick"), (text,))
    assert message in str(error.value)


def test_a_recipe_that_takes_no_length_says_so(capsys):
    assert main(["train", "quick", "--out", "x", "--length", "14"]) == 2
    assert "the recipe quick takes no length; it takes images, seed" in capsys.readouterr().err


def test_the_ledger_is_read_where_there_is_one(monkeypatch, tmp_path, capsys):
    assert train(changes=("stuck_after=40", "learning_rate=1e-9")) == 0
    assert "The ledger has no run like it" in " ".join(capsys.readouterr().err.split())
    from hgru_vision.sweeps.ledger import LedgerRow, append
    from hgru_vision.training.config import RunConfig
    from hgru_vision.training.result import Result

    row = LedgerRow(
        config=RunConfig.from_json(json.loads(Path("run/config.json").read_text())),
        result=Result.from_json(json.loads(Path("run/result.json").read_text())),
    )
    Path("results").mkdir()
    append(Path("results/quick.jsonl"), row)
    assert train(changes=("stuck_after=40", "learning_rate=1e-9", "seed=1"), out="again") == 0
    assert "like it in the ledger 1 of 1 ended there" in " ".join(capsys.readouterr().err.split())
