import math
from dataclasses import replace

import pytest

from hgru_vision.intervals import wilson_interval
from hgru_vision.training.result import Result, area_under_curve


def test_the_area_under_a_curve_is_the_mean_accuracy():
    assert area_under_curve([0.5, 0.5, 0.6, 0.9, 1.0]) == pytest.approx(3.5 / 5)
    assert area_under_curve([0.5]) == 0.5


def test_a_curve_that_is_none_is_refused():
    with pytest.raises(ValueError, match="there is no evaluation to take the area under"):
        area_under_curve([])
    with pytest.raises(ValueError, match=r"accuracies\[1\] must be from 0 to 1; got 50"):
        area_under_curve([0.5, 50])
    with pytest.raises(ValueError, match=r"accuracies\[0\] must be from 0 to 1; got nan"):
        area_under_curve([math.nan])


def test_labels_have_an_interval_and_pixels_have_none(row):
    labels = row(accuracy=0.9).result
    assert labels.interval == wilson_interval(9000, 10_000)
    assert replace(labels, overlap=0.5).interval is None
    assert row(accuracy=None).result.interval is None


def test_an_accuracy_is_a_share(row):
    with pytest.raises(ValueError, match="accuracy must be from 0 to 1; got 7"):
        replace(row().result, accuracy=7)


def test_a_result_without_the_newest_field_is_read(row):
    old = row().result.to_json()
    del old["overlap"]
    assert Result.from_json(old) == row().result
