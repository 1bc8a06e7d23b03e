"""The loop over stages: when one ends, and by what it is judged."""

from dataclasses import replace

from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.checkpoint import load_checkpoint
from hgru_vision.training.config import Stage
from hgru_vision.training.outcome import Measured


def test_a_stage_ends_when_it_is_learnt_and_the_next_goes_on(tiny, tmp_path, quiet, assert_same):
    stages = (
        Stage(sources=(SMALL,), images=96, promote_at=0.1),
        Stage(sources=(replace(SMALL, length=4), SMALL), shares=(2, 1), images=48),
    )
    result = quiet(tiny(stages=stages), tmp_path)
    assert [(point.stage, point.batch) for point in result.curve] == [(0, 5), (1, 10)]
    assert result.images == 8 * (5 + 6)
    assert result.alc == result.curve[1].accuracy
    stopped = tmp_path / "stopped"
    while quiet(tiny(stages=stages), stopped, resume=True, budget=0) is None:
        if load_checkpoint(stopped)["position"]["batches"] == 11:
            break
    quiet(tiny(stages=stages), stopped, resume=True)
    assert_same(tmp_path, stopped)


def test_a_stage_is_judged_by_its_own_images(tiny, tmp_path, monkeypatch, quiet):
    """The first stage is learnt; the second, at chance, is told after as many images of its own."""
    from hgru_vision.training import session

    found = iter([0.9, 0.5, 0.5, 0.5])
    monkeypatch.setattr(session, "measure", lambda *_, **__: Measured(
        correct=round(1000 * next(found)), count=1000, overlap=None))  # fmt: skip
    first = Stage(sources=(SMALL,), images=96, promote_at=0.8)
    last = Stage(sources=(SMALL,), images=160)
    config = tiny(stages=(first, last), stuck_after=80, stop_when_stuck=True)
    result = quiet(config, tmp_path)
    points = [(point.stage, point.batch, point.accuracy) for point in result.curve]
    assert points == [(0, 5, 0.9), (1, 10, 0.5), (1, 15, 0.5)]
    assert (result.outcome, result.alc) == ("stuck", 0.5)


def test_a_stage_whose_images_run_out_is_gone_on_from(tiny, tmp_path, quiet):
    stage = Stage(sources=(SMALL,), images=48, promote_at=1.0)
    result = quiet(tiny(stages=(stage, stage), learning_rate=1e-9, stuck_after=40), tmp_path)
    assert [point.stage for point in result.curve] == [0, 1]
    assert (result.images, result.outcome) == (96, "finished")


def test_masks_are_taught_to_the_maps_beside_labels(tiny, tmp_path, quiet, assert_same):
    masks = Stage(sources=(SMALL,), images=80, mask_weight=1.0)
    config = tiny(stages=(masks, Stage(sources=(SMALL,), images=48)))
    result = quiet(config, tmp_path / "whole")
    assert [(point.stage, point.batch) for point in result.curve] == [(0, 5), (0, 10), (1, 15)]
    with_masks, _, labels = (point.loss for point in result.curve)
    assert with_masks > 1.2 > 0.9 > labels  # two losses of log 2, and one
    assert (result.outcome, result.overlap) == ("finished", None)
    stopped = tmp_path / "stopped"
    seen = set()
    while quiet(config, stopped, resume=True, budget=0) is None:
        state = load_checkpoint(stopped)
        seen.add(state["position"]["stage"])
    assert seen == {0, 1}
    assert_same(tmp_path / "whole", stopped)


def test_the_commit_is_read_before_the_first_batch(tiny, tmp_path, monkeypatch, quiet):
    from hgru_vision.training import session

    seen = []
    monkeypatch.setattr(session, "commit", lambda: seen.append("commit"))
    keep = session.Session.keep
    monkeypatch.setattr(session.Session, "keep", lambda *a: seen.append("batch") or keep(*a))
    quiet(tiny(), tmp_path)
    assert seen == ["commit", *["batch"] * 12]
