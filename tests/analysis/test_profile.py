import numpy as np
import pytest

from hgru_vision.analysis.profile import accuracy_by_quantile
from hgru_vision.intervals import wilson_interval


def test_parts_hold_equally_many_and_count_what_is_right():
    values = np.arange(80.0)[::-1]
    parts = accuracy_by_quantile(values, values < 30, bins=4)
    assert [part.n for part in parts] == [20, 20, 20, 20]
    assert [part.accuracy for part in parts] == [1.0, 0.5, 0.0, 0.0]
    assert (parts[1].low, parts[1].high) == wilson_interval(10, 20)
    assert parts[0].start == 0 and parts[-1].end == 79


def test_equal_values_make_fewer_parts_and_lose_no_image():
    parts = accuracy_by_quantile([5, 5, 5, 5, 5, 9], np.ones(6, bool), bins=3)
    assert sum(part.n for part in parts) == 6
    (part,) = accuracy_by_quantile([5, 5], [True, False], bins=3)
    assert (part.start, part.end, part.accuracy, part.n) == (5, 5, 0.5, 2)


def test_what_cannot_be_split_is_refused():
    with pytest.raises(ValueError, match=r"right must be bool of the shape of values, \(2,\); got"):
        accuracy_by_quantile([1, 2], [1, 0])
    with pytest.raises(ValueError, match="there is no image to split"):
        accuracy_by_quantile([], np.zeros(0, bool))
    with pytest.raises(ValueError, match="bins must be 1 or more; got 0"):
        accuracy_by_quantile([1], [True], bins=0)


def test_there_are_no_more_parts_than_images():
    parts = accuracy_by_quantile([1, 2, 3, 4], np.ones(4, bool), bins=1_000_000)
    assert [(part.start, part.n) for part in parts] == [(1, 1), (1.75, 1), (2.5, 1), (3.25, 1)]
