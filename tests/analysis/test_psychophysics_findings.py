import io

import numpy as np
import pytest
from rich.console import Console

from hgru_vision.analysis import psychophysics_findings
from hgru_vision.analysis.psychometric import Psychometric
from hgru_vision.analysis.psychophysics import Score
from hgru_vision.analysis.psychophysics_findings import (
    at_chance_when_wide,
    falls_with_spacing,
    findings,
    findings_table,
    rises_with_length,
)

SPACINGS = (0.27, 0.29, 0.32, 0.35, 0.39, 0.43, 0.47)
LENGTHS = (5, 9, 14, 17)
HUMAN = Psychometric(threshold=0.4, slope=5.0, lapse=0.02, falling=True)


def observer(accuracy, trials=400, seed=0, spacings=SPACINGS, lengths=LENGTHS, runs=1, spread=0.0):
    """Answer at random, right with probability `accuracy(length, spacing)`.

    Runs of a condition differ by a normal of standard deviation `spread`.
    """
    random = np.random.default_rng(seed)
    scores = []
    for length in lengths:
        for spacing in spacings:
            for _ in range(runs):
                share = np.clip(accuracy(length, spacing) + spread * random.normal(), 0, 1)
                proportion = random.binomial(trials, share) / trials
                scores.append(
                    Score(
                        observer="made up",
                        length=length,
                        spacing=spacing,
                        proportion=proportion,
                        trials=trials,
                    )
                )
    return scores


def like_people(length, spacing):
    """Falls with spacing to chance, later for longer contours."""
    return float(HUMAN(spacing - 0.01 * (length - 9)))


def flat(length, spacing):
    return 0.8


def upside_down(length, spacing):
    return 1.5 - like_people(length, spacing)


def with_a_bump(length, spacing):
    return like_people(length, spacing) + (0.2 if 0.38 < spacing < 0.4 else 0.0)


def test_an_observer_like_people_has_both_trends():
    fall, rise, wide = findings(observer(like_people))
    assert fall.verdict == rise.verdict == "holds"
    assert fall.claim == "accuracy falls with spacing"
    assert fall.statistics["trend_z"] < -10 < 10 < rise.statistics["trend_z"]
    assert fall.statistics["departure_p"] > 0.05
    assert fall.reason.startswith("p < 1e-12; from end to end -")
    assert fall.statistics["change_low"] < fall.statistics["change"] < -0.2
    assert wide.verdict == "undecided"
    assert wide.reason == "no condition is as wide; the widest is 0.47 degrees"


@pytest.mark.parametrize(
    ("accuracy", "reason"),
    [
        (flat, "it changes by less than 5%"),
        (upside_down, "it {wrong} in places"),
        (with_a_bump, "it {wrong} in places"),
    ],
)
def test_observers_that_do_not_fall_with_spacing(accuracy, reason):
    found = falls_with_spacing(observer(accuracy))
    assert found.verdict == "fails"
    assert found.reason.startswith(reason.format(wrong="rises"))


def test_observers_that_do_not_rise_with_length():
    found = rises_with_length(observer(flat))
    assert (found.verdict, found.reason[:27]) == ("fails", "it changes by less than 5%;")
    found = rises_with_length(observer(upside_down))
    assert (found.verdict, found.reason[:20]) == ("fails", "it falls in places (")


def test_a_weak_trend_the_other_way_is_no_departure_and_yet_fails():
    """Each curve rises too little to be told from a flat one; all together do not."""
    scores = [
        Score(observer="a", length=length, spacing=spacing, proportion=0.5 + lift, trials=200)
        for length in LENGTHS
        for spacing, lift in ((0.3, 0.0), (0.4, 0.04))
    ]
    found = falls_with_spacing(scores, alpha=0.08)
    assert found.statistics["trend_p"] > 0.92
    assert found.verdict == "fails"


def test_few_trials_decide_nothing():
    found = falls_with_spacing(observer(flat, trials=10))
    assert found.verdict == "undecided"
    assert "yet none excluded" in found.reason


def test_one_spacing_or_one_length_decides_nothing():
    found = falls_with_spacing(observer(flat, spacings=(0.3,)))
    assert (found.verdict, found.statistics) == ("undecided", {})
    assert found.reason == "no length has scores at two spacings or more"
    found = rises_with_length(observer(flat, lengths=(9,)))
    assert found.reason == "no spacing has scores at two lengths or more"


