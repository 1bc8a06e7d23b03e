import math
import re

import numpy as np
import pytest

from hgru_vision.analysis.psychometric import Psychometric, fit_psychometric

LEVELS = np.linspace(0.2, 0.7, 7)


def answers(curve, trials, seed=0):
    """Right answers of an observer with this psychometric function."""
    return np.random.default_rng(seed).binomial(trials, curve(LEVELS))


@pytest.mark.parametrize("shape", ["logistic", "weibull"])
@pytest.mark.parametrize("falling", [True, False])
def test_the_observer_is_recovered(shape, falling):
    truth = Psychometric(threshold=0.4, slope=6.0, lapse=0.04, shape=shape, falling=falling)
    trials = np.full(7, 4000)
    fit = fit_psychometric(LEVELS, answers(truth, trials), trials, shape=shape, falling=falling)
    assert fit.curve.threshold == pytest.approx(0.4, abs=0.01)
    assert fit.curve.slope == pytest.approx(6, rel=0.15)
    assert fit.curve.lapse == pytest.approx(0.04, abs=0.015)
    assert fit.threshold_interval[0] < fit.curve.threshold < fit.threshold_interval[1]
    assert fit.slope_interval[0] < fit.curve.slope < fit.slope_interval[1]
    assert fit.threshold_interval[1] - fit.threshold_interval[0] < 0.03
    assert 0 <= fit.deviance < 15  # four degrees of freedom
    assert (fit.levels, fit.trials) == (7, 28_000)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["logistic", "weibull"])
def test_intervals_cover_the_truth_as_often_as_they_say(shape):
    truth = Psychometric(threshold=0.4, slope=6.0, lapse=0.02, shape=shape, falling=True)
    trials, covered = np.full(7, 200), np.zeros(2)
    for seed in range(150):
        right = answers(truth, trials, seed)
        fit = fit_psychometric(LEVELS, right, trials, shape=shape, falling=True)
        for place, (low, high), value in (
            (0, fit.threshold_interval, 0.4),
            (1, fit.slope_interval, 6.0),
        ):
            covered[place] += low <= value <= high
    assert (covered >= 0.90 * 150).all()  # 95 % less three standard errors, rounded


@pytest.mark.parametrize("shape", ["logistic", "weibull"])
def test_threshold_and_slope_mean_the_same_for_every_shape(shape):
    curve = Psychometric(threshold=0.4, slope=3.0, lapse=0.1, guess=0.5, shape=shape)
    assert curve(0.4) == pytest.approx(0.5 + 0.4 / 2)
    derivative = (curve(0.4 + 1e-6) - curve(0.4 - 1e-6)) / 2e-6
    assert derivative == pytest.approx(0.4 * 3.0, rel=1e-5)
    falling = Psychometric(threshold=0.4, slope=3.0, shape=shape, falling=True)
    rising = Psychometric(threshold=0.4, slope=3.0, shape=shape)
    np.testing.assert_allclose(falling(LEVELS) - 0.5, 1 - rising(LEVELS))


def test_a_weibull_begins_at_level_0():
    rising = Psychometric(threshold=0.4, slope=3.0, lapse=0.02, shape="weibull")
    falling = Psychometric(threshold=0.4, slope=3.0, lapse=0.02, shape="weibull", falling=True)
    assert (rising(0), falling(0)) == (0.5, pytest.approx(0.98))


def test_a_curve_may_be_a_step():
    steep = Psychometric(threshold=0.4, slope=1e4, shape="weibull")
    np.testing.assert_allclose(steep([0.2, 0.7]), [0.5, 1.0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slope": -3.0}, "slope must be above 0; got -3 (falling=True lets accuracy fall)"),
        ({"slope": math.nan}, "slope must be above 0; got nan"),
        ({"shape": "probit"}, "shape must be logistic or weibull; got 'probit'"),
        ({"lapse": 0.5}, "lapse must be from 0 to below 1 - guess = 0.5; got 0.5"),
        ({"guess": -0.1}, "guess must be from 0 to below 1; got -0.1"),
        (
            {"threshold": 0.0, "shape": "weibull"},
            "threshold must be above 0 for the weibull shape; got 0",
        ),
    ],
)
def test_what_is_no_curve_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        Psychometric(**{"threshold": 0.4, "slope": 3.0} | changes)


