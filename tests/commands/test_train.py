import json
import sys
from pathlib import Path

import pytest

from hgru_vision.cli import main
from hgru_vision.commands.train import change, read_run
from hgru_vision.recipes import make_run
from hgru_vision.training.checkpoint import build

TINY = (
    "batch=8", "stages[0].images=96", "evaluate_every=5", "evaluation_images=32",
    "test_images=40", "statistics_batches=2", "cool_down=4", "options.timesteps=2",
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
    assert not Path("run/result.json").exists()
    assert train() == 2
    assert (
        "run holds a run; resume it (--resume), or give another folder" in capsys.readouterr().err
    )
    assert train("--resume", "--seed", "1") == 2
    assert "seed: 0 there, 1 here" in capsys.readouterr().err
    assert train("--resume") == 0
    assert Path("run/result.json").exists()


def test_pixels_have_an_overlap(capsys):
    assert train(changes=("target=segmentation",)) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "of 40,960 test pixels right (overlap of masks 0." in out


@pytest.mark.parametrize(
    ("stop", "words"), [("false", "not surely above"), ("true", "ended early, at")]
)
def test_a_run_at_chance_says_so(capsys, stop, words):
    slow = ("stuck_after=40", "learning_rate=1e-9", "test_images=20")
    assert train(changes=(*slow, f"stop_when_stuck={stop}")) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{words} chance; see docs/stuck.md." in out


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


def test_other_weights_to_start_from_have_their_own_check_sum():
    run = make_run("curriculum", start="hgru.pathfinder6")
    other = change(run, ("start=hgru.pathfinder9",))
    assert other == make_run("curriculum", start="hgru.pathfinder9")
    assert change(run, ("start=null",)).start_sha256 is None
    with pytest.raises(FileNotFoundError, match=r"no weights 'hgru\.nonsense' to start from"):
        change(run, ("start=hgru.nonsense",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch", "--set takes field=value, such as batch=64; got 'batch'"),
        ("stages[7].images=3", "the run has no field 'stages[7].images' (from --set stages[7]"),
        ("batch.size=3", "the run has no field 'batch.size'"),
        ("=3", "--set takes field=value, such as batch=64; got '=3'"),
        ("bacth=3", "bacth is not a field of RunConfig; did you mean 'batch'?"),
        ("batch=many", "batch must be a whole number; got 'many'"),
        ("batch=40000", "stages[0].images is 36000, less than a batch, 40000"),
        ("batch=128", "cool_down is 375 batches, but the last stage has 281, so that the learning"),
        ("batch=128", "rate would never come to its value; give --set cool_down=281, or less"),
        ("warm_up=1126", "warm_up is 1126 batches, but the run has 1125"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(text, message):
    with pytest.raises((ValueError, TypeError)) as error:
        change(make_run("quick"), (text,))
    assert message in str(error.value)


def test_keywords_of_a_recipe_are_within_reach(natural, capsys):
    keywords = (
        f"root={natural}", "epochs=1", 'changes={"crop": 32, "allow_partial": true}',
        'options={"channels": 4, "kernel_size": 3, "timesteps": 1}',
    )  # fmt: skip
    few = ("stages[0].images=8", "batch=4", "warm_up=0", "cool_down=0", "statistics_batches=1",
           "evaluate_every=2", "evaluation_images=3", "test_images=3")  # fmt: skip
    run = ["train", "boundaries", "--with", *keywords, "--out", "run", "--device", "cpu"]
    assert main([*run, "--set", *few]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("Pixel AUC 0.") and ", the mean over 3 test pictures, after 8 imag" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed=3", "seed has a flag of its own; give --seed 3"),
        ("root", "--with takes keyword=value, such as root=BSR; got 'root'"),
        ("shear=0.2", "the recipe quick takes no shear; it takes model, images, seed"),
        ("images=many", "images must be a whole number; got 'many'"),
    ],
)
def test_keywords_that_no_recipe_takes_are_refused(capsys, text, message):
    assert main(["train", "quick", "--out", "x", "--with", text]) == 2
    assert message in capsys.readouterr().err


def test_a_recipe_that_takes_no_length_says_so(capsys):
    assert main(["train", "quick", "--out", "x", "--length", "14"]) == 2
    assert (
        "the recipe quick takes no length; it takes model, images, seed" in capsys.readouterr().err
    )


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


def test_what_is_no_ledger_does_not_stop_a_run(capsys):
    Path("results").mkdir()
    Path("results/others.jsonl").write_text('{"mine": 1}\n')
    assert train() == 0
    told = capsys.readouterr().err
    assert "hgru: earlier runs are not counted: results/others.jsonl" in told


def test_a_run_needs_a_folder_of_its_own(capsys):
    Path("notes").mkdir()
    Path("notes/a.txt").touch()
    assert train(out="notes") == 2
    told = "notes holds 'a.txt' and no run; give an empty or a new folder"
    assert told in capsys.readouterr().err
    assert train(out="notes/a.txt") == 2
    assert "notes/a.txt is a file; a run needs a folder" in capsys.readouterr().err
    Path("half").mkdir()
    Path("half/config.json").write_text("{}")
    assert train(out="half") == 2
    assert "half/config.json is no run's configuration: " in capsys.readouterr().err


def published(tmp_path, monkeypatch):
    """Train a run, publish it, and give its name among weights that are elsewhere."""
    from hgru_vision import weights

    monkeypatch.setattr(weights, "FOLDER", tmp_path / "shelf")
    assert train() == 0
    return weights.publish(Path("run"), "small")


def test_the_command_of_a_card_makes_the_same_network(tmp_path, monkeypatch, capsys):
    made = published(tmp_path, monkeypatch)
    command = made.command.split()
    assert command[0] == "hgru"
    assert main([*command[1:], "--device", "cpu"]) == 0
    again = tmp_path / "runs" / made.name / "weights.safetensors"
    assert again.read_bytes() == Path("run/weights.safetensors").read_bytes()


def test_a_configuration_is_found_in_any_of_its_files(tmp_path, monkeypatch):
    made = published(tmp_path, monkeypatch)
    for reference in ("run", "run/config.json", made.name, f"shelf/{made.name}.json"):
        assert read_run(reference) == made.config
    changed = ["--config", "run", "--seed", "3", "--set", "stages[0].images=40"]
    assert main(["train", *changed, "--out", "other", "--device", "cpu"]) == 0
    run = read_run("other")
    assert (run.seed, run.stages[0].images, run.batch) == (3, 40, 8)


def test_what_is_no_configuration_is_refused(capsys, tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"bacth": 3}')
    (tmp_path / "c.json").write_text('{"schema": 1, "sha256": "00"}')
    for arguments, text in (
        (["--config", "none"], "no configuration 'none'; give the folder of a run, its config.js"),
        (["--config", "a.json"], "a.json is not JSON"),
        (["--config", "c.json"], "c.json is no card: name is missing; Card needs it"),
        (
            ["--config", "b.json"],
            "b.json is no run's configuration: bacth is not a field of RunConfig; did you mean",
        ),
        (["quick", "--config", "run"], "give a recipe (paper, curriculum, ...) or --config, one"),
        ([], "give a recipe (paper, curriculum, ...) or --config, one of them"),
        (["--config", "b.json", "--length", "9"], "length is for a recipe; change the fields"),
    ):
        assert main(["train", *arguments, "--out", "x"]) == 2
        assert text in capsys.readouterr().err


def test_a_network_of_ones_own_is_trained_by_the_same_command(nets, capsys):
    few = [*TINY[:-1], "options.channels=2"]
    assert main(["train", "quick", "--model", "nets.py:leaky", "--out", "run", "--set", *few]) == 0
    assert "The run is in run" in capsys.readouterr().out
    nets.write_text("")
    again = ["--seed", "3", "--set", "stages[0].images=40"]
    for config in ("run", "run/config.json"):
        assert read_run(config).reference == "run/nets.py:leaky"
    assert main(["train", "--config", "run", "--out", "other", *again, "--device", "cpu"]) == 0
    assert Path("other/nets.py").read_bytes() == Path("run/nets.py").read_bytes()
    assert main(["train", "quick", "--model", "nets.py:leaky", "--out", "new"]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == "hgru: nets.py defines no function 'leaky'; it has none"
    assert not Path("new").exists()


def test_another_model_is_known_by_its_own_file(nets):
    first = change(make_run("quick", model="nets.py:leaky"), ("seed=1",))
    Path("more.py").write_text("number = 3\n")
    other = change(first, ("model=more.py:pixels",))
    assert other.model_sha256 not in (None, first.model_sha256)
    assert change(first, ("model=hgru",)).model_sha256 is None
