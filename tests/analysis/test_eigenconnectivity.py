import json

import numpy as np
import pytest
import torch

from hgru_vision import create_model
from hgru_vision.analysis.eigenconnectivity import (
    align,
    connections,
    eigenconnectivity,
    inner_disc,
)
from hgru_vision.circuits.contextual_demo import association_field
from hgru_vision.models.filters import gabor_orientations


def field(size, angle):
    """Excitation along an axis, inhibition across it."""
    offsets = np.arange(size) - (size - 1) / 2
    y, x = offsets[:, None], offsets
    distance = np.hypot(x, y)
    envelope = np.exp(-(distance**2) / (2 * (size / 4) ** 2)) * (1 - np.exp(-(distance**2)))
    return envelope * np.cos(2 * (np.arctan2(y, x) - angle))


def spread(base):
    """Twelve orientations in two phases, as the input stage has them, from any first one."""
    return np.deg2rad((base + 15.0 * np.arange(12).repeat(2)) % 180)


def plant(size, angles, noise=1.0, seed=0):
    """Give each sender its field, the stronger the more alike the receiver, and noise as strong."""
    like = np.maximum(np.cos(2 * (angles[:, None] - angles)), 0) ** 2
    fields = np.stack([field(size, angle) for angle in angles])
    weights = like[:, :, None, None] * fields
    generator = np.random.default_rng(seed)
    return weights + noise * weights.std() * generator.standard_normal(weights.shape)


def agreement(found, pattern, number=0):
    """Correlation of a component with a pattern."""
    return np.corrcoef(found.components[number][found.disc], pattern[found.disc])[0, 1]


@pytest.mark.parametrize("size", [7, 8, 15])
@pytest.mark.parametrize("base", [0, 10, 37, 90])
def test_a_planted_association_field_is_found(size, base):
    angles = spread(base)
    found = eigenconnectivity(plant(size, angles), angles)
    assert agreement(found, field(size, np.pi / 2)) > 0.97
    assert found.shares[0] > 0.5 > 10 * found.shares[1]
    assert (np.diff(found.eigenvalues) <= 0).all()
    count = len(found.components)
    assert found.shares[:count].sum() >= 0.8 > found.shares[: count - 1].sum()
    assert np.allclose((found.components**2).sum(axis=(1, 2)), 1)
    profiles = found.association
    assert (profiles.along.low > 0).all()
    assert (profiles.across.high < 0).all()
    for contrast in (profiles.collinearity, profiles.likeness):
        assert contrast.excludes_zero
        assert contrast.value > 0
    assert not profiles.nearness.excludes_zero  # the field is as strong along as across
    assert profiles.along_by_angle.mean[0] > 10 * abs(profiles.along_by_angle.mean[-1])


@pytest.mark.parametrize("size", [7, 15])
def test_random_kernels_show_nothing(size):
    angles = spread(10)
    for seed in range(5):
        half = np.random.default_rng(seed).standard_normal((24, 24, size, size))
        found = eigenconnectivity(half + half.transpose(1, 0, 2, 3), angles)
        profiles = found.association
        assert not profiles.collinearity.excludes_zero
        assert not profiles.likeness.excludes_zero
        assert not profiles.nearness.excludes_zero
        assert found.shares[0] < 0.1
        assert abs(agreement(found, field(size, np.pi / 2))) < 0.5


def test_eigenvalues_are_the_variances_of_what_was_planted():
    size, angles = 15, spread(0)
    offsets = np.arange(size) - 7
    ring = np.hypot(offsets[:, None], offsets)
    surround = np.exp(-(ring**2) / 8) - np.exp(-(ring**2) / 32) / 4  # the same at any rotation
    scores = np.random.default_rng(0).standard_normal((2, 24, 24)) * [[[1]], [[2]]]
    fields = np.stack([field(size, angle) for angle in angles])
    weights = scores[0][:, :, None, None] * surround + scores[1][:, :, None, None] * fields
    found = eigenconnectivity(weights, angles, variance=0.99)
    assert len(found.components) == 2
    disc = found.disc
    patterns = (field(size, np.pi / 2), 2), (surround, 1)
    for number, (pattern, deviation) in enumerate(patterns):
        assert abs(agreement(found, pattern, number)) > 0.99
        expected = deviation**2 * (pattern[disc] ** 2).sum()
        assert found.eigenvalues[number] == pytest.approx(expected, rel=0.15)