def test_more_trials_say_more():
    truth = Psychometric(threshold=0.4, slope=6.0)
    widths = []
    for trials in (100, 10_000):
        right = np.round(trials * truth(LEVELS))
        low, high = fit_psychometric(LEVELS, right, np.full(7, trials)).threshold_interval
        widths.append(high - low)
    assert widths[0] / widths[1] == pytest.approx(10, rel=0.4)


@pytest.mark.parametrize(("confidence", "deviations"), [(0.95, 1.960), (0.5, 0.6745)])
def test_intervals_are_those_of_a_logistic_regression(confidence, deviations):
    """Without guesses and lapses the curve is one, whose errors Fisher's information tells."""
    truth, trials = Psychometric(threshold=0.45, slope=3.0, guess=0), np.full(7, 20_000)
    fit = fit_psychometric(
        LEVELS, trials * truth(LEVELS), trials, guess=0, largest_lapse=0, confidence=confidence
    )
    steepness, away = 4 * 3.0, LEVELS - 0.45
    by_parameter = np.stack([np.full(7, -steepness), 4 * away])  # of the logit
    weight = trials * truth(LEVELS) * (1 - truth(LEVELS))
    errors = np.sqrt(np.diag(np.linalg.inv(by_parameter * weight @ by_parameter.T)))
    for (low, high), error in zip(
        (fit.threshold_interval, fit.slope_interval), errors, strict=True
    ):
        assert high - low == pytest.approx(2 * deviations * error, rel=0.02)


def test_the_deviance_is_that_of_free_accuracies():
    right, trials = np.array([52, 55, 70, 60, 90, 97, 99]), np.full(7, 100)
    fit = fit_psychometric(LEVELS, right, trials)
    share = fit.curve(LEVELS)
    by_hand = right * np.log(right / trials / share)
    by_hand += (trials - right) * np.log((1 - right / trials) / (1 - share))
    assert fit.deviance == pytest.approx(2 * by_hand.sum())


@pytest.mark.parametrize("shape", ["logistic", "weibull"])
@pytest.mark.parametrize(
    ("threshold", "slope"), [(0.13, 4.0), (0.95, 3.0), (0.45, 0.08), (0.45, 100.0)]
)
def test_thresholds_outside_the_levels_and_slopes_of_any_kind_are_found(shape, threshold, slope):
    truth = Psychometric(threshold=threshold, slope=slope, shape=shape)
    trials = np.full(7, 10**7)
    fit = fit_psychometric(
        LEVELS, trials * truth(LEVELS), trials, shape=shape, largest_lapse=0, confidence=None
    )
    np.testing.assert_allclose(fit.curve(LEVELS), truth(LEVELS), atol=2e-3)
    if slope < 100:  # a step between two levels may lie anywhere between them
        assert fit.curve.threshold == pytest.approx(threshold, rel=0.03)
        assert fit.curve.slope == pytest.approx(slope, rel=0.03)


def test_guesses_are_taken_as_they_are_said_to_be():
    truth = Psychometric(threshold=0.4, slope=6.0, lapse=0.02, guess=0.25)
    trials = np.full(7, 100_000)
    fit = fit_psychometric(LEVELS, trials * truth(LEVELS), trials, guess=0.25, confidence=None)
    assert fit.curve.guess == 0.25
    np.testing.assert_allclose(fit.curve(LEVELS), truth(LEVELS), atol=1e-3)
    assert fit.curve.threshold == pytest.approx(0.4, rel=0.01)


