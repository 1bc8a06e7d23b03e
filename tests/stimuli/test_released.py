"""The released generator's statistics, against those of images drawn by the authors' program."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from hgru_vision.stimuli import (
    ReleasedConfig,
    UnsatisfiableError,
    draw,
    images,
    labels,
    preset,
    released,
    scenes,
)
from hgru_vision.stimuli.scenes import NO_PATH

QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
IMAGES = 3_000


@pytest.fixture(scope="module")
def reference(shared_data):
    return json.loads((shared_data / "reference/authors-generator-statistics.json").read_text())


def check(name, expected, values, independent):
    """Each quantile splits our values as it does theirs, within their sampling error.

    Values on a lattice come in ties, so the share below may lie anywhere in the tie. Paddles of
    one path share its direction on the grid: only `independent` of them count.
    """
    values = np.ravel(values)
    count = min(independent, expected["n"])
    for quantile, share in QUANTILES.items():
        error = 3.5 * np.sqrt(share * (1 - share) * (1 / count + 1 / IMAGES))
        below = (values < expected[quantile] - 0.006).mean()
        up_to = (values <= expected[quantile] + 0.006).mean()
        assert below - error <= share <= up_to + error, (name, quantile)
    error = 3.5 * expected["sd"] * np.sqrt(1 / count + 1 / IMAGES)
    assert abs(values.mean() - expected["mean"]) < error, name


def wrap(angles):
    return (angles + np.pi) % (2 * np.pi) - np.pi


@pytest.mark.parametrize("length", [6, 9, 14])
def test_statistics_are_those_of_the_authors_images(reference, length):
    expected = reference[f"pathfinder_ref_k{length}"]
    n = expected["n"]
    config = preset("authors", length=length)
    indices = np.arange(IMAGES)
    grown, label = scenes(config, 0, indices), labels(config, 0, indices)
    two = 2 * length

    distance = config.reduce * np.linalg.norm(grown.markers[:, 0] - grown.markers[:, 1], axis=1)
    check("connected", expected["marker_dist_pos_allpairs_300px"], distance[label == 1], n)
    check("not connected", expected["marker_dist_neg_allpairs_300px"], distance[label == 0], n)

    angles = grown.angles[:, :two].reshape(-1, length)
    centres = config.reduce * grown.centres[:, :two].reshape(-1, length, 2)
    turns = np.rad2deg(wrap(np.diff(angles, axis=1)))
    spacing = np.linalg.norm(np.diff(centres, axis=1), axis=2)
    half = config.paddle_length / 2 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    gap = np.linalg.norm((centres + half)[:, :-1] - (centres - half)[:, 1:], axis=2)
    check("turns", expected["turn_deg_signed_target"], turns, 2 * n)
    check("size of turns", expected["turn_deg_abs_target"], abs(turns), 2 * n)
    check("spacing", expected["spacing_center_300px_target"], spacing, 2 * n)
    check("gaps", expected["spacing_tip_gap_300px_target"], gap, 2 * n)
    check("net turn", expected["net_turn_deg_target"], turns.sum(1), n)

    shorter = config.distractor_length
    present = grown.paths[:, two::shorter].ravel() != NO_PATH
    distractors = config.reduce * grown.centres[:, two:].reshape(-1, shorter, 2)[present]
    spacing = np.linalg.norm(np.diff(distractors, axis=1), axis=2)
    check("distractors", expected["spacing_center_300px_distractor"], spacing, n)
    assert abs((grown.paths != NO_PATH).sum(1).mean() - expected["paddles_total"]["mean"]) < 0.1


@pytest.mark.parametrize("length", [6, 9, 14])
def test_ink_is_that_of_the_authors_images(reference, length):
    expected = reference[f"pathfinder_ref_k{length}"]
    drawn = images(preset("authors", length=length, reduce=1), 0, np.arange(1_000))
    check("ink", expected["mean300"], 100 * drawn.mean((1, 2)) / 255, expected["n"])
    check("bright", expected["frac300_half"], 100 * (drawn > 127).mean((1, 2)), expected["n"])


def test_some_target_paths_touch_as_the_released_ones_do(reference):
    config = preset("authors", length=14)
    grown = scenes(config, 1, np.arange(1_500))
    first, second = (config.reduce * grown.centres[:, start : start + 14] for start in (0, 14))
    nearest = np.linalg.norm(first[:, :, None] - second[:, None], axis=-1).min((1, 2))
    assert 0.02 < (nearest < 5).mean() < 0.12


def test_a_marker_lies_at_an_origin_and_one_at_an_end():
    config = preset("authors", length=6)
    indices = np.arange(40)
    grown, label = scenes(config, 0, indices), labels(config, 0, indices)
    half = config.paddle_length / 2 / config.reduce
    unit = np.stack([np.cos(grown.angles), np.sin(grown.angles)], axis=-1)
    for row in indices:
        origin, end = grown.marked[row]
        assert (origin == end) == label[row]
        tail = (grown.centres - half * unit)[row, 6 * origin]
        head = (grown.centres + half * unit)[row, 6 * end + 5]
        np.testing.assert_allclose(grown.markers[row], [tail, head], atol=1e-9)
        directions = np.stack([np.cos(grown.directions[row]), np.sin(grown.directions[row])], -1)
        outward = [-unit[row, 6 * origin], unit[row, 6 * end + 5]]
        np.testing.assert_allclose(directions, outward, atol=1e-9)


def test_with_several_margins_each_image_has_one():
    config = preset("lra-128", length=6)
    chosen = scenes(config, 0, np.arange(200)).strokes[:, 0, 3]
    assert set(chosen) == {0, 1}
    assert 60 < chosen.sum() < 140


def test_contrast_dims_paddles_and_not_markers():
    config = preset("authors", length=6, contrast=0.5, reduce=1)
    image = images(config, 0, [0])[0]
    assert image.max() == 255
    grown = scenes(config, 0, [0])
    assert image[tuple(grown.centres[0, 20, ::-1].astype(int))] < 140


def test_a_path_of_one_paddle():
    config, indices = preset("authors", length=1, distractors=0), np.arange(20)
    markers = scenes(config, 0, indices).markers
    tips = np.linalg.norm(markers[:, 1] - markers[:, 0], axis=1)[labels(config, 0, indices) == 1]
    np.testing.assert_allclose(tips, config.paddle_length / config.reduce, atol=0.75)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"canvas": 16}, "canvas must be from 32 to 1024 pixels; got 16"),
        ({"reduce": 7}, "reduce must be a divisor of canvas; got 7"),
        ({"length": 0}, "length must be 1 or more; got 0"),
        ({"length": 90_001}, "length must be at most 90000, this canvas's pixels; got 90001"),
        ({"supersampling": 0}, "supersampling must be 1 or more; got 0"),
        (
            {"distractor_length": 90_001},
            "distractor_length must be at most 90000, this canvas's pixels; got 90001",
        ),
        (
            {"distractors": -1},
            "distractors must be from 0 to 32765, 32,767 paths in all; got -1",
        ),
        ({"distractors": 32_766}, "distractors must be from 0 to 32765, .*; got 32766"),
        ({"markers": 0}, "markers must be 1 or 2; got 0"),
        ({"contrast": 0.0}, r"contrast must be from 1/255 to 1; got 0\.0"),
        ({"contrast": 0.001}, r"contrast must be from 1/255 to 1; got 0\.001"),
        ({"continuity": -1.0}, r"continuity must be greater than 0; got -1\.0"),
        ({"marker_radius": 0.0}, r"marker_radius must be greater than 0 and below 150 on this"),
        ({"marker_radius": 1e6}, r"marker_radius must be greater than 0 and below 150 on this"),
        ({"thickness": math.inf}, r"thickness must be greater than 0 and below 150 on this canvas"),
        ({"supersampling": 200}, r"supersampling must be at most 16; got 200"),
        ({"thickness": 1.3}, r"thickness must be a multiple of 1 / supersampling; got 1\.3"),
        ({"margins": ()}, r"margins must be one or more whole numbers, 1 or more; got \(\)"),
        ({"margins": (0,)}, r"margins must be one or more whole numbers, 1 or more; got \(0,\)"),
        ({"margins": (80,)}, r"margins must be at most 74 on this canvas; got \(80,\)"),
        ({"padding": 150}, "padding must be from 1 to 74 on this canvas; got 150"),
        ({"seed_distance": 90}, "seed_distance must be from 1 to 74 on this canvas; got 90"),
    ],
)
def test_bad_fields_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        ReleasedConfig(**fields)


def test_a_margin_that_is_no_tuple_is_refused():
    with pytest.raises(TypeError, match=r"margins must be of type tuple\[int, \.\.\.\]; got 3"):
        ReleasedConfig(margins=3)


def test_paths_that_are_too_long_end_in_an_error_with_values_that_fit():
    config = ReleasedConfig(
        canvas=64, reduce=1, length=40, padding=3, seed_distance=6, distractors=0
    )
    with pytest.raises(UnsatisfiableError) as caught:
        scenes(config, 0, [0])
    problem, advice = str(caught.value).rsplit("; ", 1)
    assert problem == (
        "length=40 does not fit: no two paths of 40 paddles could be grown on a canvas of 64 "
        "pixels with padding=3 and seed_distance=6"
    )
    advised = re.fullmatch(r"length=(\d+) or canvas=(\d+) would fit", advice)
    length, canvas = map(int, advised.groups())
    scenes(replace(config, length=length), 0, [0])
    scenes(replace(config, canvas=canvas), 0, [0])


def test_paths_that_never_come_to_the_half_are_given_up(monkeypatch):
    monkeypatch.setattr(released, "TARGET_ATTEMPTS", 10**12)  # a month's
    config = ReleasedConfig(canvas=64, reduce=1, length=40, padding=3, seed_distance=6)
    with pytest.raises(UnsatisfiableError, match="length=40 does not fit"):
        scenes(config, 0, [0])


def test_a_hard_image_takes_many_attempts_and_the_others_stay(monkeypatch):
    config = preset("authors")
    usual = scenes(config, 3, np.arange(12)).centres
    monkeypatch.setattr(released, "USUAL_ATTEMPTS", 3)  # some of the twelve need more
    seen = []
    attempt = ReleasedConfig._try
    monkeypatch.setattr(
        ReleasedConfig, "_try", lambda *given: seen.append(given[-1]) or attempt(*given)
    )
    assert np.array_equal(scenes(config, 3, np.arange(12)).centres, usual)
    assert released.TARGET_ATTEMPTS in seen


def test_seeds_without_room_end_in_an_error_with_values_that_fit(monkeypatch):
    monkeypatch.setattr(released, "TARGET_ATTEMPTS", 10**12)
    config = ReleasedConfig(
        canvas=64, reduce=1, length=3, padding=3, seed_distance=15, distractors=0
    )
    with pytest.raises(
        UnsatisfiableError,
        match=r"seed_distance=15 does not fit: no two paths of 3 paddles could be "
        r"grown on a canvas of 64 pixels .*; seed_distance=12 or canvas=128 would fit",
    ):
        scenes(config, 0, [0])
    scenes(replace(config, seed_distance=12), 0, [0])


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("authors", {}),
        ("authors", {"thickness": 0.5, "reduce": 3}),
        ("authors", {"paddle_length": 2, "thickness": 0.5, "reduce": 4, "contrast": 0.1}),
        ("lra-32", {}),
        ("lra-64", {}),
        ("crbp-14", {}),
    ],
)
def test_every_paddle_of_a_target_is_in_its_mask(name, changes):
    config = preset(name, **changes)
    for index in range(12):
        seen = draw(config, 0, index)
        grown = scenes(config, 0, [index])
        for path, mask in enumerate(seen.masks[:2]):
            centres = grown.centres[0, grown.paths[0] == path]
            near = [
                mask[max(0, int(y) - 2) : int(y) + 3, max(0, int(x) - 2) : int(x) + 3].any()
                for x, y in centres
            ]
            assert all(near)
