import numpy as np
import pytest
from PIL import Image

from hgru_vision.analysis.prediction_folder import PredictionFolder


class Pictures:
    ids = ("100", "200")

    def annotations(self, name):
        return np.zeros((2, 4, 6) if name == "100" else (2, 6, 4), np.uint8)


@pytest.fixture
def folder(tmp_path):
    Image.fromarray(np.full((4, 6), 51, np.uint8)).save(tmp_path / "100.png")
    np.save(tmp_path / "200.npy", np.full((6, 4), 0.75, np.float32))
    (tmp_path / "notes.txt").write_text("more may be there")
    return tmp_path


def test_pictures_and_arrays_are_read(folder):
    maps = PredictionFolder(folder, Pictures())
    assert list(maps) == ["100", "200"] and len(maps) == 2
    assert maps["100"].shape == (4, 6) and (maps["100"] == 0.2).all()
    assert (maps["200"] == 0.75).all() and maps["200"].dtype == np.float64


def test_sixteen_and_one_bits_are_read(folder):
    Image.fromarray(np.full((4, 6), 13107, np.uint16)).save(folder / "100.png")
    assert (PredictionFolder(folder, Pictures())["100"] == 0.2).all()
    Image.fromarray(np.ones((4, 6), bool)).save(folder / "100.png")
    assert (PredictionFolder(folder, Pictures())["100"] == 1).all()


def test_missing_predictions_are_named(folder):
    (folder / "200.npy").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"no prediction for picture 200: neither 200\.png nor 200\.npy"
    ):
        PredictionFolder(folder, Pictures())
    with pytest.raises(FileNotFoundError, match=r"nowhere is no folder; it should hold a \.png or"):
        PredictionFolder(folder / "nowhere", Pictures())


def test_two_predictions_for_one_picture_are_refused(folder):
    np.save(folder / "100.npy", np.zeros((4, 6)))
    with pytest.raises(ValueError, match=r"two predictions for one picture: 100\.png, 100\.npy"):
        PredictionFolder(folder, Pictures())


def test_wrong_ones_are_named_at_the_start(folder):
    path = folder / "200.npy"
    np.save(path, np.zeros((4, 6)))
    with pytest.raises(ValueError, match=r"200\.npy is 4x6; its picture is 6x4"):
        PredictionFolder(folder, Pictures())
    np.save(path, np.full((6, 4), -0.5))
    with pytest.raises(ValueError, match=r"200\.npy has -0\.5 at row 0, column 0"):
        PredictionFolder(folder, Pictures())
    path.write_bytes(b"nothing of use")
    with pytest.raises(ValueError, match=r"200\.npy cannot be read: "):
        PredictionFolder(folder, Pictures())
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"200\.npy cannot be read: "):
        PredictionFolder(folder, Pictures())


def test_pictures_that_are_not_grey_or_whole_are_named(folder):
    path = folder / "100.png"
    Image.new("RGB", (6, 4)).save(path)
    with pytest.raises(ValueError, match=r"100\.png is of kind RGB; a grey picture of 8 or 16"):
        PredictionFolder(folder, Pictures())
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (4, 6), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"100\.png cannot be read: "):
        PredictionFolder(folder, Pictures())
