from dataclasses import replace

import pytest

from hgru_vision.analysis.claim import Finding
from hgru_vision.analysis.claim_parts import Evidence, Part
from hgru_vision.analysis.claims import CLAIMS, judge
from hgru_vision.recipes import make_run
from hgru_vision.sweeps.grid import load_grid
from hgru_vision.sweeps.ledger import LedgerRow

LENGTHS = (6, 9, 14)
FULL = {  # accuracies as the paper would have them
    "hgru": (0.99, 0.988, 0.985),
    "hgru_6": (0.98, 0.97, 0.8),
    "hgru_4": (0.96, 0.8, 0.6),
    "hgru_no_linear": (0.97, 0.9, 0.7),
    "hgru_no_quadratic": (0.96, 0.85, 0.65),
    "hgru_no_time_gain": (0.95, 0.9, 0.8),
    "gru": (0.8, 0.7, 0.6),
    "gru_2l": (0.9, 0.7, 0.6),
    "hgru_bn": (0.99, 0.98, 0.97),
    "hgru_nonnegative": (0.985, 0.98, 0.96),
}
KINDS = ("small", "medium", "large", "dilated", "nonlocal")
OTHERS = {  # likewise
    **{f"ff_{kind}_1": (0.9, 0.5, 0.5) for kind in KINDS},
    **{f"ff_{kind}_3": (0.97, 0.96, 0.6) for kind in KINDS},
    **{f"ff_{kind}_5": (0.98, 0.97, 0.7) for kind in KINDS},
    "ff_small_3": (0.97, 0.8, 0.6),
    "ff_large_5": (0.98, 0.97, 0.9),
    "highway_5": (0.97, 0.96, 0.7),
    "resnet18": (0.98, 0.97, 0.7),
    "resnet50": (0.98, 0.97, 0.8),
    "resnet152": (0.98, 0.97, 0.96),
    **{f"resnet152_{part}": (0.98, 0.97, 0.7) for part in ("half", "fifth", "tenth")},
    "fcn": (0.98, 0.97, 0.96),
    "unet": (0.98, 0.98, 0.97),
    "segnet": (0.98, 0.97, 0.96),
    "unet_half": (0.98, 0.97, 0.96),
    "unet_fifth": (0.98, 0.97, 0.96),
    "unet_tenth": (0.98, 0.97, 0.8),
}


@pytest.fixture(scope="session")
def ledger(row):
    """Give a function that makes the rows of a ledger from accuracies by network and length."""

    def make(accuracies, recipe="screen", **keywords):
        return [
            row(model, length, 0, accuracy, recipe=recipe, **keywords)
            for model, values in accuracies.items()
            for length, accuracy in zip(LENGTHS, values, strict=True)
        ]

    return make


def verdicts(rows):
    return {claim.name: finding.verdict for claim, finding in judge(rows)}


def finding(rows, start):
    return next(found for claim, found in judge(rows) if claim.name.startswith(start))


def test_without_runs_nothing_is_judged(row):
    assert set(verdicts([]).values()) == {"not run yet"}
    other = [row("hgru", 14, recipe="quick"), row("hgru", 14, preset="matched")]
    assert set(verdicts(other).values()) == {"not run yet"}


def test_results_like_the_papers_reproduce_every_claim(ledger):
    rows = ledger(FULL | OTHERS, points=3)
    rows += ledger(FULL, recipe="paper") + ledger(FULL, recipe="curriculum")
    assert set(verdicts(rows).values()) == {"reproduced"}
    assert all(found.reason == "" for _, found in judge(rows))


def test_grids_fill_every_part_of_every_claim(row):
    result = row().result
    runs = [*load_grid("recurrent"), *load_grid("networks"), *load_grid("paper")]
    runs += [make_run("curriculum", length=length) for length in LENGTHS]
    rows = [LedgerRow(config=run, result=result, written="2026-01-01") for run in runs]
    missing = [part.says for _, found in judge(rows) for part in found.parts if part.holds is None]
    assert missing == []


def test_a_solved_length_that_should_not_be_is_told(ledger):
    rows = ledger(FULL | {"gru_2l": (0.97, 0.96, 0.97), "gru": (0.96, 0.96, 0.99)})
    assert finding(rows, "Two layers").verdict == "partly"
    assert "`gru_2l` does not solve 14: it does, with this cur" in finding(rows, "Two lay").reason
    gru = finding(rows, "The GRU fails")
    assert "`hgru` is above `gru` at 14: it is below" in gru.reason
    assert [part.holds for part in gru.parts] == [True, True, False, False]


