from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm

from hgru_vision.stimuli import probes
from hgru_vision.stimuli.probes import (
    Cues,
    Probe,
    feature_sets,
    lookup,
    multilayer_perceptron,
    out_of_fold,
    quadratic_logistic,
    stratified_folds,
)

network = partial(multilayer_perceptron, seed=0)


def cue_arrays(n: int = 6, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "label": np.arange(n) % 2,
        "markers": rng.uniform(10, 90, (n, 2, 2)),
        "directions": rng.uniform(-np.pi, np.pi, (n, 2)),
        "canvas": (100, 120),
        "ink": rng.uniform(0, 1, n),
        "curvature": rng.uniform(0, 9, n),
    }


def accuracy(probe: Probe, features: np.ndarray, label: np.ndarray) -> float:
    fold = stratified_folds(label, 5, np.random.default_rng(0))
    return float(np.mean((out_of_fold(probe, features, label, fold) > 0.5) == label))


# -- Planted leaks: each probe finds what it should, and no more --------------------------------


@pytest.mark.parametrize("probe", [lookup, quadratic_logistic, network])
def test_shifted_gaussians_reach_their_bayes_rate(probe: Probe) -> None:
    rng = np.random.default_rng(1)
    label = np.arange(8_000) % 2
    features = (rng.normal(size=8_000) + 1.5 * label)[:, None]
    # Standard error 0.4 %; 20 bins lose a little at the boundary's bin.
    assert accuracy(probe, features, label) == pytest.approx(norm.cdf(0.75), abs=0.015)


def test_an_interval_needs_a_square() -> None:
    """Wide and narrow Gaussians of one mean: the Bayes rule is an interval around it."""
    rng = np.random.default_rng(2)
    label = np.arange(8_000) % 2
    features = (rng.normal(size=8_000) * np.where(label == 1, 1, 4))[:, None]
    edge = np.sqrt(2 * np.log(4) / (1 - 1 / 16))
    bayes = (norm.cdf(edge) - norm.cdf(-edge)) / 2 + norm.cdf(-edge / 4)
    for probe in (lookup, quadratic_logistic, network):
        assert accuracy(probe, features, label) == pytest.approx(bayes, abs=0.02)


def test_exclusive_or_is_found_by_products_and_networks_alone() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(2_000, 2))
    label = (features[:, 0] * features[:, 1] > 0).astype(np.int64)
    assert accuracy(quadratic_logistic, features, label) > 0.95
    assert accuracy(network, features, label) > 0.95
    for column in (0, 1):
        assert accuracy(lookup, features[:, [column]], label) == pytest.approx(0.5, abs=0.045)


def test_the_network_finds_what_the_quadratic_misses() -> None:
    rng = np.random.default_rng(4)
    features = rng.uniform(-1, 1, (1_000, 1))
    label = (np.sin(3 * np.pi * features[:, 0]) > 0).astype(np.int64)
    assert accuracy(quadratic_logistic, features, label) < 0.75
    assert accuracy(network, features, label) > 0.9


# -- Each probe by itself -----------------------------------------------------------------------


def test_lookup_by_hand() -> None:
    """Two values fill two bins: (ones + 1) / (images + 2) in each."""
    train = np.array([[1.0], [1.0], [1.0], [2.0], [2.0]])
    probability = lookup(train, np.array([1, 1, 0, 0, 0]), np.array([[1.0], [2.0]]))
    assert probability == pytest.approx([3 / 5, 1 / 4])