def test_perfect_scores_do_not_change():
    found = falls_with_spacing(observer(lambda length, spacing: 1.0))
    assert found.verdict == "fails"
    assert found.statistics["trend_z"] == 0
    assert found.statistics["departure_p"] == 1


def test_what_repeated_runs_differ_by_is_allowed_for():
    """Noise of training looks like a rise where a condition has one run, not where it has 5."""
    once = observer(like_people, trials=10_000, spread=0.03, seed=1)
    again = observer(like_people, trials=10_000, spread=0.03, seed=1, runs=5)
    assert falls_with_spacing(once).verdict == "fails"
    apart = falls_with_spacing(once, trained_apart=True)
    assert (apart.verdict, apart.statistics["repeated"]) == ("undecided", 0)
    assert apart.reason.endswith("too few runs a condition to know what trainings differ by")
    assert rises_with_length(again, trained_apart=True).verdict == "holds"
    found = falls_with_spacing(again)
    assert found.statistics["dispersion"] > 10
    assert found.verdict == "holds"


def at_one_length(*conditions):
    """Give a score for each (spacing, right answers, trials)."""
    return [
        Score(observer="a", length=9, spacing=x, proportion=right / trials, trials=trials)
        for x, right, trials in conditions
    ]


def test_the_trend_is_that_of_cochran_and_armitage():
    level, right, trials = np.array([[0.3, 90, 100], [0.4, 150, 200], [0.5, 30, 50]]).T
    share, mean = right.sum() / trials.sum(), np.average(level, weights=trials)
    by_hand = np.sum(trials * (right / trials - share) * (level - mean))
    by_hand /= np.sqrt(share * (1 - share) * np.sum(trials * (level - mean) ** 2))
    found = falls_with_spacing(at_one_length((0.3, 90, 100), (0.4, 150, 200), (0.5, 30, 50)))
    assert found.statistics["trend_z"] == pytest.approx(by_hand)
    assert found.statistics["change"] == pytest.approx(-0.3)


def test_repeated_runs_widen_everything_by_what_they_differ_by():
    apart = ((0.3, 80, 100), (0.3, 90, 100), (0.5, 60, 100), (0.5, 70, 100))
    alike = ((0.3, 85, 100), (0.3, 85, 100), (0.5, 65, 100), (0.5, 65, 100))
    wide, narrow = (falls_with_spacing(at_one_length(*runs)).statistics for runs in (apart, alike))
    dispersion = (2 * 0.25 / (0.85 * 0.15) + 2 * 0.25 / (0.65 * 0.35)) / 2
    assert (wide["dispersion"], narrow["dispersion"]) == (pytest.approx(dispersion), 1)
    assert wide["repeated"] == narrow["repeated"] == 2
    assert wide["trend_z"] == pytest.approx(narrow["trend_z"] / np.sqrt(dispersion))
    first, last = 171 / 202, 131 / 202  # with a success and a failure added
    error = np.sqrt((first * (1 - first) + last * (1 - last)) / 202)
    for found, times in ((wide, np.sqrt(dispersion)), (narrow, 1)):
        assert found["change_low"] == pytest.approx(last - first - 1.96 * times * error, abs=1e-4)
        assert found["change_high"] == pytest.approx(last - first + 1.96 * times * error, abs=1e-4)


def test_a_departure_is_judged_by_what_runs_differ_by():
    alike = ((0.3, 65, 100), (0.3, 65, 100), (0.5, 85, 100), (0.5, 85, 100))
    apart = ((0.3, 50, 100), (0.3, 80, 100), (0.5, 75, 100), (0.5, 95, 100))
    sure, unsure = (
        falls_with_spacing(at_one_length(*runs)).statistics["departure_p"]
        for runs in (alike, apart)
    )
    assert sure < 0.01 < 0.05 < unsure


def test_the_nearest_curve_that_never_rises_weighs_trials():
    fitted = psychophysics_findings._monotone(np.array([8.0, 900]), np.array([10.0, 1000]), False)
    np.testing.assert_allclose(fitted, 908 / 1010)


