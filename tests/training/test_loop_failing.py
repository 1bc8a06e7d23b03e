"""The loop when a run diverges or stays at chance."""

import json

import pytest
import torch

from hgru_vision.circuits.equilibrium import NotFiniteError
from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.checkpoint import load_checkpoint
from hgru_vision.training.config import Stage
from hgru_vision.training.display import Display
from hgru_vision.training.loop import DivergedError, train
from hgru_vision.training.result import Result
from hgru_vision.training.session import Session


def test_a_loss_that_is_not_finite_stops_the_run(tiny, tmp_path, quiet):
    config = tiny(learning_rate=1e30, clip=None, checkpoint_every=1)
    with pytest.raises(DivergedError) as error:
        quiet(config, tmp_path)
    text = str(error.value)
    assert "the loss is nan at batch" in text
    assert "Try clip the gradient (clip=5), a smaller learning_rate or another seed" in text
    result = Result.from_json(json.loads((tmp_path / "result.json").read_text()))
    assert (result.outcome, result.accuracy, result.test_images) == ("diverged", None, 0)
    assert 0 < result.images_per_second < 1e6  # the time of batches since the last count counts
    if (tmp_path / "checkpoint.pt").exists():
        kept = load_checkpoint(tmp_path)["network"]
        assert all(value.isfinite().all() for value in kept.values())
    with pytest.raises(DivergedError):  # it is not taken for finished
        quiet(config, tmp_path, resume=True)


@pytest.mark.filterwarnings("ignore::hgru_vision.circuits.EquilibriumWarning")
def test_a_circuit_that_sees_itself_diverge_has_a_result_too(tiny, tmp_path, quiet):
    changes = {"model": "hgru_crbp", "options": {"steps": 4}, "learning_rate": 1e30, "clip": None}
    with pytest.raises(DivergedError, match="the loss is nan at batch"):
        quiet(tiny(**changes), tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["outcome"] == "diverged"


@pytest.mark.parametrize("evaluate_every", [1, 1000])
def test_one_that_sees_it_in_an_evaluation_has_a_result_too(
    tiny, tmp_path, quiet, monkeypatch, evaluate_every
):
    """On the way, or at the end."""

    def measure(*arguments, **keywords):
        raise NotFiniteError("the state is no finite number")

    monkeypatch.setattr("hgru_vision.training.session.measure", measure)
    with pytest.raises(DivergedError, match="the loss is nan at batch"):
        quiet(tiny(evaluate_every=evaluate_every), tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["outcome"] == "diverged"


def test_losses_after_the_last_evaluation_of_a_stage_are_looked_at(
    tiny, tmp_path, quiet, monkeypatch
):
    """On a GPU nothing else looks at them."""
    next_stage = Session.next_stage

    def lost(session):
        session.losses[1] = torch.nan
        next_stage(session)

    monkeypatch.setattr(Session, "next_stage", lost)
    stage = Stage(sources=(SMALL,), images=96)
    with pytest.raises(DivergedError, match="the loss is nan at batch 12 "):
        quiet(tiny(stages=(stage, stage)), tmp_path)


def test_a_checkpoint_without_a_configuration_is_a_run_too(tiny, tmp_path, quiet):
    assert quiet(tiny(), tmp_path, budget=0) is None
    (tmp_path / "config.json").unlink()
    with pytest.raises(
        FileExistsError, match="holds a run; resume it \\(--resume\\), or give another folder"
    ):
        quiet(tiny(), tmp_path)


def test_what_promotions_left_out_is_not_counted_after_a_resume(tiny, tmp_path, monkeypatch, quiet):
    shown = []

    class Seen(Display):
        def __init__(self, *given, **keywords):
            super().__init__(*given, **keywords)
            shown.append(self)

    monkeypatch.setattr("hgru_vision.training.loop.Display", Seen)
    stages = (
        Stage(sources=(SMALL,), images=960, promote_at=0.01),
        Stage(sources=(SMALL,), images=96),
    )
    config = tiny(stages=stages)
    for _ in range(7):
        assert quiet(config, tmp_path, budget=0, resume=True) is None
    result = quiet(config, tmp_path, resume=True)
    assert shown[-1]._bar.tasks[0].total == result.images == 136


def test_the_batch_that_went_wrong_is_named_and_the_checkpoint_before_it_kept(
    tiny, tmp_path, monkeypatch, quiet
):
    keep = Session.keep

    def spoil(session, loss):
        keep(session, loss * float("inf") if session.position.batches == 6 else loss)

    monkeypatch.setattr(Session, "keep", spoil)
    with pytest.raises(DivergedError, match=r"the loss is inf at batch 7 \(56 images\)"):
        quiet(tiny(), tmp_path)
    assert load_checkpoint(tmp_path)["position"]["batches"] == 4


@pytest.mark.parametrize("pool_first", [False, True])
def test_stuck_is_told_once_with_what_to_try(tiny, tmp_path, capsys, pool_first):
    options = {"timesteps": 2, "pool_first": pool_first}
    config = tiny(learning_rate=1e-9, stuck_after=40, evaluation_images=64, options=options)
    result = train(config, tmp_path, device="cpu")
    text = " ".join(capsys.readouterr().err.split())
    assert text.count("At chance after 40 images: loss") == 1
    assert "The ledger has no run like it" in text
    assert "another --seed" in text
    assert ("options.pool_first=true" in text) is not pool_first  # which it is for then
    assert (result.stuck, result.outcome) == (True, "finished")
    assert len(result.curve) == 2


def test_each_stage_is_told_of_that_stays_at_chance(tiny, tmp_path, capsys):
    stages = (Stage(sources=(SMALL,), images=40),) * 2
    config = tiny(stages=stages, learning_rate=1e-9, stuck_after=40, evaluation_images=64)
    assert train(config, tmp_path, device="cpu").outcome == "finished"
    text = " ".join(capsys.readouterr().err.split())
    for number in (1, 2):
        assert text.count(f"At chance after 40 images of stage {number} of 2: loss") == 1


@pytest.mark.parametrize(("cause", "times"), [("self-excited", 1), ("background", 0), (None, 0)])
def test_activity_that_feeds_itself_is_told_at_once(
    tiny, tmp_path, capsys, monkeypatch, cause, times
):
    monkeypatch.setattr("hgru_vision.training.session.find_cause", lambda *_: cause)
    result = train(tiny(learning_rate=1e-9, evaluation_images=64), tmp_path, device="cpu")
    text = " ".join(capsys.readouterr().err.split())
    assert len(result.curve) == 2
    assert text.count("At chance so far. Its activity feeds itself: it is as strong") == times
    assert "What to try" not in text


def test_a_stuck_run_stops_if_it_is_told_to_and_is_over(tiny, tmp_path, quiet):
    stage = Stage(sources=(SMALL,), images=96, promote_at=0.94)
    config = tiny(
        stages=(stage, stage),
        learning_rate=1e-9,
        stuck_after=40,
        stop_when_stuck=True,
        evaluation_images=64,
    )
    result = quiet(config, tmp_path)
    assert (result.images, result.stuck, result.outcome) == (40, True, "stuck")
    assert result.accuracy == result.correct / 40
    assert result.alc is None  # it never came to its last stage
    assert quiet(config, tmp_path, resume=True) == result
