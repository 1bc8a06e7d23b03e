"""Measures and figure of a circuit's activity over its steps."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from hgru_vision.analysis.dynamics import activity, change, dynamics_figure, mask_share, norm
from hgru_vision.circuits import HGRU, Trajectory
from hgru_vision.circuits.contextual_demo import hand_set_model

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


# -- The figure ----------------------------------------------------------------------------------


def test_figure_shows_input_steps_and_curves(tmp_path: Path) -> None:
    states = trajectory()
    figure = dynamics_figure(states, np.zeros((HEIGHT, WIDTH)), two_masks(), index=1)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[:3] == ["input", "step 1", "step 2"]
    assert titles[-3:] == ["norm", "convergence", "activity on a path (dotted: its area)"]
    curves = {axes.get_title(): axes.lines for axes in figure.axes}
    drawn = np.asarray(curves["norm"][0].get_ydata())
    np.testing.assert_allclose(drawn, norm(states)[:, 1])
    assert [line.get_label() for line in curves[titles[-1]][::2]] == ["path 1", "path 2"]
    figure.savefig(tmp_path / "dynamics.png")
    assert (tmp_path / "dynamics.png").stat().st_size > 10_000


def test_figure_without_masks_has_no_path_curves() -> None:
    figure = dynamics_figure(trajectory(), torch.zeros(1, HEIGHT, WIDTH))
    assert figure.axes[-1].get_title() == "convergence"


def test_figure_of_many_steps_shows_eight_from_first_to_last() -> None:
    long = trajectory(torch.rand(30, 1, 2, HEIGHT, WIDTH, generator=torch.Generator()))
    titles = [axes.get_title() for axes in dynamics_figure(long, np.zeros((HEIGHT, WIDTH))).axes]
    steps = [title for title in titles if title.startswith("step")]
    assert len(steps) == 8
    assert (steps[0], steps[-1]) == ("step 1", "step 30")


def test_figure_takes_a_silent_circuit_and_names_for_the_masks() -> None:
    silent = trajectory(torch.zeros(3, 1, 2, HEIGHT, WIDTH))
    figure = dynamics_figure(silent, np.zeros((HEIGHT, WIDTH)), two_masks(), labels=["a", "b"])
    figure.draw_without_rendering()
    legend = figure.axes[-1].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


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


def test_figure_refuses_another_image_index_or_number_of_labels() -> None:
    image = np.zeros((HEIGHT, WIDTH))
    with pytest.raises(ValueError, match=r"image has shape \(5, 5\); the activity is 12 x 10"):
        dynamics_figure(trajectory(), np.zeros((5, 5)))
    with pytest.raises(ValueError, match=r"index is 2; the trajectory has images 0 to 1"):
        dynamics_figure(trajectory(), image, index=2)
    with pytest.raises(ValueError, match=r"1 labels for 2 masks; give one for each"):
        dynamics_figure(trajectory(), image, two_masks(), labels=["only"])