def test_few_repetitions_leave_the_trend_to_answers():
    once = observer(like_people)
    repeated = once + observer(like_people, spacings=SPACINGS[:2], seed=1)  # 8 of 28 conditions
    by_answers, by_runs = (
        rises_with_length(repeated, trained_apart=apart).statistics for apart in (False, True)
    )
    assert by_runs["repeated"] == 8
    assert by_runs["trend_z"] == by_answers["trend_z"]


def test_all_findings_are_told_that_runs_were_trained_apart():
    scores = observer(like_people, runs=3, spread=0.05, spacings=SPACINGS[::3])
    fall, rise, _ = findings(scores, trained_apart=True)
    assert fall == falls_with_spacing(scores, trained_apart=True) != falls_with_spacing(scores)
    assert rise == rises_with_length(scores, trained_apart=True) != rises_with_length(scores)
    out = io.StringIO()
    Console(file=out, width=200).print(findings_table(scores, trained_apart=True))
    assert fall.reason in out.getvalue() and rise.reason in out.getvalue()


def test_spacings_off_a_figure_are_one_panel():
    conditions = ((5, 0.352, 0.6), (9, 0.354, 0.75), (14, 0.353, 0.9))
    scores = [
        Score(observer="a", length=length, spacing=spacing, proportion=share, trials=500)
        for length, spacing, share in conditions
    ]
    assert rises_with_length(scores).verdict == "holds"


def by_luck(length, spacing):
    """What some conditions are learnt by, and differently at every length."""
    return 0.75 if length > 9 else 0.98


def test_runs_are_counted_not_answers():
    """Where runs of some lengths differ by far more than those of others, the mean is no guide."""

    def trainings(seed):
        near = observer(by_luck, 2_000, seed, lengths=(5, 9), runs=3, spread=0.005)
        return near + observer(by_luck, 2_000, seed, lengths=(14, 17), runs=3, spread=0.2)

    seeds = range(60)
    found = [falls_with_spacing(trainings(seed), trained_apart=True) for seed in seeds]
    assert sum(each.statistics["trend_p"] < 0.05 for each in found) <= 8  # 3 are expected
    assert np.std([each.statistics["trend_z"] for each in found]) < 1.25  # by answers 1.5
    found = falls_with_spacing(observer(like_people, runs=3, spread=0.03), trained_apart=True)
    assert found.statistics["trend_p"] == pytest.approx(1e-4)  # as small as it can be
    assert found.reason.startswith("p = 0.0001; ")
    assert found.statistics["trend_z"] < -5
    against = observer(upside_down, runs=3, spread=0.03)
    assert falls_with_spacing(against, trained_apart=True).statistics["trend_p"] == 1


def test_errors_are_as_rare_as_asked_for(monkeypatch):
    """Flat curves are seldom said to rise or to fall, and those that fall never to rise."""
    monkeypatch.setattr(psychophysics_findings, "REPETITIONS", 200)
    seeds = range(40)
    found = [falls_with_spacing(observer(flat, trials=100, seed=seed)) for seed in seeds]
    assert sum(each.statistics["departure_p"] < 0.05 for each in found) <= 7  # 2 are expected
    assert sum(each.verdict == "holds" for each in found) <= 7
    found = [falls_with_spacing(observer(like_people, trials=100, seed=seed)) for seed in seeds]
    assert all(each.verdict == "holds" for each in found)


WIDE = (1.8, 2.0, 2.4)


@pytest.mark.parametrize(
    ("share", "trials", "verdict"),
    [(0.5, 2000, "holds"), (0.51, 9000, "holds"), (0.7, 200, "fails"), (0.5, 20, "undecided")],
)
def test_chance_at_the_widest(share, trials, verdict):
    def accuracy(length, spacing):
        return share if spacing >= 2 else 0.9

    found = at_chance_when_wide(observer(accuracy, trials, spacings=WIDE, lengths=(9,)))
    assert found.verdict == verdict
    assert found.statistics["trials"] == 2 * trials
    low, high = found.statistics["low"], found.statistics["high"]
    assert low < found.statistics["accuracy"] < high
    assert f"{low:.1%} to {high:.1%}" in found.reason


def test_what_repeated_runs_differ_by_is_allowed_for_at_chance_too():
    wide = dict(spacings=(2.4,), lengths=(9,), trials=10_000, spread=0.06)
    found = [
        at_chance_when_wide(observer(lambda *_: 0.57, **wide, runs=5, seed=seed))
        for seed in range(30)
    ]
    assert all(each.statistics["dispersion"] > 10 for each in found)
    assert sum(each.verdict == "holds" for each in found) <= 3
    assert at_chance_when_wide(observer(flat, **wide)).statistics["dispersion"] == 1


