import numpy as np
import pytest
import torch

from hgru_vision.stimuli.audit import audit
from hgru_vision.training import outcome
from hgru_vision.training.checkpoint import build
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.data import evaluation_data, training_data
from hgru_vision.training.distributed import Group
from hgru_vision.training.step import Step

shortcut = outcome._shortcut  # before a fixture takes it away
ALONE = Group(rank=0, size=1, device=torch.device("cpu"))


def measured(config, group=ALONE):
    step = Step(build(config), config, ALONE)
    before = {name: value.clone() for name, value in step.network.state_dict().items()}
    found = outcome.measure(
        step, group, training_data(config, 0), evaluation_data(config, 0), last=10
    )
    changed = {
        name
        for name, value in step.network.state_dict().items()
        if not torch.equal(before[name], value)
    }
    assert step.network.training
    return found, changed


def test_statistics_alone_change_and_only_if_wanted(tiny):
    found, changed = measured(tiny())
    assert found.count == 32
    assert found.overlap is None
    norm = "readout.normalise."
    assert changed == {f"{norm}running_mean", f"{norm}running_var", f"{norm}num_batches_tracked"}
    assert measured(tiny(statistics_batches=0))[1] == set()


def test_statistics_are_those_of_the_batches_before(tiny):
    config = tiny(statistics_batches=3)
    step = Step(build(config), config, ALONE)
    data = training_data(config, 0)
    outcome.measure(step, ALONE, data, evaluation_data(config, 0), last=10)
    norm = step.network.readout.normalise
    images = torch.from_numpy(data.batch(np.arange(7 * 8, 10 * 8)))[:, None] / 255
    with torch.no_grad():
        maps = step.network.readout.maps(step.network.features(step.network.input(images)))
    torch.testing.assert_close(norm.running_mean, maps.mean(dim=(0, 2, 3)), rtol=1e-4, atol=1e-5)


def test_processes_share_the_images(tiny, monkeypatch):
    monkeypatch.setattr(Group, "sum", lambda _, values: values)
    counts = [
        measured(tiny(evaluation_images=33), Group(rank=rank, size=2, device=ALONE.device))[0].count
        for rank in (0, 1)
    ]
    assert counts == [17, 16]
    alone = measured(tiny(evaluation_images=1), Group(rank=1, size=2, device=ALONE.device))[0]
    assert (alone.correct, alone.count) == (0, 0)


def test_the_shortcut_is_the_audits(tiny, monkeypatch):
    monkeypatch.setattr(outcome, "AUDIT_IMAGES", 200)
    found = shortcut(tiny())
    assert 0.5 < found["accuracy"] <= 1
    assert " on " in found["probe"]


def test_a_task_is_audited_once(tiny, monkeypatch):
    monkeypatch.setattr(outcome, "AUDIT_IMAGES", 100)
    audits = []
    monkeypatch.setattr(
        outcome, "audit", lambda *rest, **keys: audits.append(rest) or audit(*rest, **keys)
    )
    outcome._audit.cache_clear()
    first = shortcut(tiny())
    assert shortcut(tiny(seed=1, model="gru", learning_rate=1.0)) == first
    assert len(audits) == 1
    assert shortcut(tiny(data_seed=1)) != first
    assert len(audits) == 2


def test_processes_share_the_overlap_of_masks(tiny, monkeypatch):
    config = tiny(target="segmentation", evaluation_images=9)
    whole = measured(config)[0]
    shares = []
    monkeypatch.setattr(Group, "sum", lambda _, values: shares.append(values) or values)
    for rank in (0, 1):
        measured(config, Group(rank=rank, size=2, device=ALONE.device))
    correct, count, overlap, _ = (shares[0] + shares[1]).tolist()
    assert (correct, count) == (whole.correct, whole.count)
    assert overlap / 9 == pytest.approx(whole.overlap)


def test_there_is_no_shortcut_for_segmentation(tiny):
    one_marker = Stage(sources=(Source(preset="crbp-14"),), images=32)
    assert shortcut(tiny(stages=(one_marker,), target="segmentation")) is None


@pytest.mark.parametrize(
    ("clip", "kept", "words"),
    [
        (None, True, "Try clip the gradient (clip=5)"),
        (1.0, False, "there is no checkpoint from before. Try a smaller clip"),
    ],
)
def test_the_words_for_a_loss_that_is_not_finite(tiny, tmp_path, clip, kept, words):
    if kept:
        (tmp_path / "checkpoint.pt").touch()
    error = outcome.DivergedError.at(1234, float("nan"), tiny(clip=clip), tmp_path)
    assert str(error).startswith("the loss is nan at batch 1,234 (9,872 images); ")
    assert words in str(error)
    assert (f"the last good checkpoint is in {tmp_path}" in str(error)) == kept
