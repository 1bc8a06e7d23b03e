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
    (predictions / "2.npy").unlink()
    assert run(predictions, root) == 2
    assert "no prediction for picture 2" in capsys.readouterr().err
