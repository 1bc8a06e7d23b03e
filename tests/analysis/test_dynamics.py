"""Measures of a circuit's activity over its steps."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hgru_vision import Pathfinder, create_model
from hgru_vision.analysis.dynamics import (
    activity,
    change,
    emphasis,
    first_right,
    mask_share,
    norm,
    unfold,
)
from hgru_vision.circuits import HGRU, HGRUReleased, Trajectory
from hgru_vision.circuits.contextual_demo import hand_set_model
from hgru_vision.training.evaluate import evaluate

STEPS, BATCH, CHANNELS, HEIGHT, WIDTH = 6, 2, 3, 12, 10


def trajectory(h2: Tensor | None = None) -> Trajectory:
    if h2 is None:
        generator = torch.Generator().manual_seed(0)
        shape = STEPS, BATCH, CHANNELS, HEIGHT, WIDTH
        h2 = torch.randn(shape, generator=generator, dtype=torch.float64)
    return Trajectory(h1=-h2, h2=h2, g1=torch.zeros_like(h2), g2=torch.zeros_like(h2))


def two_masks() -> np.ndarray:
    masks = np.zeros((2, HEIGHT, WIDTH), bool)
    masks[0, 3], masks[1, :, 7] = True, True
    return masks


# -- The measures --------------------------------------------------------------------------------


def test_activity_is_the_root_mean_square_over_channels() -> None:
    states = trajectory()
    maps = activity(states)
    assert maps.shape == (STEPS, BATCH, HEIGHT, WIDTH)
    expected = np.sqrt(np.mean(states.h2[4, 1, :, 5, 6].numpy() ** 2))
    assert float(maps[4, 1, 5, 6]) == pytest.approx(expected)


def test_norm_is_the_root_mean_square_of_an_image() -> None:
    states = trajectory()
    norms = norm(states)
    assert norms.shape == (STEPS, BATCH)
    expected = np.sqrt(np.mean(states.h2[2, 1].numpy() ** 2))
    assert float(norms[2, 1]) == pytest.approx(expected)


def test_change_is_relative_to_the_new_state() -> None:
    states = trajectory()
    changes = change(states)
    assert changes.shape == (STEPS - 1, BATCH)
    h2 = states.h2[:, 0].numpy()
    expected = np.linalg.norm(h2[3] - h2[2]) / np.linalg.norm(h2[3])
    assert float(changes[2, 0]) == pytest.approx(expected)


def test_change_of_a_settling_circuit_falls_to_zero() -> None:
    layer = HGRU(channels=3, kernel_size=3, timesteps=8)
    x = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    states = layer(x, timesteps=80, return_trajectory=True)
    changes = change(states)[:, 0]
    assert not changes.requires_grad
    assert changes[0] > 0.1
    assert changes[-1] < 1e-3


def test_mask_share_is_the_sum_on_the_mask_by_the_sum_of_all() -> None:
    states, masks = trajectory(), two_masks()
    shares = mask_share(states, masks)
    assert shares.shape == (STEPS, BATCH, 2)
    maps = activity(states)[1, 1].numpy()
    assert float(shares[1, 1, 0]) == pytest.approx(maps[3].sum() / maps.sum())
    assert float(shares[1, 1, 1]) == pytest.approx(maps[:, 7].sum() / maps.sum())


def test_each_image_may_have_its_own_masks() -> None:
    states, masks = trajectory(), torch.from_numpy(two_masks())
    both = torch.stack([masks, ~masks])
    shares = mask_share(states, both)
    torch.testing.assert_close(shares[:, 0], mask_share(states, masks)[:, 0])
    torch.testing.assert_close(shares[:, 1], 1 - mask_share(states, masks)[:, 1])


def test_activity_that_spreads_along_a_path_raises_its_share() -> None:
    # A front that moves one pixel a step along row 3, over a weak background.
    h2 = torch.full((STEPS, 1, 1, HEIGHT, WIDTH), 0.01)
    for t in range(STEPS):
        h2[t, :, :, 3, : t + 1] = 1.0
    shares = mask_share(trajectory(h2), two_masks())[:, 0, 0]
    assert (shares.diff() > 0).all()


def test_a_silent_circuit_has_no_change_and_no_share() -> None:
    silent = trajectory(torch.zeros(3, 1, 2, HEIGHT, WIDTH))
    assert not change(silent).any()
    assert not mask_share(silent, two_masks()).any()


def test_the_contextual_model_has_a_trajectory_too() -> None:
    model = hand_set_model(orientations=4)
    states = model.euler(torch.ones(1, 4, 9, 9), step=0.5, steps=3)
    assert norm(states).shape == (4, 1)


def test_emphasis_is_the_mean_on_a_mask_by_that_on_the_ground() -> None:
    states, masks = trajectory(), two_masks()
    ground = ~masks.any(axis=0, keepdims=True)
    found = emphasis(states, masks, ground)
    assert found.shape == (STEPS, BATCH, 2)
    maps = activity(states)[4, 1].numpy()
    assert float(found[4, 1, 1]) == pytest.approx(maps[masks[1]].mean() / maps[ground[0]].mean())
    each = emphasis(states, np.stack([masks, ~masks]), np.stack([ground, ground]))
    torch.testing.assert_close(each[:, 0], found[:, 0])


def test_nothing_is_emphasised_over_an_empty_or_silent_ground() -> None:
    empty = np.zeros((1, HEIGHT, WIDTH), bool)
    assert not emphasis(trajectory(), two_masks(), empty).any()
    assert not emphasis(trajectory(), empty, ~empty).any()
    assert not emphasis(trajectory(torch.zeros(3, 1, 2, HEIGHT, WIDTH)), empty, ~empty).any()


# -- A network and an image ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def data() -> Pathfinder:
    small = {"canvas": 64, "seed_radius": 8, "distractor_paddles": 10}
    return Pathfinder(length=6, count=20, split="test", **small)


@pytest.fixture(scope="module")
def network(decisive: Any, data: Pathfinder) -> torch.nn.Module:
    images = torch.from_numpy(data.batch(range(20)))[:, None] / 255
    return decisive(create_model("hgru_small"), images).eval()


def test_the_released_circuit_is_read_out_behind_its_batch_norm(data: Pathfinder) -> None:
    network: Any = create_model("hgru_small")
    network.features = HGRUReleased(8, 7, 4)
    with torch.no_grad():
        network.features.norm.weight.mul_(3)
        torch.nn.init.eye_(network.readout.decide.weight)
    network.eval()
    image, _ = data[3]
    with torch.no_grad():
        logits = network(image[None])
    found = unfold(network, data, 3)
    assert found.probability[-1] == pytest.approx(float(logits.softmax(dim=1)[0, 1]), abs=1e-5)


def test_a_network_is_followed_to_its_decision(data: Pathfinder, network: Any) -> None:
    image, _ = data[3]
    found = unfold(network, data, 3)
    with torch.no_grad():
        logits = network(image[None])
        states = network.features(network.input(image[None]), return_trajectory=True)
    assert found.probability[-1] == pytest.approx(float(logits.softmax(dim=1)[0, 1]), abs=1e-5)
    assert found.probability[0] != pytest.approx(found.probability[-1], abs=1e-5)
    assert found.maps.shape == (4, 64, 64) and len(found.change) == 3
    np.testing.assert_allclose(found.norm, norm(states)[:, 0], rtol=1e-5)
    stimulus = data.stimulus(3)
    ground = stimulus.masks[2:].any(axis=0)[None]
    expected = emphasis(states, stimulus.masks[:2], ground)[:, 0].numpy()
    paths = {path.tobytes(): found.emphasis[name] for name, path in found.paths.items()}
    for number in range(2):
        mine = paths[stimulus.masks[number].tobytes()]
        np.testing.assert_allclose(mine, expected[:, number], rtol=1e-4)
    written = found.to_json()
    assert (written["item"], written["label"]) == (3, stimulus.label)
    assert written["probability"] == pytest.approx(found.probability, abs=1e-5)
    assert written["emphasis"].keys() == found.paths.keys()


def test_the_path_with_the_markers_is_named(data: Pathfinder, network: Any) -> None:
    labels = data.labels(range(20))
    names = [list(unfold(network, data, int(np.argmax(labels == each))).paths) for each in (0, 1)]
    assert names == [["marked path 1", "marked path 2"], ["marked path", "other path"]]
    for item in np.flatnonzero(labels == 1)[:5]:
        path = unfold(network, data, int(item)).paths["marked path"]
        y, x = np.nonzero(path)
        for marker in data.stimulus(int(item)).markers:
            assert np.hypot(x - marker[0], y - marker[1]).min() < 4


@pytest.mark.parametrize("label", [0, 1])
def test_the_first_image_that_is_got_right(data: Pathfinder, network: Any, label: int) -> None:
    right = evaluate(network, data).right
    expected = np.flatnonzero(right & (data.labels(range(20)) == label))[0]
    assert first_right(network, data, label) == expected


# -- Bad input -----------------------------------------------------------------------------------


def test_what_is_not_a_trajectory_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got <class 'torch.Tensor'>; .*return_trajectory=True"):
        norm(torch.zeros(1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got h2 of shape \(3, 12, 10\)"):
        norm(trajectory(torch.zeros(3, HEIGHT, WIDTH)))


def test_change_needs_two_steps() -> None:
    with pytest.raises(ValueError, match="two steps or more; the trajectory has 1"):
        change(trajectory(torch.zeros(1, 1, 1, 2, 2)))


@pytest.mark.parametrize("shape", [(2, 10, 12), (12, 10), (3, 2, 12, 10)])
def test_masks_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"must be torch.bool of shape \(M, 12, 10\) or \(2, M,"):
        mask_share(trajectory(), np.zeros(shape, bool))


def test_masks_that_are_not_boolean_are_refused() -> None:
    with pytest.raises(ValueError, match=r"masks is torch.uint8 of shape \(2, 12, 10\)"):
        mask_share(trajectory(), two_masks().astype(np.uint8))


def test_a_network_that_gets_no_image_of_a_label_right_is_refused(data: Pathfinder) -> None:
    undecided = create_model("hgru_small")  # its classifier starts at zero: the answer is always 0
    assert first_right(undecided, data, 0) == int(np.argmin(data.labels(range(20))))
    with pytest.raises(ValueError, match="of the first 20 test images it gets none with label 1"):
        first_right(undecided, data, 1)
    one = Pathfinder(config=data.config, count=1, split="test")
    with pytest.raises(ValueError, match="of the first 1 test images it gets none with label"):
        first_right(undecided, one, 1 - int(one.labels([0])[0]))


def test_a_network_without_a_circuit_is_refused(data: Pathfinder) -> None:
    with pytest.raises(TypeError, match=r"ResNet has no recurrent circuit .* the hGRU, its var"):
        unfold(create_model("resnet18"), data, 0)