def test_eigenvalues_add_up_to_the_variance_between_kernels():
    weights = np.random.default_rng(0).normal(size=(3, 3, 5, 5))
    found = eigenconnectivity(weights, np.full(3, np.pi / 2))  # as they are aligned
    samples = weights.reshape(9, 5, 5)[:, found.disc]
    assert found.eigenvalues.sum() == pytest.approx(samples.var(axis=0, ddof=1).sum())


def test_all_receivers_alike_are_in_the_mean_alone():
    angles = spread(0)
    same = np.broadcast_to(np.stack([field(15, angle) for angle in angles]), (24, 24, 15, 15))
    found = eigenconnectivity(same, angles)
    assert np.corrcoef(found.mean[found.disc], field(15, np.pi / 2)[found.disc])[0, 1] > 0.999
    assert found.eigenvalues.sum() < 0.01 * (found.mean**2).sum()  # what interpolation leaves


def test_the_sign_is_that_between_like_orientations():
    angles = spread(10)
    weights = plant(7, angles)
    found, opposite = eigenconnectivity(weights, angles), eigenconnectivity(-weights, angles)
    assert agreement(opposite, field(7, np.pi / 2)) < -0.97
    assert np.allclose(opposite.components, -found.components)
    assert np.allclose(opposite.scores, found.scores)
    alike = np.cos(2 * (found.orientations[:, None] - found.orientations))
    assert ((found.scores * alike).sum(axis=(1, 2)) > 0).all()


def test_without_a_difference_in_orientation_the_largest_weight_is_positive():
    weights = np.random.default_rng(0).standard_normal((4, 4, 5, 5))
    found = eigenconnectivity(weights, np.zeros(4))
    flat = found.components.reshape(len(found.components), -1)
    assert (flat[np.arange(len(flat)), abs(flat).argmax(axis=1)] > 0).all()
    assert np.allclose(eigenconnectivity(-weights, np.zeros(4)).components, found.components)


def test_half_a_turn_of_an_orientation_changes_no_profile():
    angles = spread(10)
    weights = plant(7, angles)
    turned = angles + np.pi * np.random.default_rng(0).integers(2, size=24)
    profiles = [eigenconnectivity(weights, each).association for each in (angles, turned)]
    assert np.allclose(profiles[0].along.mean, profiles[1].along.mean)
    assert np.allclose(profiles[0].collinearity, profiles[1].collinearity)


def test_channels_without_orientation_are_left_out():
    angles = spread(0)
    weights = plant(7, angles)
    whole = eigenconnectivity(weights, angles)
    wild = np.insert(np.insert(weights, 5, 1e3, axis=0), 5, -1e3, axis=1)
    found = eigenconnectivity(torch.tensor(wild), torch.tensor(np.insert(angles, 5, np.nan)))
    assert found.left_out.tolist() == [5]
    assert found.channels.tolist() == [*range(5), *range(6, 25)]
    assert np.allclose(found.components, whole.components)
    assert found.scores.shape == (len(found.components), 24, 24)


def test_rotation():
    kernel = np.random.default_rng(0).standard_normal((1, 1, 7, 7))
    disc = inner_disc(7)
    assert np.allclose(align(kernel, np.array([np.pi / 2]))[0, 0, disc], kernel[0, 0, disc])
    # From 0 degrees to 90: what was to the right is below.
    turned = np.rot90(kernel[0, 0], -1)
    assert np.allclose(align(kernel, np.array([0.0]))[0, 0][disc], turned[disc])
    for degrees in (20, 45, 135):
        angle = np.deg2rad(degrees)
        smooth = align(field(15, angle)[None, None], np.array([angle]))[0, 0]
        inside = inner_disc(15)
        assert np.corrcoef(smooth[inside], field(15, np.pi / 2)[inside])[0, 1] > 0.999
    assert not align(kernel, np.array([1.0]))[0, 0][~disc].any()


