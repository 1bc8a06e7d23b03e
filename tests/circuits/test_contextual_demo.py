"""The demonstrations of the contextual neural model."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from hgru_vision.circuits.contextual_demo import (
    association_field,
    contextual_figure,
    contour_facilitation,
    hand_set_model,
    inhibitory_surround,
    surround_suppression,
)


@pytest.mark.parametrize("make", [association_field, inhibitory_surround])
def test_far_kernels_are_nonnegative_normalised_and_symmetric(make: Callable) -> None:
    kernel = make(6)
    assert float(kernel.min()) >= 0
    assert float(kernel.sum(dim=(1, 2, 3)).mean()) == pytest.approx(1, abs=1e-6)
    centre = kernel.shape[-1] // 2
    assert not kernel[..., centre, centre].any()
    torch.testing.assert_close(kernel, kernel.transpose(0, 1), rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(kernel, kernel.flip(2, 3), rtol=1e-4, atol=1e-7)


def test_association_field_turns_with_its_channel() -> None:
    kernel = association_field(4)  # 0, 45, 90 and 135 degrees; rows grow downwards
    centre = kernel.shape[-1] // 2
    neighbours = {0: (0, 1), 1: (-1, 1), 2: (-1, 0), 3: (-1, -1)}
    for channel, (dy, dx) in neighbours.items():
        ring = {
            (y, x): float(kernel[channel, channel, centre + y, centre + x])
            for y, x in neighbours.values()
        }
        assert max(ring, key=ring.__getitem__) == (dy, dx)


def test_inhibitory_surround_prefers_its_own_orientation_and_no_direction() -> None:
    kernel = inhibitory_surround(4)
    torch.testing.assert_close(kernel, kernel.rot90(dims=(2, 3)))
    by_channel = kernel[0].sum(dim=(1, 2))
    assert by_channel.argmax() == 0
    assert by_channel.argmin() == 2


def test_a_parallel_surround_suppresses_and_an_orthogonal_one_spares() -> None:
    radii, parallel, orthogonal = surround_suppression()
    assert radii.tolist() == list(range(9))
    assert parallel[0] == orthogonal[0]
    assert parallel.argmax() == 1  # summation over near neighbours first
    assert parallel[-1] < 0.65 * parallel[0]
    assert 0.8 * orthogonal[0] < orthogonal[-1] < orthogonal[0]


def test_suppression_grows_with_the_contrast_of_the_surround() -> None:
    last = [surround_suppression(contrast=c).parallel[-1] for c in (0.0, 0.3, 1.0)]
    assert last == sorted(last, reverse=True)
    assert last[0] == surround_suppression().parallel[0]


def test_an_aligned_line_stands_out_and_a_turned_one_does_not() -> None:
    result = contour_facilitation()
    assert result.rotations.tolist() == [0.0, 22.5, 45.0, 67.5, 90.0]
    assert result.line.argmax() == 0
    assert result.line[0] > 1.3 * result.line[1:].max()
    assert result.line[0] > 1.3 * result.distractors[0]
    assert (result.line[1:] < result.distractors[1:]).all()
    assert result.response.shape == result.angles.shape == (5, 21, 21)


def test_responses_are_means_of_the_line_and_of_the_distractors_around_it() -> None:
    result = contour_facilitation(fields=1)
    square = result.response[:, 6:15, 6:15]  # the line is the middle row
    assert result.line == pytest.approx(square[:, 4].mean(axis=1))
    assert result.distractors == pytest.approx(np.delete(square, 4, axis=1).mean(axis=(1, 2)))


def test_facilitation_is_the_work_of_far_excitation() -> None:
    model = hand_set_model()
    without = dataclasses.replace(model, far_excitation=0 * model.far_excitation)
    result = contour_facilitation(without)
    assert result.line[0] == pytest.approx(result.line[-1], rel=0.02)


def test_distractors_come_from_the_generator_and_from_nothing_else() -> None:
    before = torch.get_rng_state()
    first, again = contour_facilitation(fields=1), contour_facilitation(fields=1)
    other = contour_facilitation(fields=1, generator=torch.Generator().manual_seed(1))
    assert (first.angles == again.angles).all()
    assert (first.angles != other.angles).any()
    assert torch.equal(before, torch.get_rng_state())


def test_figure_has_six_panels_and_a_colour_bar() -> None:
    assert len(contextual_figure().axes) == 7


def test_demonstrations_take_a_model_in_training_and_in_float64() -> None:
    model = hand_set_model()
    double = {
        field.name: kernel.double().requires_grad_()
        for field in dataclasses.fields(model)
        if isinstance(kernel := getattr(model, field.name), Tensor)
    }
    trained = dataclasses.replace(model, **double)
    ours, theirs = surround_suppression(trained, largest=2), surround_suppression(largest=2)
    assert ours.parallel.dtype == "float64"
    assert ours.parallel == pytest.approx(theirs.parallel, rel=1e-5)
    assert len(contextual_figure(trained).axes) == 7


def test_demonstrations_refuse_what_they_cannot_show() -> None:
    with pytest.raises(ValueError, match=r"largest must be between 1 and 10, got 11"):
        surround_suppression(largest=11)
    with pytest.raises(ValueError, match=r"fields must be at least 1, got 0"):
        contour_facilitation(fields=0)
    with pytest.raises(ValueError, match=r"5 orientation channels: the number must be even"):
        hand_set_model(5)
    strong = hand_set_model()
    strong = dataclasses.replace(strong, far_inhibition=50 * strong.far_inhibition)
    with pytest.raises(RuntimeError, match=r"not at rest after 32 steps .* weaken its kernels"):
        surround_suppression(strong)
