import json

import pytest

from hgru_vision.recipes import make_run
from hgru_vision.training.files import WEIGHTS, keep_network


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
    for other in ({"model": "contour_vgg"}, {"options": {"channels": 16}}):
        with pytest.raises(
            ValueError, match=r"model and options are those of .*; give them without"
        ):
            make_run("contours", start=str(tmp_path), **other)
    with pytest.raises(FileNotFoundError, match="none is neither shipped weights nor"):
        make_run("contours", start="none")


def test_contours_may_be_shown_beside_labels():
    (stage,) = make_run("contours", length=5, shear=0.6, masks=True, images=96).stages
    assert (stage.mask_weight, stage.images) == (1.0, 96)
    (only,) = make_run("contours").stages
    assert only.mask_weight == 0


def test_contours_go_on_with_a_network_of_ones_own(nets, tmp_path):
    first = make_run("boundaries", model="nets.py:pixels")
    keep_network(first, tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text(json.dumps(first.to_json()))
    (tmp_path / "run" / WEIGHTS).write_bytes(b"weights")
    nets.unlink()
    run = make_run("contours", start=str(tmp_path / "run"))
    assert run.model == "nets.py:pixels" and run.model_sha256 == first.model_sha256
