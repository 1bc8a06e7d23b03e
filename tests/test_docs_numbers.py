"""Numbers that the pages give, against the measurements that they are from."""

import json
import math
import re
from pathlib import Path

import pytest

from hgru_vision.analysis.generalisation import latest, read_rows
from hgru_vision.analysis.study import LEARNT
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.papers.linsley2018 import PATH_LENGTHS
from hgru_vision.sweeps.ledger import read_ledger
from hgru_vision.training.config import Source
from hgru_vision.weights import card

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
REPRODUCTION = "docs/reproduce/README.md"

NAMES = {
    "hGRU": "hgru",
    "6 steps": "hgru_6",
    "4 steps": "hgru_4",
    "no linear terms": "hgru_no_linear",
    "no quadratic terms": "hgru_no_quadratic",
    "no time-gain": "hgru_no_time_gain",
    "GRU": "gru",
    "GRU of two layers": "gru_2l",
    "hGRU with batch norm": "hgru_bn",
    "non-negative hGRU": "hgru_nonnegative",
    "ResNet-18": "resnet18",
    "ResNet-50": "resnet50",
    "ResNet-152": "resnet152",
    "ResNet-152, a tenth": "resnet152_tenth",
    "FCN": "fcn",
    "U-Net": "unet",
    "U-Net, a half": "unet_half",
    "U-Net, a fifth": "unet_fifth",
    "U-Net, a tenth": "unet_tenth",
    "SegNet": "segnet",
}
for depth, layers in ((1, "1 layer"), (3, "3 layers"), (5, "5 layers")):
    NAMES[f"highway, {layers}"] = f"highway_{depth}"
    NAMES[f"{layers}, small kernels"] = f"ff_small_{depth}"
    for kind in ("medium", "large", "dilated"):
        NAMES[f"{layers}, {kind}"] = f"ff_{kind}_{depth}"


def table(page, *header):
    """Give the rows, as lists of cells, of a page's table whose header begins with some cells."""
    lines = iter((ROOT / page).read_text().splitlines())
    for line in lines:
        if cells(line)[: len(header)] == list(header):
            break
    else:
        raise AssertionError(f"{page} has no table that begins with {header}")
    next(lines)  # the rule
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append(cells(line))
    return found


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def numbers(text):
    """Read what has a decimal place."""
    return [float(each) for each in re.findall(r"\d+\.\d+", text)]


def sentence(page):
    """Give the text of a page without its line breaks."""
    return " ".join((ROOT / page).read_text().split())


def percent(share):
    """Give a share as pages do: with one decimal place, and a half rounded either way."""
    return pytest.approx(100 * share, abs=0.0501)


def weights(cell):
    """Name the weights that a cell lists: `hgru.matched6`, `9`, `14`."""
    first, *others = re.findall(r"`([\w.]+)`", cell)
    stem = first.rstrip("0123456789")
    return [first, *(each if "." in each else stem + each for each in others)]


def measured(network):
    """Give accuracies on images of other kinds: {(axis, value): percentage}."""
    rows = latest(read_rows(RESULTS / "generalisation" / f"{network}.jsonl"))
    return {
        (row.condition.axis, row.condition.value): percent(row.accuracy)
        for row in rows
        if row.accuracy is not None
    }


@pytest.mark.parametrize("row", table("README.md", "weights"), ids=lambda row: row[0])
def test_accuracies_of_the_weights_in_the_readme(row):
    if "contour" in row[0]:
        ods = [
            json.loads((RESULTS / "boundaries" / f"contour_{name}.json").read_text())["ods"]["f"]
            for name in ("hgru", "feedforward", "feedforward_vgg_fixed")
        ]
        assert numbers(row[1]) == [round(each, 3) for each in ods]
        return
    found = [card(name).result for name in weights(row[0])]
    if "mixed" in row[0]:
        on_others = measured("mixed")
        shorter = [on_others["length", length] for length in (6, 9)]
        assert numbers(row[1]) == [*shorter, percent(found[0].accuracy)]
        return
    assert numbers(row[1]) == [percent(each.accuracy) for each in found]
    shortcuts = [percent(each.shortcut["accuracy"]) for each in found]
    if "," not in row[2]:  # one for both
        shortcuts = shortcuts[:1]
    assert numbers(row[2]) == shortcuts


