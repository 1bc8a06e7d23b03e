"""Contractor recurrent back-propagation: gradients at a fixed point, and their memory."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hgru_vision.circuits.equilibrium import (
    EquilibriumHGRU,
    EquilibriumWarning,
    contractor_penalty,
    equilibrium,
)
from hgru_vision.circuits.hgru import HGRU


def small_layer(time_gain: float = 0.8, **options: object) -> EquilibriumHGRU:
    """Make a float64 layer; below 1, the time-gain makes it settle fast."""
    layer = EquilibriumHGRU(3, 5, 4, **options).double()
    torch.nn.init.constant_(layer.eta, time_gain)
    return layer


def drive(batch: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(batch, 3, 9, 7, generator=generator, dtype=torch.float64)


def gradients(layer: EquilibriumHGRU, run: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    """Gradients of an arbitrary loss with respect to the input and all parameters."""
    layer.zero_grad()
    x = drive().requires_grad_()
    out = run(x)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
    (weights * out + out**2).sum().backward()
    assert x.grad is not None
    found = {"x": x.grad}
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None
        found[name] = parameter.grad.clone()
    return found


def saved_bytes(run: Callable[[], Tensor]) -> int:
    """Count the bytes that autograd keeps for the backward pass, each storage once."""
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor  # kept, so that no address comes back
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


# -- The gradient --------------------------------------------------------------------------------


def test_gradient_is_that_of_back_propagation_through_time() -> None:
    layer = small_layer(steps=80)
    implicit = gradients(layer, layer)
    plain = gradients(layer, lambda x: layer(x, return_trajectory=True).h2[-1])
    assert layer.residual < 1e-6
    assert set(implicit) == set(plain)
    for name, gradient in plain.items():
        error = (implicit[name] - gradient).norm() / gradient.norm()
        assert error < 1e-5, name  # the bar is 1e-3


def test_gradient_needs_the_whole_series() -> None:
    # What one step alone would give: a check that the comparison above can fail.
    layer = small_layer(steps=80)
    plain = gradients(layer, lambda x: layer(x, return_trajectory=True).h2[-1])
    rest = layer(drive()).detach()
    one_step = gradients(layer, lambda x: layer.recurrence(x)(rest))
    assert (one_step["x"] - plain["x"]).norm() / plain["x"].norm() > 0.05


def test_gradient_of_a_linear_recurrence_is_the_closed_form() -> None:
    a = torch.tensor([[0.3, 0.4], [-0.2, 0.5]], dtype=torch.float64)
    b = torch.ones(1, 2, dtype=torch.float64, requires_grad=True)
    state, residual = equilibrium(lambda h: h @ a.T + b, torch.zeros_like(b), steps=80)
    inverse = torch.linalg.inv(torch.eye(2, dtype=torch.float64) - a)
    state[0, 0].backward()
    torch.testing.assert_close(state.detach()[0], inverse.sum(dim=1))
    assert b.grad is not None
    torch.testing.assert_close(b.grad[0], inverse[0])
    assert residual < 1e-12


def test_the_series_has_as_many_terms_as_there_were_steps() -> None:
    a, b = 0.5, torch.zeros(1, 1, requires_grad=True)
    state, _ = equilibrium(lambda h: a * h + b, torch.zeros(1, 1), steps=3, tolerance=1.0)
    state.backward()
    assert b.grad is not None
    assert b.grad.item() == 1 + a + a**2


def test_fixed_point_does_not_depend_on_the_start() -> None:
    layer, x = small_layer(steps=80), drive()
    state = torch.ones_like(x).requires_grad_()
    out = layer(x, state)
    torch.testing.assert_close(out, layer(x), atol=1e-6, rtol=0)
    out.sum().backward()
    assert state.grad is None


def test_no_gradient_is_kept_without_grad_mode() -> None:
    with torch.no_grad():
        assert not small_layer()(drive()).requires_grad


def test_a_frozen_layer_keeps_no_gradient() -> None:
    layer = small_layer().requires_grad_(False)
    assert not layer(drive()).requires_grad
    assert layer(drive().requires_grad_()).requires_grad


def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    x = drive().requires_grad_()
    out = small_layer()(x).sum()
    with pytest.raises(RuntimeError, match=r"cannot be differentiated again.*return_trajectory"):
        torch.autograd.grad(out, x, create_graph=True)


# -- Memory --------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_steps() -> None:
    layer, x = small_layer(tolerance=1.0), drive().requires_grad_()
    implicit = {n: saved_bytes(lambda n=n: layer(x, timesteps=n)) for n in (8, 64)}
    plain = {
        n: saved_bytes(lambda n=n: layer(x, timesteps=n, return_trajectory=True)) for n in (8, 64)
    }
    assert implicit[8] == implicit[64] > 0
    assert plain[64] > 6 * plain[8]
    assert implicit[64] < plain[8]


# -- The layer -----------------------------------------------------------------------------------


def test_layer_is_the_hgru_with_its_last_time_gain() -> None:
    layer = small_layer()
    with torch.no_grad():
        layer.eta.copy_(torch.tensor([5.0, -3.0, 2.0, 0.8]))
    hgru = HGRU(3, 5, 4).double()
    hgru.load_state_dict(layer.state_dict())
    torch.nn.init.constant_(hgru.eta, 0.8)
    torch.testing.assert_close(layer(drive()), hgru(drive(), timesteps=layer.steps))


def test_mix_has_no_gradient_where_the_time_gain_is_one() -> None:
    layer = small_layer(time_gain=1.0, steps=400)
    found = gradients(layer, layer)
    assert float(found["u2"].norm() + found["b2"].norm()) < 1e-8 * float(found["u1"].norm())


def test_layer_shows_its_steps() -> None:
    with pytest.raises(ValueError, match="steps is 0; it must be 1 or more"):
        EquilibriumHGRU(2, 3, steps=0)
    for tolerance in (-1, 0, math.nan):
        with pytest.raises(ValueError, match=f"tolerance is {tolerance}; it must be greater"):
            EquilibriumHGRU(2, 3, tolerance=tolerance)
    assert "steps=64, tolerance=0.001" in repr(EquilibriumHGRU(2, 3))
    assert "steps=12, tolerance=0.01" in repr(EquilibriumHGRU(2, 3, steps=12, tolerance=0.01))


def test_residual_is_that_of_the_worst_image() -> None:
    rates = torch.tensor([[0.1], [0.9]])
    _, residual = equilibrium(lambda h: rates * h + 1, torch.zeros(2, 1), steps=5, tolerance=1.0)
    states = [(1 - 0.9**n) / 0.1 for n in (4, 5)]
    assert residual == pytest.approx((states[1] - states[0]) / states[1], rel=1e-5)


def test_residual_is_at_most_one() -> None:
    _, residual = equilibrium(lambda h: h / 10, torch.ones(1, 1), steps=3, tolerance=1.0)
    assert residual == 1


# -- The penalty ---------------------------------------------------------------------------------


def test_penalty_is_that_of_the_column_sums_of_the_jacobian() -> None:
    layer = small_layer(time_gain=1.2)
    x, h2 = drive(1), drive(1) - 0.5
    step = layer.recurrence(x)
    jacobian = torch.autograd.functional.jacobian(step, h2).reshape(h2.numel(), h2.numel())
    excess = (jacobian.sum(dim=0) - 0.9).clamp(min=0)
    assert h2.numel() / 4 < excess.count_nonzero() < h2.numel() * 3 / 4
    torch.testing.assert_close(contractor_penalty(step, h2), excess.square().mean())


def test_penalty_leaves_out_the_graph_of_its_state() -> None:
    weight, start = torch.ones(1, requires_grad=True), torch.ones(1, 4, requires_grad=True)
    contractor_penalty(lambda h: weight * h**2, 2 * start).backward()
    assert weight.grad is not None
    assert start.grad is None


def test_penalty_passes_gradcheck() -> None:
    layer = small_layer(time_gain=1.6)
    h2 = drive(1) - 0.5

    def penalty(x: Tensor) -> Tensor:
        return contractor_penalty(layer.recurrence(x), h2)

    assert torch.autograd.gradcheck(penalty, drive(1).requires_grad_())


def test_penalty_makes_a_diverging_recurrence_contract() -> None:
    a = torch.tensor(1.5, requires_grad=True)
    optimiser = torch.optim.SGD([a], lr=0.1)
    for _ in range(100):
        optimiser.zero_grad()
        contractor_penalty(a.mul, torch.ones(1, 4)).backward()
        optimiser.step()
    assert a.item() == pytest.approx(0.9, abs=1e-4)


# -- What does not converge, and bad input -------------------------------------------------------


def test_a_state_that_has_not_settled_warns_and_is_given_all_the_same() -> None:
    layer = small_layer(steps=2)
    with pytest.warns(EquilibriumWarning, match=r"state has not converged.*last of 2 steps.*Take"):
        out = layer(drive())
    assert layer.residual > layer.tolerance
    torch.testing.assert_close(out, layer(drive(), timesteps=2, return_trajectory=True).h2[-1])


def test_a_series_that_has_not_converged_warns() -> None:
    # 0 is a fixed point of h = 2 h, but an unstable one: the state rests and the gradient grows.
    b = torch.zeros(1, 1, requires_grad=True)
    state, residual = equilibrium(lambda h: 2 * h + b, torch.zeros(1, 1), steps=10)
    assert residual == 0
    with pytest.warns(EquilibriumWarning, match=r"gradient has not converged.*10 steps is 5e-01"):
        state.backward()


def test_divergence_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"state is not finite after 200 steps.*time-gain"):
        equilibrium(lambda h: 3 * h + 1, torch.zeros(1, 1), steps=200)
    b = torch.zeros(1, 1, requires_grad=True)
    state, _ = equilibrium(lambda h: 3 * h + b, torch.zeros(1, 1), steps=200)
    with pytest.raises(RuntimeError, match=r"gradient is not finite after 200 steps"):
        state.backward()


@pytest.mark.parametrize("steps", [0, -1])
def test_steps_must_be_positive(steps: int) -> None:
    with pytest.raises(ValueError, match=f"steps is {steps}; it must be 1 or more"):
        small_layer()(drive(), timesteps=steps)


@pytest.mark.parametrize("bound", [-0.1, 1.0, math.nan])
def test_bound_must_be_that_of_a_contraction(bound: float) -> None:
    with pytest.raises(ValueError, match=f"bound is {bound}; a contraction needs 0 <= bound < 1"):
        contractor_penalty(lambda h: h, torch.ones(1, 1), bound=bound)


def test_a_learned_start_is_refused() -> None:
    with pytest.raises(ValueError, match=r"start is 'learned'.*choose zero or random"):
        EquilibriumHGRU(2, 3, start="learned")


def test_a_drive_of_another_shape_or_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match=r"x has shape \(2, 2, 9, 7\); this layer takes \(B, 3, H"):
        small_layer()(drive()[:, :2])
    with pytest.raises(TypeError, match=r"x is torch.float32 and the layer torch.float64; convert"):
        small_layer()(drive().float())


def test_state_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"state has shape \(1, 3, 9, 7\)"):
        small_layer()(drive(), drive(1))
