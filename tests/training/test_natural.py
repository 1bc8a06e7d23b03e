"""Natural images from the files to the result: two batches of a tiny network."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from hgru_vision.recipes import make_run
from hgru_vision.training.checkpoint import load_run
from hgru_vision.training.loop import train

OPTIONS = {"channels": 4, "kernel_size": 3, "timesteps": 2}


@pytest.fixture
def config(natural):
    run = make_run(
        "boundaries",
        root=str(natural),
        options=OPTIONS,
        changes={"crop": 32, "allow_partial": True},
    )
    stage = replace(run.stages[0], images=16)
    return replace(
        run, stages=(stage,), batch=4, evaluate_every=2, evaluation_images=3, test_images=3,
        statistics_batches=1, checkpoint_every=1, warm_up=1, cool_down=2,
    )  # fmt: skip


def test_a_run_from_pictures_to_its_result(config, tmp_path):
    result = train(config, tmp_path, progress=False)
    assert result.outcome == "finished" and not result.stuck
    assert len(result.curve) == 2 and all(0 <= point.accuracy <= 1 for point in result.curve)
    assert 0 < result.test_images < 3 * 32 * 32  # pixels that count
    assert result.overlap is not None and result.shortcut is None
    network, there = load_run(tmp_path)
    assert there == config
    with torch.no_grad():
        assert network(torch.zeros(1, 3, 41, 37)).shape == (1, 2, 41, 37)


def test_pictures_that_are_missing_are_told_before_a_run_begins(config, write_bsds, tmp_path):
    for split in ("train", "val"):
        write_bsds(tmp_path / "data", split=split, shapes=((40, 48),) * 3)
    source = replace(config.task, path=str(tmp_path / "data"))
    lacking = replace(config, stages=(replace(config.stages[0], sources=(source,)),))
    with pytest.raises(FileNotFoundError, match="test"):
        train(lacking, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_interrupted_it_goes_on_as_if_never(config, tmp_path):
    train(config, tmp_path / "whole", progress=False)
    while train(config, tmp_path / "parts", progress=False, resume=True, budget=0) is None:
        pass
    one, other = (load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_it_learns_where_the_boundary_is(config, tmp_path):
    stage = replace(config.stages[0], images=120)
    longer = replace(config, stages=(stage,), evaluate_every=10, learning_rate=3e-3, warm_up=0)
    result = train(longer, tmp_path, progress=False)
    losses = [point.loss for point in result.curve]
    # In the third picture no two people agree, and there is nothing to tell apart.
    assert result.accuracy > (0.9 + 0.9 + 0.5) / 3 and losses[-1] < 0.8 * losses[0]


def test_the_audit_of_contours_is_in_the_result(tiny, monkeypatch):
    from hgru_vision.training import outcome
    from hgru_vision.training.config import Source, Stage

    monkeypatch.undo()  # of the fixture that spares runs their audit
    monkeypatch.setattr(outcome, "AUDIT_IMAGES", 100)
    source = Source(dataset="contours", length=5, changes={"canvas": 64, "cells": 16})
    found = outcome._shortcut(tiny(stages=(Stage(sources=(source,), images=96),)))
    assert 0.3 < found["accuracy"] <= 1 and " on " in found["probe"]
    assert np.isfinite(found["accuracy"])


@pytest.mark.parametrize("model", ["contour_vgg", "contour_feedforward"])
def test_the_controls_are_trained_in_the_same_way(config, model, tmp_path):
    options = {name: OPTIONS[name] for name in ("channels", "kernel_size")}
    if model == "contour_vgg":
        options.pop("kernel_size")
    result = train(replace(config, model=model, options=options), tmp_path, progress=False)
    assert result.outcome == "finished" and len(result.curve) == 2


def test_from_natural_images_to_contours(config, tmp_path):
    train(config, tmp_path / "natural", progress=False)
    run = make_run("contours", start=str(tmp_path / "natural"), length=4, canvas=64, images=32)
    few = {"evaluation_images": 8, "test_images": 8, "statistics_batches": 1, "evaluate_every": 1}
    run = replace(run, batch=8, learning_rate=1e-9, **few)
    result = train(run, tmp_path / "contours", progress=False)
    assert result.test_images == 8 and result.overlap is None
    before, after = (
        load_file(tmp_path / name / "weights.safetensors") for name in ("natural", "contours")
    )
    torch.testing.assert_close(before["features.u1"], after["features.u1"], atol=1e-6, rtol=0)
    assert "readout.decide.weight" in after and "readout.decide.weight" not in before
