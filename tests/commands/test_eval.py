import json
import re
from dataclasses import replace

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from hgru_vision.cli import main
from hgru_vision.commands.eval import parse_steps
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.data.store import write
from hgru_vision.recipes.quick import SMALL, quick
from hgru_vision.training.checkpoint import build
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.evaluate import as_input, evaluate
from hgru_vision.training.files import write_json

INK = """
import torch
class Ink(torch.nn.Module):
    def forward(self, image):
        ink = image.mean(dim=(1, 2, 3))
        return torch.stack([ink, ink.mean().expand_as(ink)], dim=1)
"""


def small_data(**keywords):
    return Pathfinder(SMALL.length, split="test", **SMALL.changes, **keywords)


@pytest.fixture
def run_folder(decisive):
    """Give a function that writes the folder of a run that was never trained."""
    images = as_input(torch.from_numpy(small_data(count=60).batch(range(60))))

    def write(folder, **changes):
        config = replace(quick(), options={"timesteps": 2}, test_images=20, **changes)
        folder.mkdir()
        write_json(folder / "config.json", config.to_json())
        network = build(config)
        if config.target == "label":
            decisive(network, images)
        save_file(network.state_dict(), folder / "weights.safetensors")
        return network, config

    return write


def test_a_run_is_judged_on_its_own_task(tmp_path, capsys, run_folder):
    network, _ = run_folder(tmp_path / "run", data_seed=5)
    arguments = ["eval", str(tmp_path / "run"), "--count", "60", "--steps", "1:3", "--bins", "2"]
    arguments += ["--json", str(tmp_path / "e.json"), "--figure", str(tmp_path / "e.png")]
    assert main([*arguments, "--device", "cpu"]) == 0
    report = json.loads((tmp_path / "e.json").read_text())
    data = small_data(count=60, seed=5)
    assert report["task"] == data.describe()
    assert report["accuracy"] == evaluate(network, data).accuracy
    assert report["steps"]["2"]["accuracy"] == report["accuracy"]
    assert report["steps"]["3"]["accuracy"] == evaluate(network, data, timesteps=3).accuracy
    assert report["timesteps"] == 2
    distance, turns = report["by"].values()
    assert [part["n"] for part in distance] == [part["n"] for part in turns] == [30, 30]
    assert report["strata"]["everywhere"]["n"] == 60
    assert report["shortcut"]["accuracy"] > 0.5
    out = capsys.readouterr().out
    assert f"{report['accuracy']:.1%} right on 60 test images of paper-3" in out
    right = evaluate(network, data).right
    connected, others = right[data.labels(range(60)) == 1], right[data.labels(range(60)) == 0]
    assert report["labels"]["1"]["accuracy"] == connected.mean()
    assert report["labels"]["0"]["accuracy"] == others.mean() != connected.mean()
    assert f"Right by label: label 1 {connected.mean():.1%}, label 0 {others.mean():.1%}." in out
    assert "Without following a path a probe gets" in out
    assert "Accuracy by steps" in out and "trained with 2" in out
    assert (tmp_path / "e.png").stat().st_size > 10_000


def test_changes_go_on_top_of_the_runs_task(tmp_path, run_folder):
    run_folder(tmp_path / "run")
    arguments = ["eval", str(tmp_path / "run"), "--count", "20", "--json", str(tmp_path / "e.json")]
    assert main([*arguments, "--length", "4", "--seed", "7", "--set", "contrast=0.5"]) == 0
    task = json.loads((tmp_path / "e.json").read_text())["task"]
    assert (task["config"]["length"], task["config"]["contrast"], task["seed"]) == (4, 0.5, 7)
    assert task["config"]["canvas"] == 32 and task["config"]["antialias"] is True


def test_another_preset_has_the_runs_length(tmp_path, capsys, run_folder):
    run_folder(tmp_path / "run")
    arguments = ["eval", str(tmp_path / "run"), "--preset", "matched", "--count", "20"]
    assert main(arguments) == 0
    assert "on 20 test images of matched-3 " in " ".join(capsys.readouterr().out.split())


