from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import save_file

from hgru_vision.analysis.generalisation import read_rows
from hgru_vision.cli import main
from hgru_vision.recipes import make_run
from hgru_vision.training.checkpoint import build
from hgru_vision.training.files import write_json


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Give the folder of a run that no training made."""
    monkeypatch.chdir(tmp_path)
    config = make_run("quick")
    write_json(tmp_path / "runs/small/config.json", config.to_json())
    save_file(build(config).state_dict(), tmp_path / "runs/small/weights.safetensors")
    return "runs/small"


def test_rows_are_added_and_told_and_the_rest_is_done_next_time(run, tmp_path, capsys):
    few = ["generalise", run, "--count", "20", "--device", "cpu"]
    assert main([*few, "--axes", "length", "length"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Its run has not ended: these are the weights of its last checkpoint.")
    assert "(1 of 10) length 3: " in out and " of 20 images (" in out
    assert "length 25: not measured; length=25 does not fit" in out
    path = tmp_path / "results/generalisation/small.jsonl"
    rows = read_rows(path)
    assert {row.condition.axis for row in rows} == {"length"}
    assert {row.network for row in rows} == {"small"}
    assert main([*few, "--axes", "length", "density"]) == 0
    out = capsys.readouterr().out
    assert "length 3: " not in out and "density 14: " in out
    assert "conditions measured now; results/generalisation/small.jsonl" in out


def test_two_runs_whose_folders_have_the_same_name_are_kept_apart(run, tmp_path, capsys):
    config = replace(make_run("quick"), seed=1)
    write_json(tmp_path / "others/small/config.json", config.to_json())
    save_file(build(config).state_dict(), tmp_path / "others/small/weights.safetensors")
    few = ["--count", "20", "--device", "cpu", "--axes", "length"]
    assert main(["generalise", run, *few]) == 0
    assert main(["generalise", "others/small", *few]) == 2
    told = capsys.readouterr().err
    assert "results/generalisation/small.jsonl is of other weights" in told
    out = "results/generalisation/other.jsonl"
    assert main(["generalise", "others/small", "--out", out, *few]) == 0
    rows = read_rows(tmp_path / "results/generalisation")
    assert {row.network for row in rows} == {"small", "other"}


def test_a_run_is_named_by_its_folder_however_that_is_written(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / run)
    assert main(["generalise", ".", "--count", "5", "--device", "cpu", "--axes", "canvas"]) == 0
    assert [path.name for path in Path("results/generalisation").iterdir()] == ["small.jsonl"]


def test_the_probes_images_are_counted(run, capsys, monkeypatch):
    import numpy as np

    from hgru_vision.analysis import generalisation

    chosen = np.array([2, 3])
    monkeypatch.setattr(generalisation, "_confidently_wrong", lambda data: chosen)
    probe = ["generalise", run, "--axes", "probe", "--count", "5", "--device", "cpu"]
    assert main([*probe, "--out", "a.jsonl"]) == 0
    assert "paper, probe 90% sure and wrong: " in capsys.readouterr().out
    chosen = np.array([], dtype=int)
    assert main([*probe, "--out", "b.jsonl"]) == 0
    assert "sure and wrong: none of 20 images" in capsys.readouterr().out


def test_bad_input_is_refused(run, tmp_path, capsys):
    (tmp_path / "net.py").write_text("import torch\ndef load():\n    return torch.nn.Identity()\n")
    for arguments, text in (
        (["net.py:load"], "net.py:load does not say what it was trained on; give trained weights"),
        ([run, "--count", "0"], "--count must be 1 or more; got 0"),
        ([run, "--out", str(tmp_path)], f"{tmp_path} is a folder; give a file"),
        ([run, "--seed", "-1"], "seed must be from 0 to 2**63 - 1; got -1"),
        ([run, "--axes"], "--axes names nothing to change; give some of length preset"),
        (["none"], "no network 'none'"),
    ):
        assert main(["generalise", *arguments]) == 2
        assert text in capsys.readouterr().err