SCREENED = {
    "recurrent": ("", "6", "9", "14"),
    "networks": ("", "6", "9", "14", "parameters, times the hGRU's"),
}


@pytest.mark.parametrize("ledger", SCREENED)
def test_networks_by_screen(ledger):
    rows = [row for name in SCREENED for row in read_ledger(RESULTS / f"{name}.jsonl")]
    found = {(row.config.model, row.config.task.length): row.result for row in rows}
    listed = table(REPRODUCTION, *SCREENED[ledger])
    if ledger == "recurrent":
        probe = listed.pop()
        shortcuts = [percent(found["hgru", length].shortcut["accuracy"]) for length in PATH_LENGTHS]
        assert numbers(" ".join(probe)) == shortcuts
    models = {row.config.model for row in read_ledger(RESULTS / f"{ledger}.jsonl")}
    assert {NAMES[row[0]] for row in listed} >= models  # none is left out
    for name, *values in listed:
        for length, value in zip(PATH_LENGTHS, values, strict=False):
            result = found.get((NAMES[name], length))
            assert numbers(value) == ([] if result is None else [percent(result.accuracy)]), name
            assert (value == "not run") == (result is None)
        if ledger == "networks":
            multiple = CATALOGUE[NAMES[name]].parameters / CATALOGUE["hgru"].parameters
            assert values[-1] == (f"{multiple:.1f}" if multiple < 10 else f"{multiple:.0f}")


def test_seeds_of_the_curriculum():
    rows = read_ledger(RESULTS / "curriculum.jsonl")
    alike = [
        row.result.accuracy
        for row in sorted(rows, key=lambda row: row.config.seed)
        if row.config.task == Source(length=14)
        and row.config.stages[-1].images == 320_000
        and len(row.config.stages[-1].sources) == 1
    ]
    (said,) = re.findall(r"the five seeds get ([^%]*) %", sentence(REPRODUCTION))
    assert numbers(said) == [percent(each) for each in alike]


def test_images_that_the_released_program_drew():
    (said,) = re.findall(r"drawn\*\* they get ([^%]*) % right", sentence(REPRODUCTION))
    files = (RESULTS / "released" / f"hgru.authors{length}.json" for length in PATH_LENGTHS)
    assert numbers(said) == [percent(json.loads(each.read_text())["accuracy"]) for each in files]


def test_what_starts_the_learning_at_the_size_of_quick():
    files = "matched_small", "mostly_new_small", "pool_first_small", "released_filters_small"
    rows = [row for name in files for row in read_ledger(RESULTS / "trials" / f"{name}.jsonl")]
    found = {(row.config.recipe, row.config.seed): row.result for row in rows}
    recipes = (
        *("scratch", "after", "mostly_new", "pool_first"),
        *("released_filters", "released_filters_pool_first"),
    )
    listed = table("docs/stuck.md", "seed", "0", "1")
    for (name, *values), recipe in zip(listed, recipes, strict=True):
        results = [found[f"matched_{recipe}", seed] for seed in range(10)]
        assert numbers(" ".join(values)) == [percent(each.accuracy) for each in results], name
        assert ["*" in each for each in values] == [not each.stuck for each in results], name


def test_runs_from_scratch_at_length_14():
    rows = sorted(read_ledger(RESULTS / "paper14.jsonl"), key=lambda row: row.config.seed)
    results = [row.result for row in rows]
    assert [row.config.seed for row in rows] == [0, 1, 2]
    assert all(each.stuck and each.images == 1_800_000 for each in results)
    assert {each.accuracy for each in results} == {0.5}
    peak = max(point.accuracy for each in results for point in each.curve)
    said = f"50.0 % of 100,000 test images each, and never above {100 * peak:.1f} % of 4,000"
    assert said in sentence("docs/reproduce/README.md")

    rows = sorted(read_ledger(RESULTS / "trials" / "port.jsonl"), key=lambda row: row.config.seed)
    results = [row.result for row in rows]
    assert all(each.stuck and each.images == 160_000 for each in results)
    ends = ", ".join(f"{100 * each.accuracy:.1f}" for each in results[:2])
    peak = max(point.accuracy for each in results for point in each.curve)
    text = sentence("docs/stuck.md")
    assert f"have {ends} and {100 * results[2].accuracy:.1f} % of 10,000 test images" in text
    assert f"never above {math.ceil(1000 * peak) / 10} % of 4,000 on the way" in text