def test_a_lapse_is_a_tenth_at_most():
    truth = Psychometric(threshold=0.4, slope=6.0, lapse=0.3)
    trials = np.full(7, 1000)
    fit = fit_psychometric(LEVELS, 1000 * truth(LEVELS), trials, confidence=None)
    assert fit.curve.lapse == pytest.approx(0.1)


def test_a_lapse_of_zero_can_be_asked_for():
    truth = Psychometric(threshold=0.4, slope=6.0, lapse=0.05)
    trials = np.full(7, 500)
    fit = fit_psychometric(LEVELS, answers(truth, trials), trials, largest_lapse=0)
    assert fit.curve.lapse == 0


def test_what_is_always_right_bounds_the_threshold_on_one_side_only():
    trials = np.full(7, 200)
    fit = fit_psychometric(LEVELS, trials, trials)
    assert fit.threshold_interval[0] == -math.inf
    assert fit.threshold_interval[1] < 0.25
    assert fit.slope_interval[1] == math.inf


def test_what_is_at_chance_bounds_it_on_the_other():
    trials = np.full(7, 2000)
    fit = fit_psychometric(LEVELS, trials // 2, trials)
    assert fit.threshold_interval[0] > 0.6
    assert fit.threshold_interval[1] == math.inf


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"correct": [1, 2]}, "must have one entry a condition; got shapes [(3,), (2,), (3,)]"),
        ({"level": [1, 1, 2]}, "need 3 distinct levels or more; got 2"),
        ({"level": [1, 2, math.inf]}, "level[2] must be a number; got inf"),
        (
            {"level": [0, 1, 2], "shape": "weibull"},
            "level[0] must be a number above 0 for the weibull shape; got 0",
        ),
        ({"trials": [9, 0, 9]}, "trials[1] must be 1 or more; got 0"),
        ({"correct": [1, 2, 12]}, "correct[2] must be from 0 to its 9 trials; got 12"),
        ({"correct": [0.5, 0.6, 0.9]}, "correct are numbers of answers, no shares; got 0.9"),
        ({"shape": "probit"}, "shape must be logistic or weibull; got 'probit'"),
        ({"guess": 1}, "guess must be from 0 to below 1; got 1"),
        ({"largest_lapse": 0.5}, "largest_lapse must be from 0 to below 1 - guess = 0.5; got 0.5"),
        ({"confidence": 95}, "confidence must be between 0 and 1; got 95"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    arguments = {"level": [1, 2, 3], "correct": [5, 6, 9], "trials": [9, 9, 9]} | changes
    with pytest.raises(ValueError, match=re.escape(message)):
        fit_psychometric(**arguments)


@pytest.mark.parametrize("shape", ["logistic", "weibull"])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_slope_that_the_data_do_not_bound_may_be_anything(shape, share):
    levels, trials = np.linspace(0.2, 0.5, 7), np.full(7, 200)
    fit = fit_psychometric(levels, share * trials, trials, shape=shape, falling=True)
    assert not all(map(math.isfinite, fit.threshold_interval))
    assert fit.slope_interval[0] == 0


def test_entries_of_one_level_count_together():
    levels, trials = np.array([0.2, 0.3, 0.4, 0.5]), np.full(4, 100)
    right = np.array([95, 85, 65, 52])
    once = fit_psychometric(levels, right, trials, falling=True)
    twice = fit_psychometric(
        np.tile(levels, 2), np.concatenate([right + 3, right - 3]), np.tile(trials, 2), falling=True
    )
    assert (once.levels, twice.levels, twice.trials) == (4, 4, 800)
    assert twice.curve.threshold == pytest.approx(once.curve.threshold, abs=1e-3)
    assert twice.deviance == pytest.approx(2 * once.deviance, abs=0.05)


def test_without_a_confidence_nothing_is_bounded():
    right, trials = np.array([95, 85, 65, 52]), np.full(4, 100)
    fit = fit_psychometric([0.2, 0.3, 0.4, 0.5], right, trials, falling=True, confidence=None)
    assert fit.threshold_interval == (-np.inf, np.inf)
    assert fit.slope_interval == (0, np.inf)
