import json
from dataclasses import replace

import pytest
import torch

from hgru_vision.analysis.conditions import Condition
from hgru_vision.analysis.generalisation import (
    CONFIDENCE,
    fingerprint,
    latest,
    measure,
    read_rows,
)
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.models import create_model
from hgru_vision.recipes.quick import SMALL
from hgru_vision.sweeps.jsonl import LedgerWarning, append_line
from hgru_vision.training.data import pathfinder_config


@pytest.fixture(scope="module")
def network():
    return create_model("hgru_small", timesteps=2).eval()


class Reference(torch.nn.Module):
    """Call an image 1 if its number of white pixels is odd, whatever it shows."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, images):
        odd = (images > 0.5).sum(dim=(1, 2, 3)) % 2
        return torch.stack([1 - odd, odd], dim=1) * self.scale


def run(network, wanted, path, **keywords):
    settings = {"name": "net", "trained": SMALL, "images": 40, "seed": 3, "batch": 16}
    return measure(network, wanted, path, **(settings | keywords))


def test_a_row_is_what_the_network_does_on_the_images_it_names(tmp_path):
    condition = Condition(axis="length", value=4, source=replace(SMALL, length=4))
    (row,) = run(Reference(), [condition], tmp_path / "a.jsonl")
    data = Pathfinder(config=pathfinder_config(condition.source), count=40, seed=3, split="test")
    odd = (data.batch(range(40)) > 127).sum(axis=(1, 2)) % 2
    assert (row.n, row.images, row.correct) == (40, 40, int((odd == data.labels(range(40))).sum()))
    assert row.accuracy == row.correct / 40
    line = json.loads((tmp_path / "a.jsonl").read_text())
    assert line["accuracy"] == row.accuracy and line["condition"]["source"]["length"] == 4
    assert read_rows(tmp_path) == read_rows(tmp_path / "a.jsonl") == [row]


def test_a_name_is_read_back_as_a_number_is(tmp_path, measured):
    path = tmp_path / "a.jsonl"
    rows = [measured("preset", "authors"), measured("steps", 3)]
    for row in rows:
        append_line(path, row.to_json())
    assert read_rows(path) == rows


def test_what_is_there_is_not_measured_again(tmp_path):
    wanted = [
        Condition(axis="length", value=n, source=replace(SMALL, length=n)) for n in (2, 3, 90)
    ]
    told = []

    def report(condition, found):
        told.append((condition.value, type(found).__name__))

    path = tmp_path / "a.jsonl"
    assert len(run(Reference(), wanted[:1], path, report=report)) == 1
    assert len(run(Reference(), wanted, path, report=report)) == 1
    assert told == [(2, "Row"), (3, "Row"), (90, "UnsatisfiableError")]
    assert len(run(Reference(), wanted[:1], path, seed=4)) == 1
    assert len(read_rows(path)) == 3


def test_a_size_that_a_network_does_not_take_is_told_and_the_rest_measured(tmp_path):
    sizes = [32, 40]
    wanted = [
        Condition(
            axis="canvas",
            value=size,
            source=replace(SMALL, changes=SMALL.changes | {"canvas": size}),
        )
        for size in sizes
    ]
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(40 * 40, 2))
    told = []
    (row,) = run(network, wanted, tmp_path / "a.jsonl", report=lambda *each: told.append(each))
    assert row.condition.value == 40
    (condition, error), (_, measured) = told
    assert condition.value == 32 and "fails on images of shape (16, 1, 32, 32)" in str(error)
    assert measured == row


def test_other_weights_of_the_same_name_are_refused(tmp_path):
    wanted = [Condition(axis="length", value=2, source=replace(SMALL, length=2))]
    path = tmp_path / "a.jsonl"
    run(Reference(), wanted, path)
    other = Reference()
    other.scale.data.fill_(2)
    with pytest.raises(ValueError, match=r"a\.jsonl is of other weights, trained anew or of anoth"):
        run(other, wanted, path)
    assert len(read_rows(path)) == 1


def test_steps_are_those_of_the_circuit(tmp_path, network):
    wanted = [Condition(axis="steps", value=n, source=SMALL, timesteps=n) for n in (1, 2)]
    with pytest.raises(ValueError, match="Reference has no recurrent circuit"):
        run(Reference(), wanted, tmp_path / "a.jsonl")
    rows = run(network, wanted, tmp_path / "b.jsonl")
    assert [row.condition.timesteps for row in rows] == [1, 2]


def test_the_probe_chooses_the_images_on_which_it_is_confidently_wrong(tmp_path, monkeypatch):
    from hgru_vision.analysis import generalisation

    class Found:
        label = torch.arange(160).numpy() % 2
        probability = torch.full((160,), 0.5).double().numpy()

    Found.probability[[4, 7]] = [0.9, 0.1]  # wrong, as image 4 is a 0 and image 7 a 1
    Found.probability[[8, 9]] = [0.1, 0.89]
    monkeypatch.setattr(generalisation, "audit", lambda cues, seed: Found)
    data = Pathfinder(config=pathfinder_config(SMALL), count=160, split="test")
    assert CONFIDENCE == 0.9
    assert generalisation._confidently_wrong(data).tolist() == [4, 7]
    condition = Condition(axis="probe", value="paper", source=SMALL)
    (row,) = run(Reference(), [condition], tmp_path / "a.jsonl")
    assert (row.images, row.n) == (160, 2)
    Found.probability[:] = 0.5
    (row,) = run(Reference(), [condition], tmp_path / "b.jsonl")
    assert (row.n, row.accuracy, row.interval) == (0, None, (0.0, 1.0))


def test_rows_of_another_kind_and_doubles_are_told(tmp_path):
    path = tmp_path / "a.jsonl"
    run(Reference(), [Condition(axis="length", value=3, source=SMALL)], path)
    whole = path.read_text()
    path.write_text(whole * 2)
    with pytest.warns(LedgerWarning, match=r"a\.jsonl:2: measured before; the later row counts"):
        assert len(read_rows(path)) == 1
    path.write_text(whole + '{"schema": 3}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl:2 is not a row of `hgru generalise`: schema"):
        read_rows(path)


def test_a_fingerprint_is_of_the_numbers_alone(network):
    other = create_model("hgru_small", timesteps=2)
    assert fingerprint(network) == fingerprint(other)


def test_of_several_measurements_the_latest_weights_and_most_images_count(measured):
    old = replace(measured("length", 6, 10), weights="old", written="2026-01-01")
    few = replace(measured("length", 6, 20, 50), written="2026-01-02")
    many = replace(measured("length", 6, 30), written="2026-01-02")
    other = measured("length", 9, network="another")
    rows = [
        replace(measured("steps", 4), weights="old", written="2026-01-01"),
        many,
        few,
        old,
        other,
    ]
    assert sorted(latest(rows), key=lambda row: row.network) == [other, many]
