import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from hgru_vision.analysis.predict_boundaries import predict_boundaries, write_predictions
from hgru_vision.analysis.prediction_folder import PredictionFolder
from hgru_vision.data.bsds import BSDS500


class Bright(nn.Module):
    """Says that a boundary is where the image is bright."""

    def forward(self, images):
        light = images.mean(dim=1) * 4 - 2
        return torch.stack([-light, light], dim=1)


@pytest.fixture
def data(natural):
    return BSDS500(natural, "val", allow_partial=True)


def test_a_prediction_is_a_probability_a_pixel(data):
    image = data.image("100")
    map_ = predict_boundaries(Bright(), image)
    light = image.mean(axis=2) / 255 * 4 - 2
    np.testing.assert_allclose(map_, 1 / (1 + np.exp(-2 * light)), atol=1e-6)


def test_predictions_are_read_as_they_were_made(data, tmp_path):
    done = []
    write_predictions(Bright(), data, tmp_path / "new" / "maps", progress=done.append)
    assert done == [1, 2, 3] and not list((tmp_path / "new").glob(".*"))
    maps = PredictionFolder(tmp_path / "new" / "maps", data)
    for name in data.ids:
        wanted = predict_boundaries(Bright(), data.image(name))
        np.testing.assert_allclose(maps[name], wanted, atol=1e-5)
    with Image.open(tmp_path / "new" / "maps" / "101.png") as picture:
        assert picture.mode == "I;16"


def test_a_folder_appears_whole_or_not_at_all(data, tmp_path):
    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_predictions(Bright(), data, tmp_path / "maps", progress=stop)
    assert not (tmp_path / "maps").exists()
    write_predictions(Bright(), data, tmp_path / "maps")
    assert len(list((tmp_path / "maps").iterdir())) == 3
    with pytest.raises(FileExistsError, match="maps exists; score it as it is, or give a new fold"):
        write_predictions(Bright(), data, tmp_path / "maps")


def test_a_network_for_labels_is_refused(data):
    class Label(nn.Module):
        def forward(self, images):
            return images.new_zeros(len(images), 2)

    message = r"of shape \(1, 2, 40, 48\), got \(1, 2\); was it trained on boundaries\?"
    with pytest.raises(ValueError, match=message):
        predict_boundaries(Label(), data.image("100"))
