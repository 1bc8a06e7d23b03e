import json

import numpy as np
import pytest
from PIL import Image

from hgru_vision.cli import main


@pytest.fixture
def root(tmp_path):
    """Two pictures of one split; two people marked the same line in each."""
    folder = tmp_path / "bsds"
    (folder / "images" / "val").mkdir(parents=True)
    maps = np.zeros((4, 30, 40), np.uint8)
    maps[:, 15, 5:35] = 1
    for name in ("1", "2"):
        Image.new("RGB", (40, 30)).save(folder / "images" / "val" / f"{name}.jpg")
    np.savez(
        folder / "gt_val.npz",
        ids=["1", "2"],
        shapes=[(30, 40)] * 2,
        n_annot=[2, 2],
        start=[0, 2],
        packed=np.packbits(maps.reshape(4, -1), axis=1),
    )
    return folder


@pytest.fixture
def predictions(tmp_path):
    folder = tmp_path / "maps"
    folder.mkdir()
    prediction = np.zeros((30, 40))
    prediction[15, 5:35] = 0.75
    for name in ("1", "2"):
        np.save(folder / f"{name}.npy", prediction)
    return folder


def run(predictions, root, *more):
    flags = ["--root", str(root), "--split", "val", "--thresholds", "9", "--allow-partial"]
    return main(["eval-boundaries", str(predictions), *flags, *map(str, more)])


def test_the_score_is_printed_drawn_and_written(predictions, root, tmp_path, capsys):
    figure, numbers = tmp_path / "new" / "pr.png", tmp_path / "more" / "score.json"
    assert run(predictions, root, "--figure", figure, "--json", numbers) == 0
    printed = capsys.readouterr().out
    assert "ODS" in printed and "1.0000" in printed and "2 pictures" in printed
    assert figure.read_bytes().startswith(b"\x89PNG")
    written = json.loads(numbers.read_text())
    assert written["ods"]["f"] == written["ois"]["f"] == 1
    assert written["split"] == "val" and list(written["pictures"]) == ["1", "2"]
    assert written["curve"]["f"] == [1.0] * 7 + [0.0] * 2


def test_the_official_numbers_come_out(shared_data, tmp_path):
    bench = shared_data / "bsds500-bench" / "data"
    for name in ("images", "groundTruth"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "val").symlink_to(bench / name)
    numbers = tmp_path / "score.json"
    assert run(bench / "png", tmp_path, "--thresholds", 5, "--json", numbers) == 0
    written = json.loads(numbers.read_text())
    official = np.loadtxt(bench / "test_2" / "eval_bdry.txt")
    ours = [*written["ods"].values(), *list(written["ois"].values())[1:]]
    np.testing.assert_allclose([*ours, written["average_precision"]], official, atol=5e-4)


def test_bad_input_is_one_line(predictions, root, tmp_path, capsys):
    assert run(predictions, root / "nothing") == 2
    assert "nothing is no folder; BSDS500 has" in capsys.readouterr().err
    assert run(predictions, root, "--figure", "pr.jpeg") == 2
    assert "pictures end in .svg, .pdf, .png" in capsys.readouterr().err
    maps = tmp_path / "new"  # nothing is predicted for a score that cannot be had
    for flags, text in (
        (["--thresholds", "0"], "there must be 1 threshold or more; got 0"),
        (["--radius", "2"], "radius must be between 0 and 1"),
    ):
        assert run(maps, root, "--run", "contour_hgru.bsds500", *flags) == 2
        assert text in capsys.readouterr().err
        assert not maps.exists()
    (predictions / "2.npy").unlink()
    assert run(predictions, root) == 2
    assert "no prediction for picture 2" in capsys.readouterr().err


@pytest.fixture
def network(tmp_path):
    """A file with a network for pixels that finds the middle row of the pictures."""
    path = tmp_path / "own.py"
    path.write_text(
        "import torch\n"
        "class Middle(torch.nn.Module):\n"
        "    def forward(self, images):\n"
        "        rows = torch.arange(images.shape[2]).view(1, -1, 1) - 15\n"
        "        said = (-rows.abs()).expand(len(images), *images.shape[2:]) * 1.0\n"
        "        return torch.stack([-said - 2, said], dim=1)\n"
    )
    return f"{path}:Middle"


def test_a_network_predicts_first(root, network, tmp_path, capsys):
    numbers = tmp_path / "score.json"
    maps = tmp_path / "maps"
    assert run(maps, root, "--run", network, "--device", "cpu", "--json", numbers) == 0
    broad = json.loads(numbers.read_text())
    assert sorted(path.name for path in maps.iterdir()) == ["1.png", "2.png"]
    assert run(maps, root, "--run", network) == 2
    assert "maps exists; score it as it is" in capsys.readouterr().err
    assert run(maps, root, "--nms", "--json", numbers) == 0
    crest = json.loads(numbers.read_text())
    assert (broad["nms"], crest["nms"]) == (False, True)
    assert crest["ods"]["f"] > 0.8  # a line through the whole picture, of which 30 of 40 are marked
    assert crest["curve"] != broad["curve"]


def test_the_run_of_a_recipe_is_scored(natural, tmp_path, capsys):
    from dataclasses import replace

    from hgru_vision.recipes import make_run
    from hgru_vision.training.loop import train

    config = make_run(
        "boundaries",
        root=str(natural),
        options={"channels": 4, "kernel_size": 3, "timesteps": 2},
        changes={"crop": 32, "allow_partial": True},
    )
    stage = replace(config.stages[0], images=8)
    small = {"batch": 4, "evaluation_images": 3, "test_images": 3, "statistics_batches": 1}
    train(replace(config, stages=(stage,), **small), tmp_path / "run", progress=False)
    assert run(tmp_path / "maps", natural, "--run", tmp_path / "run", "--nms") == 0
    assert "Boundaries of 3 pictures" in capsys.readouterr().out