def test_steps_are_needed_only_where_more_of_them_suffice(ledger):
    enough = finding(ledger(FULL | {"hgru_4": (0.99,) * 3, "hgru_6": (0.99,) * 3}), "Fewer steps")
    assert enough.verdict == "not reproduced"
    assert "`hgru` solves 9 and `hgru_4` does not: `hgru_4`: it does, with this" in enough.reason
    none = finding(ledger(FULL | {"hgru": (0.7, 0.7, 0.7)}), "Fewer steps")
    assert none.verdict == "not reproduced"
    assert "`hgru` solves 14 and `hgru_6` does not: `hgru`: 70.0% is all it reached" in none.reason
    without = [row for row in ledger(FULL, points=3) if row.config.model != "hgru_4"]
    assert [part.holds for part in finding(without, "Fewer steps").parts] == [None, None, True]


def test_what_was_still_rising_may_yet_solve_a_length(ledger):
    found = finding(ledger(FULL), "Fewer steps")  # all of whose curves rise to the end
    assert not any(part.holds for part in found.parts)
    assert "`hgru_4` does not: `hgru_4`: 80.0% after 640,000 images, and still rising" in (
        found.reason
    )


def test_a_network_at_chance_and_one_still_rising(ledger):
    stuck = ledger(FULL | {"hgru_bn": (0.5, 0.5, 0.5)})
    bn = finding(stuck, "The hGRU with batch norm")
    assert bn.verdict == "not reproduced"
    assert "`hgru_bn` solves 6: all of 1 ended at chance: none began to learn" in bn.reason
    rising = ledger(FULL | {"hgru_bn": (0.99, 0.98, 0.78)}, shortcut=0.8)
    reason = finding(rising, "The hGRU with batch norm").reason
    assert "78.0% is all it reached in 640,000 images, and it was still rising" in reason
    assert "; a probe that follows no path has 80.0%" in reason
    flat = ledger(FULL | {"hgru_bn": (0.99, 0.98, 0.9)}, points=1, shortcut=None)
    assert finding(flat, "The hGRU with batch norm").reason.endswith("in 640,000 images")


def test_a_drop_that_is_not_negligible_is_partly(ledger):
    found = finding(ledger(FULL | {"hgru": (0.999, 0.98, 0.96)}), "The hGRU is hardly")
    assert found.verdict == "partly"
    assert found.reason.endswith("from 6 to 14: it drops from 99.9% to 96.0%")


def test_a_drop_is_of_the_best_of_equally_many_runs(ledger, row):
    low = ledger(FULL | {"hgru": (0.97, 0.9, 0.8)})
    lucky = [row("hgru", 14, seed, 0.96, recipe="screen") for seed in (1, 2)]
    found = finding([*low, *lucky], "The hGRU is hardly")
    assert found.reason.endswith("it drops from 97.0% to 80.0%")


def test_what_differs_by_chance_alone_does_not_count_as_above(ledger):
    found = finding(ledger(FULL | {"hgru_no_time_gain": (0.989, 0.9, 0.8)}), "The time-gain")
    assert [part.holds for part in found.parts] == [False, True, True]
    assert "`hgru` is above `hgru_no_time_gain` at 6: their intervals overlap" in found.reason


def test_a_missing_part_keeps_a_claim_from_being_reproduced(ledger):
    rows = [row for row in ledger(FULL) if row.config.model != "hgru_no_linear"]
    found = finding(rows, "Lesions")
    assert found.verdict == "partly"
    assert "not run yet: `hgru` is above `hgru_no_linear` at 6" in found.reason
    assert finding(rows, "Longer paths").verdict == "not run yet"


def test_diverged_networks_are_below_all_others(ledger):
    rows = ledger(FULL | {"gru": (None, None, None)})
    gru = finding(rows, "The GRU fails")
    assert gru.verdict == "reproduced"
    assert gru.parts[0].numbers == "99.0%, diverged; one run each"
    hgru = finding(ledger(FULL | {"hgru": (0.99, 0.99, None)}), "The hGRU is hardly")
    assert hgru.parts[-1].numbers == "99.0%, diverged"
    assert (hgru.parts[-1].holds, hgru.parts[-1].why) == (False, "it diverged")
    assert gru.parts[-1].numbers == "diverged in 1 run"
    rows = ledger(FULL | {"hgru": (None, None, None)})
    assert "`hgru` is above `gru` at 6: it diverged" in finding(rows, "The GRU fails").reason
    assert "`hgru` solves 6: its runs diverged" in finding(rows, "The hGRU is hardly").reason
    strained = finding(rows, "Length strains").parts[0]
    assert (strained.numbers, strained.holds) == ("diverged, diverged, diverged", False)


