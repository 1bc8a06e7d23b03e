import numpy as np
import pytest

from hgru_vision.data.items import checked_description, draw


def drawn(source):
    return list(draw(source, checked_description(source), 0, len(source), None))


@pytest.mark.parametrize(
    ("method", "result", "message"),
    [
        (
            "batch",
            np.zeros((23, 9, 7)),
            r"source.batch returned float64 of shape \(23, 9, 7\); uint8",
        ),
        (
            "batch",
            np.zeros((23, 7, 9), np.uint8),
            r"shape \(23, 7, 9\); uint8 of shape \(23, 9, 7\)",
        ),
        ("batch", np.full((23, 9, 7), 9, np.uint8), "other than 0 and 255, but .* says binary"),
        ("labels", np.zeros(22, np.int64), r"source.labels returned int64 of shape \(22,\); int64"),
        ("labels", np.arange(-1, 22), "source.labels returned values from -1 to 21; a shard holds"),
        ("labels", np.arange(234, 257), "source.labels returned values from 234 to 256; a shard"),
        ("segmentations", np.full((23, 9, 7), 255, np.uint8), "returned 255; a mask holds 0 and 1"),
        ("segmentations", np.full((23, 9, 7), 2, np.uint8), "returned 2; a mask holds 0 and 1"),
    ],
)
def test_a_source_that_breaks_its_promise_is_named(FakeSource, method, result, message):
    source = FakeSource(target="segmentation")
    setattr(source, method, lambda indices: result)
    with pytest.raises(ValueError, match=message):
        drawn(source)


def test_a_description_that_lacks_a_key_is_named(FakeSource):
    source = FakeSource()
    source.describe = lambda: {"stimulus": "x", "target": "label"}
    with pytest.raises(ValueError, match=r"lacks 'height'; it has stimulus, target"):
        checked_description(source)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("height", 9.0, r"describe\(\) has height = 9\.0; a whole number is wanted"),
        ("width", True, r"describe\(\) has width = True; a whole number is wanted"),
        ("seed", np.int64(3), r"describe\(\) holds what JSON cannot: .*int64 is not JSON"),
        ("seed", float("nan"), r"describe\(\) holds what JSON cannot: Out of range float"),
    ],
)
def test_a_description_that_no_manifest_can_hold_is_refused(FakeSource, key, value, message):
    source = FakeSource()
    description = source.describe() | {key: value}
    source.describe = lambda: description
    with pytest.raises(ValueError, match=message):
        checked_description(source)


def test_masks_are_asked_for_only_if_they_are_the_target(FakeSource):
    source = FakeSource()
    source.segmentations = None
    assert drawn(source)[0].masks is None