def test_the_area_under_the_curve_of_several_stages_is_named(tmp_path, capsys, row, run_folder):
    stage = Stage(sources=(SMALL,), images=64)
    run_folder(tmp_path / "run", stages=(stage, stage))
    write_json(tmp_path / "run" / "result.json", row(stages=2, points=2).result.to_json())
    assert main(["eval", str(tmp_path / "run"), "--count", "20"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Its run ended at 90.0%, ALC (last stage) 90.0%." in out


def test_a_network_of_ones_own_on_a_preset(tmp_path, capsys):
    (tmp_path / "net.py").write_text(INK)
    arguments = ["eval", f"{tmp_path}/net.py:Ink", "--preset", "matched", "--length", "6"]
    assert main([*arguments, "--count", "40", "--json", str(tmp_path / "e.json")]) == 0
    task = json.loads((tmp_path / "e.json").read_text())["task"]
    assert task["config"]["ghost"] is True and task["config"]["length"] == 6


def test_statistics_can_be_estimated_first(tmp_path, run_folder):
    network, _ = run_folder(tmp_path / "run")
    arguments = ["eval", str(tmp_path / "run"), "--count", "40", "--json", str(tmp_path / "e.json")]
    assert main([*arguments, "--reestimate", "2"]) == 0
    network.train()
    norms = [each for each in network.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
    images = Pathfinder(SMALL.length, count=64, **SMALL.changes).batch(range(64))
    with torch.no_grad():
        for part in torch.from_numpy(images)[:, None].float().div(255).split(32):
            network(part)
    expected = evaluate(network, small_data(count=40)).accuracy
    assert norms and json.loads((tmp_path / "e.json").read_text())["accuracy"] == expected


def test_a_segmentation_has_pixels_and_overlap(tmp_path, capsys, run_folder):
    run_folder(tmp_path / "run", target="segmentation")
    assert main(["eval", str(tmp_path / "run"), "--count", "8", "--steps", "1"]) == 0
    out = capsys.readouterr().out
    assert "by label" not in out
    assert "of the pixels right on 8 test images" in out and "Intersection over union" in out
    assert "probe" not in out


def test_a_run_on_files_is_judged_on_what_was_held_out(tmp_path, capsys, run_folder):
    data = Pathfinder(SMALL.length, count=1080, **SMALL.changes)
    write(data, tmp_path / "files", format="npy")
    files = Source(path=str(tmp_path / "files"), length=SMALL.length)
    stage = Stage(sources=(files,), images=64)
    run_folder(tmp_path / "run", stages=(stage,))
    assert main(["eval", str(tmp_path / "run")]) == 0
    assert "right on 20 images of" in capsys.readouterr().out
    for flag in ("--length", "--count", "--seed"):
        assert main(["eval", str(tmp_path / "run"), flag, "6"]) == 2
        assert "was trained on the files in" in capsys.readouterr().err
    assert main(["eval", str(tmp_path / "run"), "--reestimate", "1"]) == 2
    assert "--reestimate needs images that are drawn; give --preset" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["npy", "png"])
def test_a_network_is_judged_on_files_of_hgru_generate(tmp_path, capsys, run_folder, format):
    network, _ = run_folder(tmp_path / "run")
    data = small_data(count=60)
    write(data, tmp_path / "files", format=format)
    arguments = ["eval", str(tmp_path / "run"), "--images", str(tmp_path / "files")]
    assert main([*arguments, "--json", str(tmp_path / "e.json"), "--count", "40"]) == 0
    report = json.loads((tmp_path / "e.json").read_text())
    assert report["accuracy"] == evaluate(network, data, indices=range(40)).accuracy
    assert (report["n"], report["task"]) == (40, data.describe())
    out = " ".join(capsys.readouterr().out.split())
    assert f"{report['accuracy']:.1%} right on 40 images in " in out
    assert "What a probe gets that follows no path is not known of files." in out
    assert "pixels" not in out


@pytest.fixture
def archive(tmp_path):
    """Write images of the small data twice as large, as the authors' program does; the folder."""
    root = tmp_path / "curv_baseline"
    data = small_data(count=20)
    for folder in ("imgs/0", "metadata"):
        (root / folder).mkdir(parents=True)
    rows = []
    labels = data.labels(range(20))
    for item, image in enumerate(data.batch(range(20))):
        Image.fromarray(image.repeat(2, 0).repeat(2, 1)).save(root / f"imgs/0/sample_{item}.png")
        rows.append(f"imgs/0 sample_{item}.png {item} {labels[item]} 1.8 3 2 5 2 3 1")
    (root / "metadata" / "0.npy").write_text("\n".join(rows))
    return root


def test_a_network_is_judged_on_files_of_the_authors(tmp_path, capsys, run_folder, archive):
    network, _ = run_folder(tmp_path / "run")
    arguments = ["eval", str(tmp_path / "run"), "--images", str(archive)]
    arguments += ["--json", str(tmp_path / "e.json")]
    assert main([*arguments, "--reduce", "2", "--exclude", "imgs/0/sample_7.png"]) == 0
    report = json.loads((tmp_path / "e.json").read_text())
    others = [item for item in range(20) if item != 7]
    assert report["accuracy"] == evaluate(network, small_data(count=20), indices=others).accuracy
    assert report["task"]["config"]["reduce"] == 2
    assert "pixels" not in capsys.readouterr().out


def test_images_of_another_size_than_in_training_are_told(tmp_path, capsys, run_folder, archive):
    run_folder(tmp_path / "run")
    assert main(["eval", str(tmp_path / "run"), "--images", str(archive)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    note = "Images have 64 x 64 pixels, those of its training 32 x 32"
    assert f"{note}: --reduce 2 makes them alike." in out
    assert main(["eval", str(tmp_path / "run"), "--images", str(archive), "--reduce", "4"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Images have 16 x 16 pixels, those of its training 32 x 32." in out
    changes = SMALL.changes | {"canvas": 64}  # by hgru generate, whose images are not reduced
    write(Pathfinder(SMALL.length, count=10, **changes), tmp_path / "large", format="npy")
    assert main(["eval", str(tmp_path / "run"), "--images", str(tmp_path / "large")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Images have 64 x 64 pixels, those of its training 32 x 32." in out


def test_images_of_its_training_are_told(tmp_path, capsys, run_folder):
    run_folder(tmp_path / "run", stages=(Stage(sources=(SMALL,), images=32),))
    train = Pathfinder(SMALL.length, count=40, **SMALL.changes)
    write(train, tmp_path / "files", format="npy")
    assert main(["eval", str(tmp_path / "run"), "--images", str(tmp_path / "files")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "32 of them are among the images of its training." in out


def test_files_and_what_is_for_drawn_images_do_not_go_together(
    tmp_path, capsys, run_folder, archive
):
    run_folder(tmp_path / "run")
    write(small_data(count=20), tmp_path / "files", format="npy")
    network = ["eval", str(tmp_path / "run")]
    files, folder = ["--images", str(tmp_path / "files")], ["--images", str(archive)]
    for arguments, text in (
        ([*files, "--seed", "1"], "--seed is for images that are drawn, --images for files"),
        ([*files, "--set", "contrast=0.5"], "--set is for images that are drawn, --images for"),
        ([*folder, "--reestimate", "1"], "--reestimate is for images that are drawn, --images"),
        (["--reduce", "2"], "--reduce is for files; give --images FOLDER"),
        (["--exclude", "a.png"], "--exclude is for files; give --images FOLDER"),
        ([*files, "--reduce", "2"], "are for images of other programs; hgru generate wrote"),
        ([*folder, "--count", "21"], f"--count is 21; {archive} holds 20 images"),
        ([*folder, "--count", "0"], f"--count is 0; {archive} holds 20 images"),
        (["--images", "no/where"], "--images no/where: there is no such folder"),
        (["--images", str(tmp_path / "run")], "run has no folder 'metadata'"),
    ):
        assert main([*network, *arguments]) == 2
        assert text in capsys.readouterr().err


def test_a_run_on_contours_is_judged_on_these(tmp_path, capsys, run_folder):
    changes = {"canvas": 32, "cells": 8}
    contours = Source(dataset="contours", length=4, changes=changes)
    run_folder(tmp_path / "contours", stages=(Stage(sources=(contours,), images=64),))
    assert main(["eval", str(tmp_path / "contours")]) == 0
    out = capsys.readouterr().out
    assert "right on 20 images of contours-4" in out and "probe" not in out
    assert main(["eval", str(tmp_path / "contours"), "--count", "6"]) == 2
    err = capsys.readouterr().err
    assert "was trained on images of contours-4 and is judged on all those held out" in err


def test_boundaries_are_judged_by_their_auc(tmp_path, capsys, natural):
    from hgru_vision.recipes import make_run

    config = make_run(
        "boundaries",
        root=str(natural),
        options={"channels": 4, "kernel_size": 3, "timesteps": 2},
        changes={"crop": 32, "allow_partial": True},
    )
    config = replace(config, test_images=3)
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "run" / "config.json", config.to_json())
    save_file(build(config).state_dict(), tmp_path / "run" / "weights.safetensors")
    assert main(["eval", str(tmp_path / "run")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Pixel AUC 0\.\d{3} on 3 images of .* \(0\.\d{3} to [01]\.\d{3}\)\.", out)


@pytest.mark.parametrize("text", ["", "0:3", "5:4", "a", "4,x", "1:2:3"])
def test_steps_that_are_none_are_refused(text):
    with pytest.raises(
        ValueError, match=r"--steps takes 1:16 or 4,8,12, numbers of 1 or more; got"
    ):
        parse_steps(text)


def test_bad_wishes_are_refused_before_any_work(tmp_path, capsys):
    (tmp_path / "net.py").write_text(INK)
    network = f"{tmp_path}/net.py:Ink"
    assert main(["eval", network, "--steps", "1:4"]) == 2
    assert "Ink has no recurrent circuit" in capsys.readouterr().err
    assert main(["eval", network, "--device", "gpu"]) == 2
    assert "no device 'gpu'" in capsys.readouterr().err
    assert main(["eval", network, "--figure", "a.jpg"]) == 2
    assert "pictures end in .svg, .pdf, .png; got a.jpg" in capsys.readouterr().err
    for flag, value, text in (
        ("--json", tmp_path, f"{tmp_path} is a folder; give a file"),
        ("--json", tmp_path / "net.py" / "a.json", "net.py is no folder"),
        ("--figure", tmp_path / "net.py" / "a.png", "a.png cannot be written"),
        ("--bins", "0", "--bins is 0; it must be 1 or more"),
        ("--confidence", "0.5", "--confidence is 0.5; it must be a number above 0.5 and below 1"),
        ("--reestimate", "-1", "--reestimate is -1; it must be a number of batches, 0 or more"),
        ("--batch", "0", "--batch is 0; it must be 1 or more"),
    ):
        assert main(["eval", network, flag, str(value)]) == 2
        assert text in capsys.readouterr().err


def test_a_run_that_has_not_ended_is_told(tmp_path, capsys, run_folder):
    run_folder(tmp_path / "run")
    assert main(["eval", str(tmp_path / "run"), "--count", "20"]) == 0
    assert "Its run has not ended" in " ".join(capsys.readouterr().out.split())


def test_few_images_are_judged_without_a_probe(tmp_path, capsys, run_folder):
    run_folder(tmp_path / "run")
    assert main(["eval", str(tmp_path / "run"), "--count", "4"]) == 0
    assert "Too few images for a probe: it needs 10." in capsys.readouterr().out