def test_of_symmetric_kernels_sender_and_receiver_are_aligned_alike():
    angles = np.deg2rad([0.0, 40.0, 100.0])
    half = np.random.default_rng(0).standard_normal((3, 3, 5, 5))
    weights = half + half.transpose(1, 0, 2, 3)
    receivers = align(weights.transpose(1, 0, 2, 3), angles)  # the second axis is what is aligned
    assert np.allclose(align(weights, angles), receivers)


def network_with_field():
    """An hGRU network whose W is an association field between its oriented channels."""
    network = create_model("hgru")
    between = association_field(12)  # channel k at k 15 degrees, anticlockwise on the screen
    size = network.features.kernel_size
    weights = torch.zeros(25, 25, size, size)
    # Ours go clockwise: channel k is at the other's 12 - k.
    order = [(12 - step) % 12 for step in range(12) for _ in range(2)]
    margin = (size - between.shape[-1]) // 2
    inner = slice(margin, margin + between.shape[-1])
    weights[:24, :24, inner, inner] = between[order][:, order]
    generator = torch.Generator().manual_seed(0)
    noise = 0.3 * weights.std() * torch.randn(weights.shape, generator=generator)
    weights = weights + noise
    network.features.w.set_whole((weights + weights.transpose(0, 1)) / 2)
    with torch.no_grad():
        network.features.beta.abs_()
    return network


def test_a_network_is_measured_by_its_filters_not_by_their_number():
    network = network_with_field()
    first = connections(network)
    found = eigenconnectivity(first.weights, first.orientations())
    assert np.rad2deg(found.orientations).round() % 180 == pytest.approx(
        np.rad2deg(gabor_orientations().numpy()).round()
    )
    assert found.association.collinearity.excludes_zero
    assert found.association.collinearity.value > 0
    assert first.excited == 1

    order = torch.randperm(25, generator=torch.Generator().manual_seed(1))
    whole = network.features.w().detach()
    network.features.w.set_whole(whole[order][:, order])
    with torch.no_grad():
        network.input.weight.copy_(network.input.weight[order])
    shuffled = connections(network)
    again = eigenconnectivity(shuffled.weights, shuffled.orientations())
    assert again.left_out.tolist() == [order.tolist().index(24)]
    assert np.allclose(again.eigenvalues, found.eigenvalues)
    assert np.allclose(again.components[0], found.components[0], atol=1e-6)


def test_the_sign_of_w_is_that_with_which_it_excites(decisive):
    network = decisive(network_with_field())
    circuit = network.features
    images = torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    before, seen = connections(network), network(images)
    with torch.no_grad():
        for each in (circuit.w.pairs, circuit.alpha, circuit.mu, circuit.beta, circuit.omega):
            each.neg_()
    assert torch.allclose(network(images), seen, atol=1e-5)  # the same network
    assert np.array_equal(connections(network).weights, before.weights)
    with torch.no_grad():
        circuit.beta.abs_()[:10].neg_()
    assert connections(network).excited == pytest.approx(15 / 25)


@pytest.mark.parametrize("name", ["hgru_bn", "hgru_nonnegative"])
def test_the_sign_of_w_with_batch_norm(name):
    network = create_model(name)
    circuit = network.features
    before = connections(network)
    kernels = [circuit.w_e, circuit.w] if name == "hgru_nonnegative" else [circuit.w]
    with torch.no_grad():
        for each in (*(kernel.pairs for kernel in kernels), circuit.norm_c1.delta):
            each.neg_()
        circuit.norm_c2.delta.neg_()
    after = connections(network)  # the same network
    assert np.array_equal(after.weights, before.weights)
    assert after.excited == before.excited


