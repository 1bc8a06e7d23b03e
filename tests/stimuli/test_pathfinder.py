"""The paper's Pathfinder and the ghost construction, checked by code that shares nothing."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from hgru_vision.stimuli import (
    PathfinderConfig,
    UnsatisfiableError,
    draw,
    growth,
    images,
    labels,
    preset,
    scenes,
)


def corners(centres, angles, length, thickness):
    """(n, 4, 2) corners of bars, in order around them."""
    u = np.stack([np.cos(angles), np.sin(angles)], axis=-1) * length / 2
    v = np.stack([-np.sin(angles), np.cos(angles)], axis=-1) * thickness / 2
    return np.stack([centres + u + v, centres + u - v, centres - u - v, centres - u + v], axis=1)


def point_to_edges(points, starts, ends):
    """Distance of points (..., 2) from segments (..., 2) to (..., 2)."""
    edge = ends - starts
    share = ((points - starts) * edge).sum(-1) / (edge**2).sum(-1)
    nearest = starts + np.clip(share, 0, 1)[..., None] * edge
    return np.linalg.norm(points - nearest, axis=-1)


def bar_distance(a, b):
    """Distance of convex quadrilaterals (p, 4, 2), pair by pair; 0 where they overlap."""
    apart = np.zeros(len(a), bool)
    for shape in (a, b):  # a line along an edge that separates them
        edge = np.roll(shape, -1, axis=1) - shape
        normal = np.stack([-edge[..., 1], edge[..., 0]], axis=-1)  # (p, 4, 2)
        on_a = np.einsum("pej,pcj->pec", normal, a)
        on_b = np.einsum("pej,pcj->pec", normal, b)
        gap = (on_a.min(-1) > on_b.max(-1)) | (on_b.min(-1) > on_a.max(-1))
        apart |= gap.any(1)
    distances = []
    for points, shape in ((a, b), (b, a)):
        starts, ends = shape[:, None], np.roll(shape, -1, axis=1)[:, None]  # (p, 1, 4, 2)
        distances.append(point_to_edges(points[:, :, None], starts, ends).min((1, 2)))
    return np.where(apart, np.minimum(*distances), 0.0)


def check_distances(config, grown):
    """No two bars closer than m, none but neighbours in a path closer than the clearance."""
    reach = config.paddle_length + config.clearance + config.thickness + 1
    for centres, angles, paths in zip(grown.centres, grown.angles, grown.paths, strict=True):
        i, j = np.triu_indices(len(centres), 1)
        near = np.linalg.norm(centres[i] - centres[j], axis=1) < reach
        i, j = i[near], j[near]
        bars = corners(centres, angles, config.paddle_length, config.thickness)
        distance = bar_distance(bars[i], bars[j])
        neighbours = (j == i + 1) & (paths[i] == paths[j])
        least = np.where(neighbours, min(config.margin, config.clearance), config.clearance)
        assert (distance >= least - 1e-9).all()
        edge = config.edge_margin - 1e-9
        assert (bars >= edge).all()
        assert (bars <= config.canvas - edge).all()


@pytest.mark.parametrize("name", ["paper", "matched"])
@pytest.mark.parametrize("length", [6, 9, 14])
def test_no_two_paddles_are_too_close(name, length):
    config = preset(name, length=length)
    check_distances(config, scenes(config, 11, np.arange(60)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper", "matched"])
def test_no_two_paddles_are_too_close_in_ten_thousand_images(name):
    for length in (6, 9, 14):
        config = preset(name, length=length)
        for start in range(0, 10_000, 500):
            check_distances(config, scenes(config, 5, np.arange(start, start + 500)))


@settings(max_examples=40)
@given(
    length=st.integers(2, 8),
    canvas=st.integers(64, 200),
    paddle_length=st.floats(1.5, 8),
    thickness=st.floats(1, 3),
    margin=st.floats(0.5, 4),
    clearance=st.floats(0.5, 6),
    continuity=st.floats(0.8, 3),
    seed_radius=st.floats(0, 15),
    edge_margin=st.floats(0, 10),
    distractor_length=st.integers(1, 4),
    distractor_paddles=st.integers(0, 30),
    ghost=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_no_two_paddles_are_too_close_in_any_configuration(seed, **fields):
    config = PathfinderConfig(**fields)
    try:
        grown = scenes(config, seed, np.arange(3))
    except UnsatisfiableError:
        assume(False)
    check_distances(config, grown)


def test_an_image_has_150_paddles_in_paths_of_the_stated_lengths():
    for length, shorter in ((6, 2), (9, 3), (14, 4)):
        config = preset("paper", length=length)
        counts = np.bincount(scenes(config, 0, [0]).paths[0])
        assert counts.sum() == 150
        assert counts[:2].tolist() == [length, length]
        assert set(counts[2:-1]) == {shorter}
        assert 1 <= counts[-1] <= shorter


def test_neighbours_meet_at_a_pivot_m_from_both():
    config = preset("paper", length=9)
    grown = scenes(config, 0, np.arange(20))
    centres, angles = grown.centres[:, :9], grown.angles[:, :9]
    along = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    reach = config.paddle_length / 2 + config.margin
    pivot_ahead = centres[:, :-1] + reach * along[:, :-1]
    pivot_behind = centres[:, 1:] - reach * along[:, 1:]
    np.testing.assert_allclose(pivot_ahead, pivot_behind, atol=1e-9)


def test_target_paths_begin_at_the_ends_of_a_diameter():
    config = preset("paper", length=9)
    grown = scenes(config, 0, np.arange(50))
    between = np.linalg.norm(grown.centres[:, 0] - grown.centres[:, 9], axis=1)
    np.testing.assert_allclose(between, 2 * config.seed_radius)


@pytest.mark.parametrize("name", ["paper", "matched"])
def test_markers_lie_on_the_tips_of_the_marked_paths(name):
    config = preset(name, length=6)
    indices = np.arange(40)
    grown, label = scenes(config, 0, indices), labels(config, 0, indices)
    for row in indices:
        origin, end = grown.marked[row]
        assert (origin == end) == label[row]
        tail, head = 6 * origin, 6 * end + 5
        for paddle, sign, marker in ((tail, -1, 0), (head, 1, 1)):
            angle = grown.angles[row, paddle]
            outward = sign * np.array([math.cos(angle), math.sin(angle)])
            tip = grown.centres[row, paddle] + config.paddle_length / 2 * outward
            np.testing.assert_allclose(grown.markers[row, marker], tip, atol=1e-9)
            direction = grown.directions[row, marker]
            np.testing.assert_allclose([math.cos(direction), math.sin(direction)], outward)


@pytest.mark.parametrize("length", [6, 14])
def test_matched_markers_say_nothing_about_the_label(length):
    config = preset("matched", length=length)
    indices = np.arange(12_000)
    grown, label = scenes(config, 3, indices), labels(config, 3, indices)
    between = grown.markers[:, 1] - grown.markers[:, 0]
    bearing = np.arctan2(between[:, 1], between[:, 0])
    wrap = lambda angle: (angle + np.pi) % (2 * np.pi) - np.pi  # noqa: E731
    values = {
        "distance": np.linalg.norm(between, axis=1),
        "direction at the origin": wrap(grown.directions[:, 0] - bearing),
        "direction at the end": wrap(grown.directions[:, 1] - bearing),
        "difference of directions": wrap(grown.directions[:, 1] - grown.directions[:, 0]),
        "x of the end": grown.markers[:, 1, 0],
    }
    for what, value in values.items():
        assert ks_2samp(value[label == 0], value[label == 1]).pvalue > 1e-3, what


def test_the_markers_of_the_paper_do_give_the_label_away():
    config = preset("paper", length=6)
    indices = np.arange(2_000)
    grown, label = scenes(config, 3, indices), labels(config, 3, indices)
    distance = np.linalg.norm(grown.markers[:, 1] - grown.markers[:, 0], axis=1)
    assert ks_2samp(distance[label == 0], distance[label == 1]).pvalue < 1e-30


def test_no_paddle_is_lost_in_binary_images():
    for fields, message in (
        ({"thickness": 0.8}, r"thickness must be 1 pixels or more, so that no paddle is lost; "
                             r"antialias=True draws smaller ones; got 0\.8"),
        ({"paddle_length": 1.2}, r"paddle_length must be 1\.5 pixels or more, .* got 1\.2"),
        ({"marker_radius": 0.6}, r"marker_radius must be 0\.75 pixels or more, so that no marker"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            PathfinderConfig(**fields)
        PathfinderConfig(**fields, antialias=True)


@pytest.mark.parametrize("small", [{"thickness": 0.3}, {"marker_radius": 0.3}])
def test_masks_of_small_things_are_complete(small):
    config = PathfinderConfig(**small, antialias=True)
    for index in range(4):
        grown = scenes(config, 0, [index])
        first, second, *_ = draw(config, 0, index).masks
        for mask, path in (first, 0), (second, 1):
            for x, y in grown.centres[0, grown.paths[0] == path].astype(int):
                assert mask[y - 1 : y + 2, x - 1 : x + 2].any()
            assert set(np.unique(mask)) <= {0, 1}


def test_whole_numbers_draw_what_floats_do():
    names = ("thickness", "margin", "clearance", "continuity", "edge_margin", "marker_radius")
    whole = dict.fromkeys(names, 2) | {"paddle_length": 3, "seed_radius": 7}
    floats = {name: float(value) for name, value in whole.items()}
    scene = {"length": 3, "distractor_paddles": 12}
    both = [PathfinderConfig(**scene, **lengths) for lengths in (whole, floats)]
    np.testing.assert_array_equal(*(images(config, 0, np.arange(4)) for config in both))


def test_scaled_keeps_the_scene_where_the_canvas_must_be_rounded():
    config = preset("paper", length=6)
    other = config.scaled(1.01)
    assert other.canvas == 152
    both = [scenes(each, 0, np.arange(20)).centres / each.canvas for each in (config, other)]
    np.testing.assert_allclose(*both, atol=1e-9)


def test_scaled_keeps_the_geometry():
    config = preset("paper", length=9)
    twice = config.scaled(2)
    assert (twice.canvas, twice.paddle_length, twice.clearance) == (300, 5.0, 6.0)
    np.testing.assert_allclose(scenes(twice, 0, [4]).centres, 2 * scenes(config, 0, [4]).centres)


@pytest.mark.parametrize("canvas", [32, 1024])
def test_the_smallest_and_the_largest_canvas(canvas):
    config = PathfinderConfig(
        canvas=canvas, length=3, edge_margin=2, seed_radius=4, distractor_paddles=4
    )
    check_distances(config, scenes(config, 0, np.arange(20)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": 0}, "length must be 1 or more; got 0"),
        ({"canvas": 20}, "canvas must be from 32 to 1024 pixels; got 20"),
        ({"canvas": 2000}, "canvas must be from 32 to 1024 pixels; got 2000"),
        ({"paddle_length": 0}, "paddle_length must be greater than 0; got 0"),
        ({"thickness": -1.0}, r"thickness must be greater than 0; got -1\.0"),
        ({"margin": 0.0}, r"margin must be greater than 0; got 0\.0"),
        ({"continuity": math.nan}, "continuity must be greater than 0; got nan"),
        ({"clearance": -0.5}, r"clearance must be 0 or more; got -0\.5"),
        ({"margin": 80.0}, r"margin must be below 74 on this canvas; got 80\.0"),
        ({"edge_margin": 80.0}, r"edge_margin must be below 74 on this canvas; got 80\.0"),
        ({"markers": 3}, "markers must be 1 or 2; got 3"),
        ({"distractor_length": 0}, "distractor_length must be 1 or more; got 0"),
        (
            {"distractor_paddles": -2},
            "distractor_paddles must be from 0 to 131060, 32,767 paths in all; got -2",
        ),
        ({"marker_radius": 1e300}, r"marker_radius must be below 75 on this canvas; got 1e\+300"),
        ({"length": 10**8}, "length must be at most 22500, this canvas's pixels; got 100000000"),
        ({"contrast": 1.5}, r"contrast must be from 1/255 to 1; got 1\.5"),
        (
            {"length": 1, "ghost": True},
            "length must be 2 or more in the ghost construction; got 1",
        ),
    ],
)
def test_bad_fields_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        PathfinderConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": 3.0}, r"length must be of type int; got 3\.0"),
        ({"antialias": 1}, "antialias must be of type bool; got 1"),
        ({"contrast": "high"}, "contrast must be of type float; got 'high'"),
    ],
)
def test_fields_of_the_wrong_type_are_refused_by_name(fields, message):
    with pytest.raises(TypeError, match=message):
        PathfinderConfig(**fields)


def test_too_many_distractors_end_in_an_error_with_values_that_fit():
    config = PathfinderConfig(length=3, canvas=32, edge_margin=1, distractor_paddles=294)
    with pytest.raises(UnsatisfiableError, match="distractor_paddles=294 does not fit") as caught:
        scenes(config, 0, [0])
    advice = str(caught.value).split("; ")[1]
    advised = dict(re.findall(r"(\w+)=(\d+)", advice))
    assert set(advised) == {"distractor_paddles", "canvas"}
    for name, value in advised.items():
        scenes(replace(config, **{name: int(value)}), 0, np.arange(50))


def test_paths_that_are_too_long_end_in_an_error_with_values_that_fit():
    with pytest.raises(UnsatisfiableError, match=r"length=14 does not fit.*canvas=\d+ would fit"):
        scenes(preset("paper", length=14, canvas=32), 0, [0])


def test_paths_that_begin_too_near_to_each_other_end_in_an_error_that_says_so():
    message = r"clearance=3 and seed_radius=0; seed_radius=6\.75 would fit"
    with pytest.raises(UnsatisfiableError, match=message):
        scenes(preset("paper", length=6, seed_radius=0), 0, [0])
    with pytest.raises(UnsatisfiableError, match="edge_margin=11 and clearance=3; canvas="):
        scenes(preset("matched", length=6, canvas=32), 0, [0])  # where it plays no part


@pytest.mark.parametrize("ghost", [False, True])
def test_even_hopeless_configurations_end(ghost):
    config = PathfinderConfig(length=500, ghost=ghost, continuity=50.0)
    with pytest.raises(UnsatisfiableError, match="length=500 does not fit"):
        scenes(config, 0, [0])


def test_a_hard_image_takes_many_attempts_and_the_others_stay(monkeypatch):
    """Where two long paths rarely fit, an image may need more attempts than most."""
    config = preset("matched", length=14)
    usual = scenes(config, 3, np.arange(12)).centres
    monkeypatch.setattr(growth, "USUAL_ATTEMPTS", 8)  # some of the twelve need more
    seen = []
    attempt = PathfinderConfig._try
    monkeypatch.setattr(
        PathfinderConfig, "_try", lambda *given: seen.append(given[-1]) or attempt(*given)
    )
    assert np.array_equal(scenes(config, 3, np.arange(12)).centres, usual)
    assert growth.MOST_ATTEMPTS in seen


def test_what_is_advised_can_be_drawn():
    with pytest.raises(UnsatisfiableError) as error:
        scenes(preset("matched", length=60), 0, np.arange(4))
    (length,) = re.findall(r"length=(\d+) or", str(error.value))
    scenes(preset("matched", length=int(length)), 1, np.arange(64))