def test_how_often_a_seed_fails():
    recipes = iter(["matched_scratch", "matched_after"])
    listed = table(REPRODUCTION, "protocol", "Pathfinder")
    assert len(listed) == 8
    for _, preset, length, images, failed, file in listed:
        *_, most = said = [int(each.replace(",", "")) for each in re.findall(r"[\d,]+", images)]
        runs = [
            row
            for row in read_ledger(RESULTS / file.strip("`"))
            if row.config.task.name == f"{preset.strip('`')}-{length}"
            and len(row.config.stages[-1].sources) == 1  # hgru.mixed has several
            and row.result.images <= most  # hgru.pathfinder14 has more
        ]
        if "matched_small" in file:
            recipe = next(recipes)
            runs = [row for row in runs if row.config.recipe == recipe]
        bad = sum(row.result.accuracy < LEARNT for row in runs)
        assert failed == f"{bad} of {len(runs)}", file
        trained = sorted({row.result.images for row in runs})
        assert said == (trained[-1:] if "up to" in images else trained), file


def test_how_far_networks_see():
    found = json.loads((RESULTS / "trials" / "reach.json").read_text())
    untrained, trained = found["untrained"], found["trained"]
    expected = {
        "`hgru`, untrained": untrained["hgru"],
        "the same, `mostly_new`": untrained["hgru mostly_new=true"],
        "`hgru_released`, untrained": untrained["hgru_released"],
        **{
            f"`paper`, at chance, seed {seed}": found["at_chance"][
                f"hgru sweep paper14, seed {seed}"
            ]
            for seed in range(3)
        },
    }
    for name, *values in table("docs/stuck.md", "pixels away"):
        influence = expected[name] if name in expected else trained[name.strip("`")]
        assert [float(each) for each in values] == influence[1:], name
    less = untrained["hgru least_time_gain=-2 most_time_gain=2"]
    assert all(there < here for there, here in zip(less[1:], untrained["hgru"][1:], strict=True))
    for recipe, said in (
        ("scratch", "in 19 of 24 pairs"),
        ("mostly_new", "`mostly_new` in 5 of 24"),
    ):
        sees = found["quick_log10_12_to_15_pixels"][f"matched_{recipe}"]
        file = {"scratch": "matched_small", "mostly_new": "mostly_new_small"}[recipe]
        rows = read_ledger(RESULTS / "trials" / f"{file}.jsonl")
        rows = [row for row in rows if row.config.recipe == f"matched_{recipe}"]
        learns = {row.config.seed: row.result.accuracy > 0.75 for row in rows}
        first = [sees[seed] for seed in learns if learns[seed]]
        second = [sees[seed] for seed in learns if not learns[seed]]
        further = sum((a > b) + (a == b) / 2 for a in first for b in second)
        assert (further, len(first) * len(second)) == tuple(
            float(each) for each in re.findall(r"\d+", said)
        )
        assert said in sentence("docs/stuck.md")
    short, *others = found["marker_distance"].values()
    text = sentence("docs/stuck.md")
    assert (
        f"{short} pixels apart in the mean at length 3, and {others[0]}, {others[1]} and " in text
    )
    assert f"and {others[2]} at 6, 9 and 14" in text


@pytest.mark.parametrize("row", table("docs/stuck.md", "", "`matched` before, of 200"))
def test_weights_that_were_trained_on_matched(row):
    length = int(row[0].split(",")[0])
    before, after = measured(f"hgru.pathfinder{length}"), measured(f"hgru.matched{length}")
    assert numbers(row[1]) == [before["preset", "matched"]]
    assert numbers(row[3]) == [percent(card(f"hgru.matched{length}").result.accuracy)]
    assert numbers(row[4]) == [before["probe", "paper"]]
    assert numbers(row[5]) == [after["probe", "paper"]]