def test_lengths_that_do_not_strain_are_told(ledger):
    rows = ledger(FULL | {"gru": (0.6, 0.7, 0.8)})
    assert "accuracy of `gru` falls with length: it rises" in finding(rows, "Length").reason
    assert finding(rows, "The hGRU learns fastest").verdict == "reproduced"
    by_and_by = ledger(FULL | {"gru": (0.6, 0.611, 0.622)})  # each is within the other's interval
    assert "accuracy of `gru` falls with length: it rises" in finding(by_and_by, "Length").reason
    rows = ledger(FULL | {"gru": (0.6, 0.7, 0.99)})
    assert "above `gru` at 14 in ALC: it is not" in finding(rows, "The hGRU learns").reason


def test_networks_at_chance_are_neither_strained_nor_unstrained(ledger):
    rows = ledger({model: (0.502, 0.501, 0.5) for model in FULL})
    found = finding(rows, "Length")
    assert found.verdict == "not reproduced"
    assert "accuracy of `hgru` falls with length: its ends are not told apart" in found.reason
    found = finding(rows, "The hGRU is hardly")
    assert found.verdict == "not reproduced"
    assert "50.2% is nothing to drop from" in found.reason
    only = finding(ledger(FULL | {"gru": (0.502, 0.6, 0.7)}), "The GRU fails")
    assert only.parts[0].numbers == "99.0%, 50.2%; one run each; `gru` at chance"


def test_falls_compares_the_best_of_equally_many_runs(ledger, row):
    flat = ledger(FULL | {"gru": (0.7, 0.705, 0.7)})
    lucky = [
        row("gru", 6, seed, accuracy, recipe="screen") for seed, accuracy in ((1, 0.7), (2, 0.8))
    ]
    assert "accuracy of `gru` falls" in finding([*flat, *lucky], "Length").reason


def test_runs_are_counted_and_variants_named(ledger, row):
    more = [row("hgru", 14, seed, 0.6, recipe="screen") for seed in (1, 2)]
    part = finding(ledger(FULL) + more, "The hGRU is hardly").parts[2]
    assert part.numbers == "98.5% (98.2% to 98.7%), best of 3; mean 72.8%; 2 of 3 runs failed"
    other = row("hgru", 14, 0, 0.7, recipe="screen", cuda_graph=True)
    found = Evidence([*ledger(FULL), *more, other])
    assert found.cell("hgru", 14).best.accuracy == 0.985
    assert {network.variant for network in found.variants()} == {
        "cuda_graph=false", "cuda_graph=true"
    }  # fmt: skip


def test_every_claim_has_a_name_a_place_and_parts():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.place.startswith(("Main", "Supp."))
        assert claim.judge(Evidence([]))
    part = Part(says="x", numbers="", holds=True)
    assert Finding(parts=(part,)).verdict == "reproduced"


def test_the_best_of_equally_many_runs_are_compared(ledger, row):
    lucky = [row("gru", 14, seed, 0.99, recipe="screen") for seed in (1, 2)]
    gru = finding(ledger(FULL) + lucky, "The GRU fails")
    at_14 = next(part for part in gru.parts if part.says == "`hgru` is above `gru` at 14")
    assert (at_14.numbers, at_14.holds) == ("98.5%, 60.0%; one run each", True)


def test_one_variant_of_a_network_counts_at_all_lengths(ledger, row):
    slow = [row("hgru", 14, seed, 0.6, recipe="screen", learning_rate=1e-4) for seed in (1, 2)]
    found = Evidence(ledger(FULL) + slow)
    assert [found.cell("hgru", length).best.accuracy for length in LENGTHS] == [0.99, 0.988, 0.985]


def test_runs_that_had_learnt_before_they_failed_are_told_so(ledger, row):
    rows = ledger(FULL | {"hgru_bn": (0.5, 0.5, 0.5)})
    reason = finding([with_peak(each, 0.92) for each in rows], "The hGRU with batch").reason
    assert "all of 1 ended at chance: the best had 92.0% on the way" in reason


def with_peak(row, accuracy):
    curve = (replace(row.result.curve[0], accuracy=accuracy), *row.result.curve[1:])
    return replace(row, result=replace(row.result, curve=curve))