def test_spacings_of_a_small_grid_are_not_repetitions():
    small = tuple(spacing / 4 for spacing in SPACINGS)
    found = falls_with_spacing(
        observer(lambda length, spacing: like_people(length, 4 * spacing), spacings=small)
    )
    assert found.statistics["dispersion"] == 1
    assert found.statistics["trend_z"] < -8
    assert found.verdict == "holds"


def test_more_conditions_at_chance_need_more_trials():
    wide = [
        Score(observer="a", length=length, spacing=2.4, proportion=0.5, trials=600)
        for length in range(3, 13)
    ]
    assert at_chance_when_wide(wide[:1]).verdict == "holds"
    assert at_chance_when_wide(wide).verdict == "undecided"


def test_one_condition_above_chance_is_not_hidden_by_others_at_it():
    def accuracy(length, spacing):
        return 0.62 if length == 17 else 0.5

    found = at_chance_when_wide(observer(accuracy, 10_000, spacings=(2.4,)))
    assert found.verdict == "fails"
    assert " correct at length 17, spacing 2.40, " in found.reason


def test_a_fall_too_small_to_matter_is_none():
    scores = [
        Score(observer="a", length=9, spacing=x, proportion=y, trials=10_000)
        for x, y in ((0.3, 0.999), (0.4, 0.99), (0.5, 0.985))
    ]
    found = falls_with_spacing(scores)
    assert found.statistics["trend_p"] < 1e-6
    assert (found.verdict, found.reason[:26]) == ("fails", "it changes by less than 5%")


def test_trends_are_asked_of_near_conditions_alone():
    near = observer(like_people)
    wide = [
        Score(observer="made up", length=length, spacing=2.0, proportion=1.0, trials=4_000)
        for length in LENGTHS
    ]
    assert findings(near + wide)[:2] == findings(near)[:2]
    assert [each.verdict for each in findings(near + wide)] == ["holds", "holds", "fails"]
    assert findings(wide)[0].verdict == "undecided"  # of wide ones alone there is one spacing


def test_where_chance_begins_can_be_chosen():
    scores = observer(like_people, spacings=(0.3, 0.9), trials=4000)
    assert at_chance_when_wide(scores, beyond=0.8).verdict == "holds"
    assert at_chance_when_wide(scores, beyond=0.8).claim == "at chance from 0.8 degrees on"
    assert at_chance_when_wide(scores, beyond=0.2).verdict == "fails"
    assert findings(scores, beyond=0.8)[2] == at_chance_when_wide(scores, beyond=0.8)


def test_the_condition_furthest_from_chance_is_shown_on_either_side():
    scores = at_one_length((2.1, 100, 400), (2.4, 220, 400))
    found = at_chance_when_wide(scores)
    assert (found.verdict, found.statistics["accuracy"]) == ("fails", 0.25)
    assert found.reason.startswith("25.0% correct at length 9, spacing 2.10, ")


def test_a_table_has_the_findings_of_each_observer():
    second = [Score(observer="other", length=9, spacing=x, proportion=0.8, trials=9) for x in WIDE]
    out = io.StringIO()
    Console(file=out, width=160).print(findings_table([*observer(like_people), *second]))
    assert out.getvalue().count("made up") == out.getvalue().count("other") == 3
    assert out.getvalue().count("holds") == 2


@pytest.mark.parametrize("judge", [falls_with_spacing, rises_with_length, at_chance_when_wide])
def test_scores_that_cannot_be_judged_are_refused(judge):
    known = Score(observer="a", length=9, spacing=0.3, proportion=0.8, trials=10)
    with pytest.raises(ValueError, match="there are no scores to judge"):
        judge([])
    with pytest.raises(ValueError, match="a finding is of one observer; got a, b"):
        judge([known, Score(observer="b", length=9, spacing=0.3, proportion=0.8, trials=10)])
    message = r"trials of 'a' at length 9, spacing 0\.4 is not known, so that no test"
    with pytest.raises(ValueError, match=message):
        judge([known, Score(observer="a", length=9, spacing=0.4, proportion=0.8)])
