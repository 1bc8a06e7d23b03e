import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from hgru_vision import weights
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.files import write_json
from hgru_vision.training.loop import train

ROOT = Path(__file__).parents[2]
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hgru_vision.training.outcome._shortcut", lambda _: None)  # takes seconds
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


def test_weights_that_do_not_fit_are_not_published(run, shelf, tmp_path_factory):
    other = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(run, other)
    numbers = other / "weights.safetensors"
    content = numbers.read_bytes()
    numbers.write_bytes(content[:1000])
    with pytest.raises(
        ValueError, match=r"weights\.safetensors is damaged, or no file of weights: "
    ):
        weights.publish(other, "small3")
    save_file({"other": torch.zeros(1)}, numbers)
    with pytest.raises(ValueError, match=r"has the weights of another network: Missing key"):
        weights.publish(other, "small3")
    assert weights.list_weights() == []


def test_weights_half_replaced_are_no_weights(run, shelf, monkeypatch):
    weights.publish(run, "small3")

    def interrupted(path, value):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hgru_vision.training.files.write_json", interrupted)
        with pytest.raises(KeyboardInterrupt):
            weights.publish(run, "small3", replace_old=True)
    assert weights.list_weights() == []
    weights.publish(run, "small3")
    assert weights.list_weights() == ["hgru_small.small3"]


def test_the_card_says_how_it_was_made(run, shelf):
    made = weights.publish(run, "small3")
    assert made.command == "hgru train --config hgru_small.small3 --out runs/hgru_small.small3"
    assert made.result.test_images == 8
    assert made.size == (run / "weights.safetensors").stat().st_size


def test_a_card_names_the_weights_that_its_run_began_from(run, shelf, tmp_path_factory):
    config = RunConfig.from_json(json.loads((run / "config.json").read_text()))
    folder = tmp_path_factory.mktemp("second") / "run"
    shutil.copytree(run, folder)
    write_json(folder / "config.json", replace(config, start=str(run)).to_json())
    with pytest.raises(
        ValueError, match=r"means nothing on another machine, and a ledger or a card"
    ):
        weights.publish(folder, "second")
    weights.publish(run, "first")
    second = weights.publish(folder, "third")
    assert second.config.start == "hgru_small.first"
    assert second.config.hash == replace(config, start=str(run)).hash


@pytest.mark.parametrize("tag", ["", "a.b", "A", "../x"])
def test_a_tag_that_names_no_file_is_refused(run, shelf, tag):
    with pytest.raises(ValueError, match=r"a tag has small letters, digits, - and _, as path.*got"):
        weights.publish(run, tag)
    assert weights.list_weights() == []


def test_the_package_has_them_at_its_first_level(run, shelf):
    import hgru_vision as hv

    made = weights.publish(run, "small3")
    assert hv.list_weights() == [made.name]
    assert not hv.load_weights(made.name).training


@pytest.mark.slow
def test_a_wheel_holds_them(tmp_path):
    """Build the package with a pair of files in it, from a copy."""
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    root = tmp_path / "copy"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", root / "src", ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, root)
    names = {f"hgru_vision/weights/hgru.x{ending}" for ending in (".json", ".safetensors")}
    for name in names:
        (root / "src" / name).touch()
    (wheel,) = hatchling.WheelBuilder(str(root)).build(directory=str(tmp_path / "dist"))
    assert names < set(zipfile.ZipFile(wheel).namelist())


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
    with pytest.raises(ValueError, match="for the folder of a run there is load_run of hgru_v"):
        weights.load_weights(str(run))


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
    network, config = weights.load_weights(name), weights.card(name).config
    side = 32 if config.boundaries else config.task.changes.get("canvas", 150)
    pixels = (side, side) if config.target == "segmentation" else ()
    with torch.no_grad():
        assert network(torch.zeros(1, 1, side, side)).shape == (1, 2, *pixels)


def test_a_network_of_ones_own_is_not_published(run, shelf, nets):
    shutil.copytree(run, "own")
    config = json.loads(Path("own/config.json").read_text())
    own = RunConfig.from_json(config | {"model": "nets.py:leaky"})
    write_json(Path("own/config.json"), own.to_json())
    with pytest.raises(ValueError) as refused:
        weights.publish(Path("own"), "mine")
    assert str(refused.value) == (
        "nets.py:leaky is a network of your own; weights are published of the package's networks "
        "alone. Its folder, own, can be given wherever their names can"
    )
    assert weights.list_weights() == []


def test_numbers_in_names_count_by_their_value():
    names = [each for each in weights.list_weights() if each.startswith("hgru.matched")]
    assert names == ["hgru.matched6", "hgru.matched9", "hgru.matched14"]
