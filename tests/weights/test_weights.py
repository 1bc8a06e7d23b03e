import json

import pytest
import torch
from safetensors.torch import load_file

from hgru_vision import weights
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.loop import train

SMALL = {"canvas": 32, "edge_margin": 3, "seed_radius": 5, "marker_radius": 1.5,
         "distractor_length": 2, "distractor_paddles": 8}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = RunConfig(
        model="hgru_small",
        stages=(Stage(sources=(Source(length=3, changes=SMALL),), images=8),),
        batch=4,
        evaluation_images=4,
        test_images=8,
        statistics_batches=1,
    )
    folder = tmp_path_factory.mktemp("run")
    train(config, folder, progress=False)
    return folder


@pytest.fixture
def shelf(monkeypatch, tmp_path):
    monkeypatch.setattr(weights, "FOLDER", tmp_path)
    return tmp_path


def test_what_is_published_is_loaded(run, shelf):
    made = weights.publish(run, "small3", note="A test.")
    assert weights.list_weights() == ["hgru_small.small3"] == [made.name]
    assert weights.card(made.name) == made
    network = weights.load_weights(made.name)
    assert not network.training
    for name, value in load_file(run / "weights.safetensors").items():
        assert torch.equal(network.state_dict()[name], value)


def test_the_card_says_how_it_was_made(run, shelf):
    made = weights.publish(run, "small3")
    assert made.command == ("hgru train own --model hgru_small --preset paper --length 3 --seed 0")
    assert made.result.test_images == 8


def test_damage_is_noticed(run, shelf):
    weights.publish(run, "small3")
    path = shelf / "hgru_small.small3.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"hgru_small.small3.safetensors is damaged: its sha256"):
        weights.load_weights("hgru_small.small3")


def test_an_unknown_name_is_refused(run, shelf):
    with pytest.raises(ValueError, match=r"no weights 'hgru.x'; there are none yet"):
        weights.card("hgru.x")
    weights.publish(run, "small3")
    with pytest.raises(ValueError, match=r"did you mean 'hgru_small.small3'"):
        weights.load_weights("hgru_small.smal3")


def test_another_schema_is_refused(run, shelf):
    weights.publish(run, "small3")
    path = shelf / "hgru_small.small3.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 9}))
    with pytest.raises(ValueError, match=r"hgru_small.small3.json has schema 9; this version"):
        weights.card("hgru_small.small3")


def test_only_finished_runs_are_published(run, shelf, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is no run's folder: it has no config.json"):
        weights.publish(tmp_path, "x")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(ValueError, match="has not ended; only a finished one is published"):
        weights.publish(other, "x")


@pytest.mark.parametrize("name", weights.list_weights())
def test_all_that_come_with_the_package_load(name):
    network = weights.load_weights(name)
    size = weights.card(name).config.task.changes.get("canvas", 150)
    with torch.no_grad():
        assert network(torch.zeros(1, 1, size, size)).shape == (1, 2)
