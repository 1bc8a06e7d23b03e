from dataclasses import replace
from pathlib import Path

import pytest

from hgru_vision.analysis.psychophysics import Score
from hgru_vision.analysis.psychophysics_findings import falls_with_spacing
from hgru_vision.analysis.psychophysics_study import pooled, scores_of_rows, study_runs
from hgru_vision.stimuli.contours import ContourConfig
from hgru_vision.sweeps.ledger import LedgerRow, append, read_ledger
from hgru_vision.training import outcome
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.loop import train


def run(length=9, shear=0.2, **changes):
    source = Source(dataset="contours", length=length, changes={"shear": shear})
    settings = {"model": "hgru_small", "stages": (Stage(sources=(source,), images=64),)}
    return RunConfig(**settings | changes)


@pytest.fixture
def row(result):
    """Give a function that makes ledger rows of a run."""

    def make(config, accuracy=0.75, **changes):
        correct = 0 if accuracy is None else round(200 * accuracy)
        counts = {"accuracy": accuracy, "correct": correct, "test_images": 200}
        return LedgerRow(config=config, result=result(**counts | changes))

    return make


def test_a_study_has_every_condition_with_one_seed_before_the_next():
    runs = list(study_runs(seeds=(3, 4), images=640))
    assert len(runs) == len({each.hash for each in runs}) == 56
    assert [each.seed for each in runs] == [3] * 28 + [4] * 28
    made = {(each.task.length, each.task.changes["shear"]) for each in runs}
    shears = (-0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6)
    assert made == {(length, shear) for length in (5, 9, 14, 17) for shear in shears}


def test_a_study_may_have_a_recipe_of_its_own():
    def own(*, length, shear, seed, learning_rate):
        return run(length, shear, seed=seed, learning_rate=learning_rate)

    runs = list(study_runs(count=20, recipe=own, learning_rate=0.5))
    assert len(runs) == 20
    assert {each.learning_rate for each in runs} == {0.5}
    with pytest.raises(TypeError, match="the recipe own takes no images; it takes length, shear"):
        next(study_runs(recipe=own, images=3))


def test_a_ledger_becomes_scores(row):
    pathfinder = run(stages=(Stage(sources=(Source(),), images=64),))
    rows = [row(pathfinder), row(run()), row(run(5, -0.6, seed=1), 0.5)]
    rows.append(row(run(17), None, outcome="diverged", test_images=0))
    first, second = scores_of_rows(rows)
    assert first == Score(
        observer="hgru_small",
        length=9,
        spacing=ContourConfig(shear=0.2).spacing,
        proportion=0.75,
        trials=200,
    )
    assert (second.length, second.proportion) == (5, 0.5)
    assert second.spacing == ContourConfig(shear=-0.6).spacing


def test_from_trained_weights_to_scores(tmp_path, monkeypatch):
    """A network is trained, then further on two conditions; the ledger of these is scored."""
    monkeypatch.setattr(outcome, "AUDIT_IMAGES", 100)
    monkeypatch.chdir(tmp_path)  # a ledger has no absolute paths

    def small(*, length, shear, seed=0, start=None):
        changes = {"shear": shear, "canvas": 32, "cells": 8, "eccentricity": 0.5}
        source = Source(dataset="contours", length=length, changes=changes)
        return RunConfig(
            model="hgru_small",
            options={"timesteps": 2},
            stages=(Stage(sources=(source,), images=64),),
            seed=seed,
            batch=16,
            evaluate_every=4,
            evaluation_images=16,
            test_images=40,
            statistics_batches=2,
            start=start,
        )

    train(small(length=3, shear=0.0), Path("first"), progress=False)
    for shear in (-0.6, 0.6):
        config = small(length=3, shear=shear, start="first")
        result = train(config, Path(config.hash), progress=False)
        append("ledger.jsonl", LedgerRow(config=config, result=result))
    scores = scores_of_rows(read_ledger("ledger.jsonl"))
    assert [score.trials for score in scores] == [40, 40]
    assert scores[0].spacing < scores[1].spacing
    assert falls_with_spacing(scores).claim == "accuracy falls with spacing"


def test_a_ledger_without_contours_is_refused(row):
    pathfinder = run(stages=(Stage(sources=(Source(),), images=64),))
    diverged = row(run(), None, outcome="diverged", test_images=0)
    with pytest.raises(ValueError, match="the ledger has no finished run on synthetic contours"):
        scores_of_rows([row(pathfinder), diverged])


def test_conditions_of_a_study_may_have_larger_cells(row):
    larger = {"shear": 0.8, "cells": 8, "cell": 1.0, "eccentricity": 3.0}
    source = Source(dataset="contours", length=3, changes=larger)
    wide = run(stages=(Stage(sources=(source,), images=64),))
    spacings = [score.spacing for score in scores_of_rows([row(run(shear=0.0)), row(wide)])]
    assert spacings == pytest.approx([0.354, 2.059], abs=1e-3)


def test_runs_of_two_studies_are_refused(row):
    longer = replace(run(5), stages=(replace(run(5).stages[0], images=96),))
    with pytest.raises(ValueError, match="runs of hgru_small differ in images, 64 and 96: they"):
        scores_of_rows([row(run()), row(longer)])
    again = replace(run(5), stages=(replace(run(5).stages[0], unique=32),))
    with pytest.raises(ValueError, match="differ in unique, None and 32"):
        scores_of_rows([row(run()), row(again)])
    faster = run(5, learning_rate=0.1)
    with pytest.raises(ValueError, match=r"differ in learning_rate, 0\.001 and 0\.1"):
        scores_of_rows([row(run()), row(faster)])
    assert len(scores_of_rows([row(run()), row(replace(faster, model="hgru"))])) == 2


def test_conditions_may_have_been_shown_before(row):
    def shown(length, images=32):
        (stage,) = run(length).stages
        return run(length, stages=(replace(stage, images=images, mask_weight=1.0), stage))

    masks = replace(run(9), stages=(replace(run(9).stages[0], mask_weight=1.0),))
    with pytest.raises(ValueError, match=r"differ in mask_weight, 0\.0 and 1\.0"):
        scores_of_rows([row(run(5)), row(masks)])
    assert len(scores_of_rows([row(shown(5)), row(shown(9))])) == 2
    with pytest.raises(ValueError, match="differ in earlier stages"):
        scores_of_rows([row(shown(5)), row(shown(9, images=64))])
    with pytest.raises(ValueError, match="differ in earlier stages"):
        scores_of_rows([row(shown(5)), row(run(9))])


def test_runs_of_a_condition_are_pooled():
    def score(proportion, trials=100, length=9):
        return Score(observer="a", length=length, spacing=0.3, proportion=proportion, trials=trials)

    found = pooled([score(0.5), score(0.9, length=5), score(0.9, trials=300)])
    assert found[0].proportion == pytest.approx(0.8)
    assert found == [score(found[0].proportion, trials=400), score(0.9, length=5)]
    (unknown,) = pooled([score(0.5, trials=None), score(0.7)])
    assert unknown.proportion == pytest.approx(0.6)
    assert unknown.trials is None