@pytest.mark.parametrize("row", table(REPRODUCTION, "trained on", "6", "9", "14"))
def test_accuracies_where_the_shortcut_misleads(row):
    found = []
    for name in weights(row[0].partition(": ")[2]):
        file = "mixed" if name == "hgru.mixed" else name
        found.append(measured(file)["probe", "authors" if "authors" in name else "paper"])
    assert numbers(" ".join(row[1:4])) == found


@pytest.mark.parametrize("row", table(REPRODUCTION, "", "at", "connected pairs"))
def test_what_is_called_connected_at_another_length(row):
    name = row[0].strip("`")
    file = RESULTS / "trials" / "labels" / f"{name}-at-{row[1]}.json"
    labels = json.loads(file.read_text())["labels"]
    assert float(row[2]) == percent(labels["1"]["accuracy"])
    assert float(row[3]) == percent(1 - labels["0"]["accuracy"])


def test_speeds_in_the_readme_are_those_of_the_benchmark():
    text = sentence("README.md")
    measurement = (RESULTS / "benchmarks" / "hgru-h200.txt").read_text()
    recorded = re.findall(r"ours, recorded +│ +([\d,]+) │ +([\d.]+) x", measurement)
    (small, more), (large, most) = recorded[:2]
    assert f"{small} images/s (batch 32) and {large} (batch 128)" in text
    assert f"{float(more):.1f} and {float(most):.1f} times plain PyTorch" in text


def test_what_resnets_lose_at_the_change_to_the_longest_paths():
    (said,) = re.findall(r"they fall \(to (.*?) % in the first", sentence(REPRODUCTION))
    lowest = {
        row.config.model: next(p.accuracy for p in row.result.curve if p.stage == 3)
        for row in read_ledger(RESULTS / "networks.jsonl")
        if row.config.task.length == PATH_LENGTHS[-1]
    }
    stated = [int(each) for each in re.findall(r"\d+", said)]
    models = ("resnet18", "resnet50", "resnet152")
    assert stated == [pytest.approx(100 * lowest[model], abs=0.501) for model in models]


def test_networks_that_give_all_images_the_same_answer():
    (said,) = re.findall(r"Four \((.*?)\) end by giving all", sentence(REPRODUCTION))
    assert said == "three layers of medium or large kernels, three of highway, SegNet"
    constant = {
        row.config.model
        for row in read_ledger(RESULTS / "networks.jsonl")
        if row.config.task.length == PATH_LENGTHS[-1] and row.result.accuracy == 0.5
    }
    assert constant == {"ff_medium_3", "ff_large_3", "highway_3", "segnet"}


def test_a_segnet_and_batch_norm():
    found = {
        tuple(row.config.options): row.result.accuracy
        for row in read_ledger(RESULTS / "trials" / "segnet.jsonl")
    }
    (said,) = re.findall(
        r"\*\*SegNet\*\* does not learn.*?one seed each", sentence("docs/stuck.md")
    )
    in_order = [("pool_first",), ("pool_first", "batch_norm"), ("batch_norm",)]
    assert numbers(said) == [percent(found[options]) for options in in_order]


def test_networks_that_learn_at_a_small_size():
    rows = read_ledger(RESULTS / "trials" / "small.jsonl")
    (said,) = re.findall(
        r"three seeds of three learn in 8,000.*?with one\.", sentence(REPRODUCTION)
    )
    in_order = [
        percent(row.result.accuracy)
        for model in ("ff_large_3", "ff_medium_3", "highway_3", "highway_1")
        for row in sorted(rows, key=lambda row: row.config.seed)
        if row.config.model == model
    ]
    assert numbers(said) == in_order


@pytest.mark.parametrize(
    ("ledger", "said"),
    [("networks", r"(\d+) of them, and"), ("recurrent", r"and (\d+) of the recurrent ones")],
)
def test_networks_that_lose_what_they_had_learnt(ledger, said):
    lost = {
        row.config.model
        for row in read_ledger(RESULTS / f"{ledger}.jsonl")
        if row.config.task.length == PATH_LENGTHS[-1]
        and row.result.accuracy < 0.55
        and max(point.accuracy for point in row.result.curve if point.stage == 0) > 0.75
    }
    (number,) = re.findall(f"{said}.*learn length 3", sentence(REPRODUCTION))
    assert int(number) == len(lost)