def with_curve(row, accuracies):
    last = row.result.curve[-1]
    curve = tuple(replace(last, accuracy=accuracy) for accuracy in accuracies)
    return replace(row, result=replace(row.result, curve=curve))


def test_one_low_evaluation_does_not_end_a_rise(row):
    bumpy = (0.850, 0.901, 0.888, 0.915, 0.934, 0.917)  # a standard error is half a point
    for accuracies, rising in ((bumpy, True), (bumpy[:5], False), (bumpy[3:] * 2, False)):
        rows = [with_curve(row("gru_2l", 9, 0, 0.924, recipe="screen"), accuracies)]
        part = finding(rows, "Two layers").parts[1]
        assert part.says == "`gru_2l` does not solve 9"
        assert (part.holds, "and still rising" in part.why) == (not rising, rising)


def test_steps_are_compared_at_every_length(ledger):
    found = finding(ledger(FULL | {"hgru_4": (0.979, 0.99, 0.6)}), "Accuracy falls")
    assert [part.holds for part in found.parts] == [True, True, True, False, False, True]
    assert "`hgru_6` is above `hgru_4` at 9: it is below" in found.reason


def test_the_least_strained_network_drops_by_less_than_all_others(ledger, row):
    same = FULL | {"hgru_6": (0.98, 0.9, 0.975), "hgru_4": (0.96, 0.96, 0.99)}
    rows = ledger(same | {"hgru_no_linear": (0.7, 0.6, 0.5), "gru": (0.9, 0.9, None)})
    found = finding(rows, "Length strains the hGRU")
    assert found.told == "partly (1 of 5)"
    assert [part.numbers for part in found.parts] == [
        "0.5 and 0.5 points",
        "0.5 and -3.0 points",
        "0.5 and 20.0 points",
        "0.5 and 31.0 points",
        "99.0%, 98.5%, 90.0%, diverged",
    ]
    assert [part.why for part in found.parts] == [
        "their intervals overlap",
        "it drops by more",
        "`hgru_no_linear` has nothing to drop from",
        "",
        "there is nothing to compare",
    ]
    near = ledger(FULL | {"hgru_6": (0.98, 0.9, 0.98)})  # no drop, give or take 0.4 points
    assert finding(near, "Length strains the hGRU").parts[0].why == "their intervals overlap"
    short = [row("hgru", 6, recipe="screen")]
    assert finding(short, "Length strains the hGRU").verdict == "not run yet"


def test_the_other_networks_are_judged(ledger):
    rows = ledger(FULL | OTHERS | {"ff_small_1": (0.505, 0.49, 0.52)}, points=3)
    layer = finding(rows, "One layer")
    assert [part.holds for part in layer.parts[:3]] == [False, True, False]
    assert "`ff_small_1` is above chance at 6: it is not" in layer.reason
    assert "`ff_small_1` is at chance at 14: 52.0% is more" in layer.reason
    assert layer.parts[0].numbers == "50.5% (49.5% to 51.5%), at chance, 1 run"
    rows = ledger(FULL | OTHERS | {"resnet18": (0.98, 0.97, 0.99)}, points=3)
    assert finding(rows, "Only the deepest").told == "partly (4 of 5)"
    smaller = finding(rows, "No network that is less")
    assert smaller.reason == "`hgru` is above `resnet18` at 14: it is below"
    rows = ledger(FULL | OTHERS | {"ff_dilated_5": (0.98, 0.97, None)}, points=3)
    assert finding(rows, "Of five layers").told == "reproduced"
    rows = ledger(FULL | OTHERS | {"ff_large_5": (0.98, 0.97, 0.74), "fcn": (0.98, 0.9, None)})
    faster = finding(rows, "The hGRU learns the longest")
    assert [part.holds for part in faster.parts] == [False, True, False, True, True]
    assert "`hgru` is above `fcn` at 14 in ALC: `fcn` has learnt nothing to compare it" in (
        faster.reason
    )
    lost = ledger({"ff_small_1": (None, None, 0.5)})
    assert [part.holds for part in finding(lost, "One layer").parts[:3]] == [False, True, True]


def test_parts_that_were_not_run_are_counted(ledger, row):
    none = finding([row("resnet152_tenth", 6, 0, 0.9, recipe="screen")], "Smaller ResNets")
    assert none.told == "not reproduced (8 of 9 not run)"
    some = finding([row("resnet152_tenth", 6, 0, 0.97, recipe="screen")], "Smaller ResNets")
    assert some.told == "partly (1 of 9; 8 not run)"
    assert finding([], "Smaller ResNets").told == "not run yet"
