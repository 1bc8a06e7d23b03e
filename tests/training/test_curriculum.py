from dataclasses import dataclass, replace

import numpy as np
import pytest

from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.curriculum import at_chance, stuck_message, stuck_share
from hgru_vision.training.result import Point, Result

CONFIG = RunConfig(
    model="hgru", stages=(Stage(sources=(Source(),), images=64_000),), evaluation_images=1000
)


def points(*accuracies):
    return [
        Point(stage=0, batch=i, images=32 * i, loss=0.693, accuracy=accuracy, seconds=1.0)
        for i, accuracy in enumerate(accuracies, 1)
    ]


@dataclass
class Row:
    config: RunConfig
    result: Result


def row(config=CONFIG, *, stuck=False, outcome="finished"):
    result = Result(
        outcome=outcome, accuracy=0.5, correct=1, test_images=2, alc=None, stuck=stuck, curve=(),
        images=1, seconds=1.0, images_per_second=1.0, waiting=0.0, peak_memory=1, parameters=1,
        device="cpu", versions={},
    )  # fmt: skip
    return Row(config, result)


def test_guessing_is_rarely_taken_for_learning():
    draw = np.random.default_rng(0)
    runs = draw.binomial(1000, 0.5, size=(2000, 20)) / 1000
    learnt = [not at_chance(points(*run), 1000) for run in runs]
    assert np.mean(learnt) <= 0.003
    assert not at_chance(points(0.5, 0.6), 1000)
    assert not at_chance([], 1000)


def test_runs_alike_but_for_their_seeds_are_counted():
    rows = [
        row(stuck=True),
        row(replace(CONFIG, seed=1, recipe="other", stuck_after=1)),
        row(replace(CONFIG, data_seed=2), stuck=True),
        row(replace(CONFIG, model="gru"), stuck=True),
        row(replace(CONFIG, clip=5.0), stuck=True),
        row(stuck=True, outcome="diverged"),
    ]
    assert stuck_share(rows, CONFIG) == (2, 3)
    ended_early = row(replace(CONFIG, seed=5, stop_when_stuck=True, stuck_after=1), stuck=True,
                      outcome="stuck")  # fmt: skip
    assert stuck_share([*rows, ended_early], CONFIG) == (3, 4)
    assert stuck_share([], CONFIG) == (0, 0)


def test_the_message_tells_how_usual_it_is_and_what_to_try():
    text = stuck_message(CONFIG, points(0.51, 0.49), [row(stuck=True), row()], seen=64)
    assert "At chance after 64 images: loss 0.693, best accuracy 51.0% on 1,000" in text
    assert "Of the runs like it in the ledger 1 of 2 ended there." in text
    assert "a curriculum of shorter paths before length 14: hgru train curriculum" in text
    assert "another --seed" in text
    assert "--set full_rate_inputs=1875 in another folder" in text
    slower = replace(CONFIG, full_rate_inputs=1_875)
    assert "full_rate_inputs" not in stuck_message(slower, points(0.5), [], seen=64)


def test_the_message_advises_another_readout_where_there_is_one():
    text = stuck_message(CONFIG, points(0.5), [], seen=64, can_pool_first=True)
    first, second = text.index("full_rate_inputs=1875"), text.index("options.pool_first=true in")
    assert first < second < text.index("another --seed")
    assert "pool_first" not in stuck_message(CONFIG, points(0.5), [], seen=64)


def test_the_message_tells_the_cause_where_it_can_be_seen():
    causes = {
        None: "",
        "background": "Its readout has turned to the background: the strongest pixels are the same",
        "self-excited": "Its activity feeds itself: it is as strong where an image is empty",
        "silent": "What reaches its readout hardly differs from place to place or from image to",
    }
    for cause, words in causes.items():
        text = stuck_message(CONFIG, points(0.5), [], seen=64, cause=cause)
        assert words in text
        assert sum(other in text for other in causes.values() if other) == bool(words)
        assert ("go on:" in text) is (cause is None)  # which helps nobody whose cause is known


def test_the_message_of_a_run_that_ends_says_so_and_names_the_stage():
    stages = (Stage(sources=(Source(length=6),), images=64), *CONFIG.stages)
    config = replace(CONFIG, stages=stages, stuck_after=64, stop_when_stuck=True)
    text = stuck_message(config, points(0.51, 0.49), [], seen=32)
    assert "At chance after 32 images of stage 1 of 2: loss 0.693" in text
    assert "The ledger has no run like it" in text
    assert "The run ends here (stop_when_stuck)." in text
    assert "--set stop_when_stuck=false in another folder" in text
    assert "go on:" not in text


@pytest.mark.parametrize(
    ("source", "stages"), [(Source(path="files"), 1), (Source(), 2), (Source(length=5), 1)]
)
def test_no_curriculum_is_advised_where_there_is_one_or_none_can_be(source, stages):
    stage = Stage(sources=(source,), images=64)
    text = stuck_message(replace(CONFIG, stages=(stage,) * stages), points(0.5), [], seen=64)
    assert "hgru train curriculum" not in text
