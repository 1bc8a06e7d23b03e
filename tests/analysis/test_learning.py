import math

import pytest

from hgru_vision.analysis.learning import best_of, failure_rate, mean_and_sd, name_of_alc
from hgru_vision.training.result import Result


def run(accuracy, alc=None):
    return Result(
        outcome="diverged" if accuracy is None else "finished",
        accuracy=accuracy,
        correct=0 if accuracy is None else round(accuracy * 1000),
        test_images=0 if accuracy is None else 1000,
        alc=alc,
        stuck=False,
        curve=(),
        images=1,
        seconds=1.0,
        images_per_second=1.0,
        waiting=0.0,
        peak_memory=0,
        parameters=1,
        device="cpu",
        versions={},
    )


def test_accuracy_and_alc_come_from_the_most_accurate_run():
    runs = [run(0.90, 0.8), run(0.97, 0.6), run(None), run(0.95, 0.9), run(0.97, 0.7)]
    best = best_of(runs)
    assert (best.accuracy, best.alc) == (0.97, 0.6)  # neither the highest ALC, nor the later equal


def test_the_best_of_five_does_not_look_at_a_sixth():
    runs = [run(0.5)] * 5 + [run(0.99)]
    assert best_of(runs).accuracy == 0.5
    assert best_of(runs, n=6).accuracy == 0.99
    assert best_of(runs[:2]).accuracy == 0.5


def test_the_best_of_none():
    assert best_of([run(None), run(None)]) is None
    assert best_of([]) is None
    with pytest.raises(ValueError, match="n must be 1 or more; got 0"):
        best_of([], n=0)


def test_mean_and_deviation():
    assert mean_and_sd([0.5, 0.7]) == (pytest.approx(0.6), pytest.approx(0.02**0.5))
    mean, sd = mean_and_sd([0.5])
    assert mean == 0.5 and math.isnan(sd)
    with pytest.raises(ValueError, match="there is no value to take the mean of"):
        mean_and_sd([])


def test_failures_are_runs_below_the_bound_or_diverged():
    rate = failure_rate([run(0.5), run(0.75), run(0.9), run(None)], bound=0.75)
    assert (rate.failed, rate.runs, rate.share) == (2, 4, 0.5)
    # Wilson's interval of 2 in 4, by hand: (0.5 + z^2/8 -+ z sqrt(1/16 + z^2/64)) / (1 + z^2/4).
    assert (rate.low, rate.high) == (pytest.approx(0.1500, abs=1e-4), pytest.approx(0.85, abs=1e-4))


def test_failures_of_nothing_are_refused():
    with pytest.raises(ValueError, match="there is no run to count failures of"):
        failure_rate([], bound=0.75)
    with pytest.raises(ValueError, match="bound must be from 0 to 1; got 75"):
        failure_rate([run(0.5)], bound=75)


def test_one_run_of_several_stages_is_enough_to_name_the_stage(row):
    assert name_of_alc([row().config]) == "ALC"
    assert name_of_alc([row().config, row(stages=2).config]) == "ALC (last stage)"
