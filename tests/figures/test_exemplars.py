import numpy as np
import pytest

from hgru_vision.analysis.study import studies
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.figures.exemplars import exemplars
from hgru_vision.figures.style import NothingToDraw


def test_each_length_has_a_positive_test_image(row):
    (study,) = studies([row(length=9, data_seed=3), row(length=6, data_seed=3)])
    axes = exemplars(study).axes
    assert [each.get_title(loc="left") for each in axes] == ["6 paddles", "9 paddles", "", ""]
    data = Pathfinder(length=6, count=2, seed=3, split="test")
    positive = int(data.labels([0, 1]).argmax())
    shown = axes[0].images[0].get_array()
    np.testing.assert_array_equal(shown, data.batch([positive])[0] / 255)
    assert axes[2].images[0].get_array().shape == (150, 150, 3)


def test_one_marker_connects_nothing(row):
    (study,) = studies([row(preset="crbp-14", target="segmentation")])
    assert "a marked path; below" in exemplars(study).get_suptitle()


def test_a_ledger_does_not_hold_files(row):
    (study,) = studies([row(path="somewhere")])
    with pytest.raises(NothingToDraw, match="its images are files, which a ledger does not hold"):
        exemplars(study)
