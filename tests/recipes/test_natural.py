import json
from dataclasses import replace

import pytest

from hgru_vision.recipes import make_run
from hgru_vision.training.files import WEIGHTS
from hgru_vision.training.loop import train


def test_boundaries_are_the_papers():
    run = make_run("boundaries", root="BSR")
    assert run.stages[0].images == 1000 * 200
    assert (run.model, run.learning_rate, run.target, run.balance) == (
        "contour_hgru", 1e-3, "segmentation", True,
    )  # fmt: skip
    assert (run.warm_up, run.cool_down) == (500, 5_000)  # of 25,000 batches
    assert run.full_rate_inputs == 128 * 15 * 15 / 4  # a quarter of the rate for its kernels
    assert run.task.path == "BSR" and run.task.changes == {} and run.start is None


def test_boundaries_take_other_networks_budgets_and_weights(tmp_path):
    (tmp_path / "vgg.npz").write_bytes(b"layers")
    run = make_run(
        "boundaries",
        model="contour_feedforward",
        epochs=3,
        vgg=str(tmp_path / "vgg.npz"),
        options={"channels": 32},
        changes={"target": "annotator"},
        balance=False,
        seed=4,
    )
    assert (run.warm_up, run.cool_down) == (7, 15)  # of 75 batches
    assert run.stages[0].images == 600 and run.options == {"channels": 32} and run.seed == 4
    assert run.start.endswith("vgg.npz") and len(run.start_sha256) == 64
    assert run.task.changes == {"target": "annotator"} and not run.balance


def test_contours_go_on_from_natural_images(tmp_path):
    first = make_run("boundaries", options={"channels": 32})
    (tmp_path / "config.json").write_text(json.dumps(first.to_json()))
    (tmp_path / WEIGHTS).write_bytes(b"weights")
    run = make_run("contours", start=str(tmp_path), length=5, shear=0.6)
    assert run.options == {"channels": 32} and not run.start_readout and run.target == "label"
    assert run.task.length == 5 and run.task.changes == {"shear": 0.6, "canvas": 150}
    assert make_run("contours").start_readout
    assert run.full_rate_inputs == first.full_rate_inputs
    with pytest.raises(FileNotFoundError, match="none is neither shipped weights nor"):
        make_run("contours", start="none")


def test_masks_of_all_conditions_come_before_labels_of_one(tmp_path):
    run = make_run("contour_masks", options={"channels": 32}, images=64)
    sources = {(each.length, each.changes["shear"]) for each in run.stages[0].sources}
    assert len(sources) == 28 and (5, -0.6) in sources and (17, 0.6) in sources
    assert run.target == "segmentation" and run.balance and run.start_readout
    (tmp_path / "config.json").write_text(json.dumps(run.to_json()))
    (tmp_path / WEIGHTS).write_bytes(b"weights")
    on = make_run("contours", start=str(tmp_path), length=5, shear=0.6)
    assert on.options == {"channels": 32} and not on.start_readout and on.target == "label"


def test_masks_teach_a_network_where_contours_lie(tmp_path):
    run = make_run("contour_masks", options={"channels": 8, "timesteps": 2}, images=32, canvas=64)
    few = {"batch": 4, "evaluation_images": 8, "test_images": 8, "statistics_batches": 1}
    result = train(replace(run, **few), tmp_path / "masks", progress=False)
    assert result.outcome == "finished" and 0 <= result.overlap <= 1
    on = make_run("contours", start=str(tmp_path / "masks"), length=5, images=32, canvas=64)
    result = train(replace(on, **few), tmp_path / "labels", progress=False)
    assert result.outcome == "finished" and result.overlap is None