def test_batch_norm_of_the_last_step_tells_the_sign():
    network = create_model("hgru_bn")
    before = connections(network)
    with torch.no_grad():
        network.features.norm_c2.delta[-1].neg_()
    after = connections(network)
    assert np.array_equal(after.weights, -before.weights)
    assert np.array_equal(after.beta, before.beta)


@pytest.mark.parametrize("name", ["gru", "hgru_nonnegative", "hgru_no_linear", "hgru_small"])
def test_relatives_of_the_hgru(name):
    network = create_model(name)
    found = connections(network)
    circuit = network.features
    kernel = {"gru": lambda: circuit.w, "hgru_nonnegative": lambda: circuit.w_e()}
    expected = kernel.get(name, lambda: circuit.w())().detach().double().numpy()
    assert np.array_equal(abs(found.weights), abs(expected))
    assert (found.excited is None) == (name == "gru")
    assert len(eigenconnectivity(found.weights, found.orientations()).channels) in (8, 24)


def test_json_holds_the_numbers():
    angles = np.deg2rad([0.0, 10.0, 20.0])  # no pair is orthogonal
    weights = np.random.default_rng(0).standard_normal((3, 3, 5, 5))
    found = eigenconnectivity(weights, angles)
    read = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert read["likeness"] == {"value": None, "low": None, "high": None}
    assert read["collinearity"]["value"] == found.association.collinearity.value
    assert read["along"]["at"] == [1, 2]
    assert np.allclose(read["orientations"], [0, 10, 20])
    assert np.allclose(read["components"], found.components)
    assert sum(read["shares"]) == pytest.approx(1)


def test_what_lies_between_input_and_circuit_counts():
    network = create_model("contour_hgru", channels=8, kernel_size=5)
    before = network.normalise.running_mean.clone()
    found = connections(network)
    assert found.weights.shape == (8, 8, 5, 5)
    assert found.orientations().shape == (8,)
    assert network.training
    assert torch.equal(network.normalise.running_mean, before)
    flipped = create_model("contour_hgru", channels=8, kernel_size=5)
    torch.nn.init.constant_(flipped.normalise.weight, -1.0)  # what excited a channel inhibits it
    assert not np.allclose(connections(flipped).tuning.response, found.tuning.response)


def test_bad_input_is_refused():
    weights, angles = np.ones((4, 4, 5, 5)), np.zeros(4)
    with pytest.raises(ValueError, match=r"weights have shape \(4, 3, 5, 5\); they must be \(K, K"):
        eigenconnectivity(weights[:, :3], angles)
    with pytest.raises(ValueError, match=r"shape \(4, 4, 4, 4\); they must be .* S from 5"):
        eigenconnectivity(weights[..., :4, :4], angles)
    with pytest.raises(ValueError, match="weights hold nan or infinity"):
        eigenconnectivity(np.nan * weights, angles)
    with pytest.raises(ValueError, match=r"shape \(3,\); they must be one a channel, \(4,\)"):
        eigenconnectivity(weights, angles[:3])
    with pytest.raises(ValueError, match="an orientation is infinite; give radians, or nan"):
        eigenconnectivity(weights, angles + np.inf)
    with pytest.raises(ValueError, match=r"an orientation is 90; they are in radians, .*deg2rad"):
        eigenconnectivity(weights, np.array([0, 45, 90, np.nan]))
    with pytest.raises(ValueError, match="2 of 4 channels have an orientation; 3 or more must"):
        eigenconnectivity(weights, np.array([0, 1, np.nan, np.nan]))
    with pytest.raises(ValueError, match="variance is 80; it is a share, above 0 and at most 1"):
        eigenconnectivity(weights, angles, variance=80)
    with pytest.raises(ValueError, match="all kernels are the same after rotation"):
        eigenconnectivity(weights, angles)
    for name in ("resnet18", "ff_unrolled"):
        with pytest.raises(TypeError, match="has no input stage `input` with a recurrent circuit"):
            connections(create_model(name))
