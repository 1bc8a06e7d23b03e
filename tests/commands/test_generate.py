import json

import numpy as np
import pytest

from hgru_vision.cli import main
from hgru_vision.commands.generate import rebuild
from hgru_vision.data.contours import SyntheticContours
from hgru_vision.data.manifest import Manifest
from hgru_vision.data.readers import open_dataset
from hgru_vision.stimuli import images, preset

SMALL = ["--set", "canvas=40", "edge_margin=2", "distractor_paddles=6"]


def test_files_hold_the_images_of_the_dataset(tmp_path, capsys):
    folder = str(tmp_path / "files")
    arguments = ["generate", "pathfinder", "--length", "3", "--count", "60", "--seed", "5"]
    arguments += ["--shard-size", "25", "--out", folder, *SMALL]
    assert main(arguments) == 0
    config = preset("paper", length=3, canvas=40, edge_margin=2.0, distractor_paddles=6)
    np.testing.assert_array_equal(
        open_dataset(folder).batch(np.arange(60)), images(config, 5, np.arange(60))
    )
    assert main(["generate", "--verify", folder]) == 0
    assert "60 items drawn again, equal" in capsys.readouterr().out
    assert main(arguments) == 0  # nothing left to do


@pytest.mark.parametrize(("split", "target"), [("train", "label"), ("test", "segmentation")])
def test_files_of_the_released_program_are_drawn_again_too(tmp_path, capsys, split, target):
    folder = str(tmp_path / "files")
    arguments = ["generate", "pathfinder", "--preset", "lra-128", "--length", "6", "--count", "6"]
    arguments += ["--format", "png", "--split", split, "--target", target]
    assert main([*arguments, "--out", folder]) == 0
    assert main(["generate", "--verify", folder, "--regenerate", "6"]) == 0
    assert "6 items drawn again, equal" in capsys.readouterr().out


def test_files_that_are_not_all_there_are_no_success(tmp_path, capsys):
    folder = tmp_path / "files"
    arguments = ["generate", "pathfinder", "--length", "3", "--count", "10", "--shard-size", "5"]
    main([*arguments, "--out", str(folder), *SMALL])
    manifest = folder / "manifest.json"
    content = json.loads(manifest.read_text())
    content["shards"].pop()
    manifest.write_text(json.dumps(content))
    for file in folder.glob("*-00001.npy"):
        file.unlink()
    capsys.readouterr()
    assert main(["generate", "--verify", str(folder)]) == 2
    said = capsys.readouterr()
    assert "5 of 10 items (incomplete)" in said.out
    assert f"{folder} is incomplete; give the command that wrote it again" in said.err


def test_a_changed_file_is_named(tmp_path, capsys):
    folder = tmp_path / "files"
    main(["generate", "pathfinder", "--length", "3", "--count", "10", "--out", str(folder), *SMALL])
    file = folder / "labels-00000.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\x07")
    assert main(["generate", "--verify", str(folder)]) == 2
    assert "labels-00000.npy" in capsys.readouterr().err


def test_a_contact_sheet_alone(tmp_path, capsys):
    sheet = tmp_path / "new" / "sheet.png"
    assert (
        main(
            [
                "generate",
                "pathfinder",
                "--length",
                "6",
                "--contact-sheet",
                str(sheet),
                "--show-paths",
            ]
        )
        == 0
    )
    assert sheet.stat().st_size > 10_000
    assert f"wrote {sheet}" in capsys.readouterr().out


def test_somewhere_to_go_is_needed(capsys):
    assert main(["generate", "pathfinder"]) == 2
    assert "say where the images go: --out FOLDER, --contact-sheet FILE" in capsys.readouterr().err


def test_a_contact_sheet_inside_the_dataset_is_refused(tmp_path, capsys):
    out = tmp_path / "new"
    assert (
        main(["generate", "pathfinder", "--out", str(out), "--contact-sheet", f"{out}/s.png"]) == 2
    )
    assert "s.png lies in " in capsys.readouterr().err
    assert not out.exists()


def test_fewer_than_no_images_are_not_drawn_again(tmp_path, capsys):
    assert main(["generate", "--verify", str(tmp_path), "--regenerate", "-5"]) == 2
    assert "--regenerate must be 0 or more; got -5" in capsys.readouterr().err


def test_a_folder_named_as_markup_is_told_as_it_is(tmp_path, capsys):
    folder = tmp_path / "a[red]b"
    main(["generate", "pathfinder", "--length", "3", "--count", "10", "--out", str(folder), *SMALL])
    capsys.readouterr()
    assert main(["generate", "--verify", str(folder)]) == 0
    assert str(folder) in capsys.readouterr().out


@pytest.mark.parametrize("change", [lambda s: s.pop("config"), lambda s: s["config"].update(new=1)])
def test_a_manifest_of_another_version_is_told(tmp_path, change):
    main(
        ["generate", "pathfinder", "--length", "3", "--count", "4", "--out", str(tmp_path), *SMALL]
    )
    manifest = tmp_path / "manifest.json"
    content = json.loads(manifest.read_text())
    change(content["source"])
    manifest.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="the manifest does not say how its images were drawn"):
        rebuild(Manifest.read(tmp_path))


def test_files_of_another_generator_are_checked_by_their_bytes_alone(tmp_path):
    folder = tmp_path / "files"
    main(["generate", "pathfinder", "--length", "3", "--count", "10", "--out", str(folder), *SMALL])
    manifest = folder / "manifest.json"
    content = json.loads(manifest.read_text())
    content["source"]["generator"] = "Other"
    manifest.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"not drawn by a Pathfinder or synthetic .*'Other'"):
        rebuild(Manifest.read(folder))


TINY = ["--canvas", "32", "--cells", "8", "--eccentricity", "0.5"]


def test_contours_are_written_and_drawn_again(tmp_path, capsys):
    folder, sheet = tmp_path / "files", tmp_path / "sheet.png"
    arguments = ["generate", "contours", "--length", "3", "--shear", "0.2", "--count", "20"]
    arguments += ["--seed", "5", "--out", str(folder), "--contact-sheet", str(sheet), *TINY]
    assert main(arguments) == 0
    assert f"wrote {sheet}" in capsys.readouterr().out
    assert sheet.stat().st_size > 10_000
    data = SyntheticContours(
        length=3, shear=0.2, count=20, seed=5, canvas=32, cells=8, eccentricity=0.5
    )
    np.testing.assert_array_equal(open_dataset(folder).batch(np.arange(20)), data.batch(range(20)))
    assert rebuild(Manifest.read(folder)).config == data.config
    assert main(["generate", "--verify", str(folder)]) == 0
    assert "20 items drawn again, equal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "say where the images go: --out FOLDER, --contact-sheet FILE"),
        (["--shear", "3", "--out", "x"], "shear must be from -1 to 1; got 3.0"),
        (["--length", "40", "--out", "x"], "length=40 does not fit"),
    ],
)
def test_contours_that_cannot_be_written_are_refused(flags, message, capsys):
    assert main(["generate", "contours", *flags]) == 2
    assert message in capsys.readouterr().err