def test_quadratic_logistic_is_at_the_minimum() -> None:
    """The intercept's equation: probabilities sum to the labels, but for the ridge."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(500, 3))
    label = (features[:, 0] + rng.normal(size=500) > 0.3).astype(np.int64)
    probability = quadratic_logistic(features, label, features)
    assert probability.mean() == pytest.approx(label.mean(), abs=1e-3)


@pytest.mark.parametrize("probe", [quadratic_logistic, network])
def test_separable_and_constant_features_are_no_trouble(probe: Probe) -> None:
    label = np.arange(40) % 2
    features = np.column_stack([1e6 * label, np.full(40, 0.1), np.zeros(40)])
    probability = probe(features, label, features)
    assert np.isfinite(probability).all()
    assert ((probability > 0.5) == label).all()


def test_the_network_is_a_function_of_its_seed() -> None:
    rng = np.random.default_rng(6)
    features, label = rng.normal(size=(200, 3)), np.arange(200) % 2
    first, again, other = (
        multilayer_perceptron(features, label, features, seed=seed) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_global_state_stays() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    features, label = np.arange(40.0)[:, None], np.arange(40) % 2
    for probe in (lookup, quadratic_logistic, network):
        probe(features, label, features)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert torch.get_num_threads() == 2


# -- Folds --------------------------------------------------------------------------------------


def test_folds_hold_each_class_evenly() -> None:
    label = np.array([0] * 23 + [1] * 41)
    fold = stratified_folds(label, 5, np.random.default_rng(0))
    for value in (0, 1):
        counts = np.bincount(fold[label == value], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.ptp(np.bincount(fold)) <= 1


def test_no_image_is_judged_by_a_probe_that_has_seen_it() -> None:
    features, label, fold = np.arange(20.0)[:, None], np.zeros(20, np.int64), np.arange(20) % 4

    def memory(train: np.ndarray, label: np.ndarray, test: np.ndarray) -> np.ndarray:
        assert len(train) == 15
        return np.isin(test[:, 0], train[:, 0]).astype(float)

    assert not out_of_fold(memory, features, label, fold).any()


# -- Cues and features --------------------------------------------------------------------------


def test_features_by_hand() -> None:
    cues = Cues(
        label=np.array([1]),
        markers=np.array([[[10.0, 20.0], [40.0, 60.0]]]),
        directions=np.array([[np.arctan2(4, 3), np.arctan2(4, 3)]]),
        canvas=(100, 50),
        ink=np.array([0.25]),
        curvature=np.array([3.0]),
    )
    sets = feature_sets(cues)
    assert sets["marker distance"] == pytest.approx(np.array([[50.0]]))
    # The first paddle points at the second marker, the second away from the first: cos, cos, sin...
    assert sets["marker directions"] == pytest.approx(np.array([[1.0, -1.0, 0.0, 0.0]]), abs=1e-12)
    # x, y of each, then the nearest edge: left at 10, right at 50 - 40
    assert sets["marker geometry"][:, 5:] == pytest.approx(np.array([[10, 20, 40, 60, 10, 10]]))
    assert sets["everything"][:, 11:] == pytest.approx(np.array([[0.25, 3.0]]))


def test_exchanged_markers_exchange_their_columns() -> None:
    arrays = cue_arrays()
    swapped = arrays | {name: arrays[name][:, ::-1] for name in ("markers", "directions")}
    sets, exchanged = feature_sets(Cues(**arrays)), feature_sets(Cues(**swapped))
    columns = [0, 2, 1, 4, 3, 7, 8, 5, 6, 10, 9, 11, 12]
    assert exchanged["everything"] == pytest.approx(sets["everything"][:, columns])


def test_relative_directions_ignore_a_rotation_of_the_scene() -> None:
    arrays, angle = cue_arrays(), 1.1
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turned = arrays | {
        "markers": arrays["markers"] @ rotation.T,
        "directions": arrays["directions"] + angle,
    }
    name = "distance and directions"
    assert feature_sets(Cues(**turned))[name] == pytest.approx(feature_sets(Cues(**arrays))[name])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("markers", np.zeros((6, 2)), r"cues.markers must have shape \(6, 2, 2\).*got \(6, 2\)"),
        ("directions", np.zeros((5, 2)), r"cues.directions must have shape \(6, 2\).*got \(5, 2\)"),
        ("label", np.zeros((3, 2)), r"cues.label must have shape \(6,\).*got \(3, 2\)"),
        ("ink", [0, 0, np.nan, 0, 0, 0], r"cues.ink must be finite, got nan at image 2"),
        ("label", [0, 1, 0, 1, 0, 2], r"cues.label must be 0 or 1, got 2 at image 5"),
        ("canvas", (150,), r"cues.canvas must be \(height, width\).*got \(150,\)"),
        ("canvas", (0, 150), r"cues.canvas must be \(height, width\).*got \(0, 150\)"),
    ],
)
def test_bad_cues(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cues(**(cue_arrays() | {name: value}))


def test_bins_are_as_the_audit_calls_them() -> None:
    assert probes.BINS == 20
