import json
import os
import shutil

import pytest
import torch

from hgru_vision.data.store import write
from hgru_vision.training.checkpoint import (
    CheckpointError,
    build,
    load_checkpoint,
    load_run,
    save_checkpoint,
)
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.data import training_data
from hgru_vision.training.files import has_checkpoint, write_json


def save(folder, config, number):
    save_checkpoint(folder, config, {"number": number, "network": build(config).state_dict()})


def test_the_newest_is_read_and_the_one_before_kept(tiny, tmp_path):
    assert load_checkpoint(tmp_path) is None
    for number in range(3):
        save(tmp_path, tiny(), number)
        assert load_checkpoint(tmp_path, tiny())["number"] == number
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint.previous.pt",
        "checkpoint.pt",
    ]
    (tmp_path / "checkpoint.pt").unlink()
    assert load_checkpoint(tmp_path)["number"] == 1


@pytest.mark.parametrize("renames", [0, 1])
def test_a_kill_between_its_renames_costs_nothing(tiny, tmp_path, monkeypatch, renames):
    save(tmp_path, tiny(), 0)
    (tmp_path / "checkpoint.pt").write_bytes(b"damaged, as nothing else need be lost")
    done, replace = [], os.replace

    def killed(source, target):
        if not str(source).endswith(".partial"):
            if len(done) == renames:
                raise KeyboardInterrupt
            done.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, tiny(), 1)
    assert has_checkpoint(tmp_path)
    assert load_checkpoint(tmp_path, tiny())["number"] == 1
    monkeypatch.undo()
    save(tmp_path, tiny(), 2)
    assert load_checkpoint(tmp_path, tiny())["number"] == 2


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "directory"])
def test_a_damaged_one_falls_back_and_says_so(tiny, tmp_path, capsys, damage):
    save(tmp_path, tiny(), 0)
    save(tmp_path, tiny(), 1)
    newest = tmp_path / "checkpoint.pt"
    content = bytearray(newest.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 0xFF
    directory = bytearray(newest.read_bytes())
    directory[directory.rindex(b"PK\x01\x02") + 10] ^= 8  # says that its file is compressed
    damaged = {
        "truncated": content[:middle], "empty": b"", "flipped": content, "directory": directory,
    }[damage]  # fmt: skip
    newest.write_bytes(bytes(damaged))
    assert load_checkpoint(tmp_path)["number"] == 0
    note = " ".join(capsys.readouterr().err.split())
    assert "checkpoint.pt is truncated or damaged" in note
    assert "going on from checkpoint.previous.pt" in note


def test_no_whole_one_is_an_error_that_names_the_file(tiny, tmp_path):
    save(tmp_path, tiny(), 0)
    (tmp_path / "checkpoint.pt").write_bytes(b"PK")
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(tmp_path)
    assert f"{tmp_path / 'checkpoint.pt'} is truncated or damaged" in str(error.value)
    assert "no whole checkpoint is left: start again in another folder" in str(error.value)


def test_a_pickle_is_not_opened(tiny, tmp_path):
    torch.save({"config": tiny()}, tmp_path / "checkpoint.pt")
    with pytest.raises(CheckpointError, match="truncated or damaged"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seed": 3}, "options has seed, which follows from the run's seed: change seed instead"),
        (
            {"head": "pixels"},
            "options has head, which follows from the run's target: change target",
        ),
    ],
)
def test_what_a_field_of_the_run_says_is_no_option(tiny, options, text):
    with pytest.raises(ValueError, match=text):
        build(tiny(options=options))


def test_another_configuration_is_refused(tiny, tmp_path):
    save(tmp_path, tiny(), 0)
    with pytest.raises(ValueError, match=r"holds another run: clip: 1\.0 there, None here"):
        load_checkpoint(tmp_path, tiny(clip=None))


def test_images_of_another_generator_are_refused(tiny, tmp_path, monkeypatch):
    save(tmp_path, tiny(), 0)
    monkeypatch.setattr("hgru_vision.training.checkpoint.VERSIONS", {"pathfinder": 99})
    with pytest.raises(ValueError, match="images of pathfinder, version 1, this is version 99"):
        load_checkpoint(tmp_path, tiny())


def test_other_files_are_refused(tiny, tmp_path):
    stream = training_data(tiny(), 0).sources[0]
    stream.count = 120
    config = tiny(stages=(Stage(sources=(Source(path=str(tmp_path / "files")),), images=96),))
    write(stream, tmp_path / "files")
    save(tmp_path, config, 0)
    assert load_checkpoint(tmp_path, config)["number"] == 0
    shutil.rmtree(tmp_path / "files")
    assert load_checkpoint(tmp_path, config)["number"] == 0  # a run can be looked at without them
    stream.seed = 7
    write(stream, tmp_path / "files")
    with pytest.raises(ValueError, match=r"on images of .*files, version .* which are others"):
        load_checkpoint(tmp_path, config)


def test_a_run_that_goes_on_is_loaded_from_its_checkpoint(tiny, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is no run's folder: it has no config\.json"):
        load_run(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"json; for networks that .* package: load_weights"
    ):
        load_run("hgru.pathfinder14")
    write_json(tmp_path / "config.json", tiny().to_json())
    with pytest.raises(FileNotFoundError, match=r"has neither weights\.safetensors nor checkpoint"):
        load_run(tmp_path)
    save(tmp_path, tiny(), 0)
    network, config = load_run(tmp_path)
    assert config == tiny()
    assert not network.training


def test_a_configuration_that_is_no_json_is_named(tiny, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(tiny().to_json())[:-5])
    with pytest.raises(ValueError, match=r"config\.json is not JSON .* remove it to do without"):
        load_run(tmp_path)
