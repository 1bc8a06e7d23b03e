import numpy as np
import pytest

from hgru_vision.stimuli.contour_audit import LINKING, audit_contours, contour_features
from hgru_vision.stimuli.contours import ContourConfig, draw, labels, scenes


def accuracies(**changes):
    report = audit_contours(ContourConfig(length=9, canvas=128, **changes), count=1000)
    return report, {row.features: row.accuracy for row in report.rows}


def test_scattered_paddles_close_what_counting_directions_tells():
    report, found = accuracies()
    shortcuts = [found[name] for name in found if name not in LINKING]
    assert max(shortcuts) == report.best.accuracy < 0.56  # 3.8 standard errors
    assert found["aligned neighbours"] > 0.95
    assert found["longest aligned run"] > 0.99


def test_without_them_directions_tell_the_label():
    report, found = accuracies(scattered=False)
    assert found["directions"] > 0.8
    assert found["directions near the centre"] > 0.95
    assert report.best.features == "directions near the centre"


def test_features_follow_the_images():
    config = ContourConfig(length=9, shear=0.2)
    features = contour_features(config, 0, np.arange(20))
    label = labels(config, 0, np.arange(20))
    run = features["longest aligned run"][:, 0]
    assert (run[label == 1] >= 9).all()
    assert (run[label == 0] < 9).all()
    assert (features["directions"][:, 0] >= 9).all()
    total = features["ink by ninths"].sum(1)
    np.testing.assert_allclose(total, features["ink"][:, 0] * 256**2)
    assert (features["aligned by ninths"].sum(1) == features["directions"][:, 1]).all()


def test_ninths_are_counted_row_by_row():
    config = ContourConfig(length=9, shear=0.2)
    found = contour_features(config, 0, np.arange(4))["aligned by ninths"]
    for index in range(4):
        stimulus = draw(config, 0, index)
        direction = scenes(config, 0, [index]).directions[0]
        expected = np.zeros((3, 3))
        for x, y, angle, _ in stimulus.paddles:
            if abs(np.sin(angle - direction)) < np.sin(np.deg2rad(3)):
                expected[int(y * 3 / 256), int(x * 3 / 256)] += 1
        assert found[index].tolist() == expected.ravel().tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 1}, "folds must be 2 or more, got 1"),
        ({"count": 9}, "count must be even and at least 10, got 9"),
        ({"count": 8}, "count must be even and at least 10, got 8"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        audit_contours(ContourConfig(), **arguments)
