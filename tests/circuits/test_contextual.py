"""The contextual neural model: Eqs. 1 and 2 of the paper."""

import dataclasses
import math
from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from hgru_vision.circuits.contextual import ContextualModel, ContextualState, MixingGates

CHANNELS, SIZE = 3, 7


def random_model(strength: float = 0.1, **parameters: float) -> ContextualModel:
    """Make a model with random kernels of four different sizes, weak enough to settle."""
    generator = torch.Generator().manual_seed(0)

    def kernel(size: int) -> Tensor:
        shape = (CHANNELS, CHANNELS, size, size)
        return strength * torch.rand(shape, generator=generator, dtype=torch.float64) / size

    return ContextualModel(
        near_excitation=kernel(1),
        far_excitation=kernel(5),
        near_inhibition=kernel(3),
        far_inhibition=kernel(7),
        **parameters,
    )


def random_drive(seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(2, CHANNELS, SIZE, SIZE, generator=generator, dtype=torch.float64)


def random_state(seed: int = 2) -> ContextualState:
    return ContextualState(random_drive(seed), random_drive(seed + 1))


def single_unit(excitation: float, inhibition: float, **parameters: float) -> ContextualModel:
    """Make a model of one unit which excites and inhibits itself alone."""
    weight = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    return ContextualModel(
        near_excitation=excitation * weight,
        far_excitation=0 * weight,
        near_inhibition=inhibition * weight,
        far_inhibition=0 * weight,
        **parameters,
    )


# -- Eq. 1 ---------------------------------------------------------------------------------------


def test_velocity_is_equation_1_written_with_loops() -> None:
    model = random_model(eta=0.7, epsilon=1.3, tau=0.4, sigma=0.9, xi=1.1, alpha=0.3, mu=0.6)
    x, (h1, h2) = random_drive(), random_state()
    h1[0] -= 0.8  # C2 is below zero in one image, above in the other

    def horizontal(near: Tensor, far: Tensor, h: Tensor, b: int, k: int, y: int, z: int) -> float:
        total = 0.0
        for kernel in (near, far):
            r = kernel.shape[-1] // 2
            for j, dy, dx in product(range(CHANNELS), range(-r, r + 1), range(-r, r + 1)):
                if 0 <= y + dy < SIZE and 0 <= z + dx < SIZE:
                    total += float(kernel[k, j, r + dy, r + dx] * h[b, j, y + dy, z + dx])
        return total

    d1, d2 = model.velocity(x, ContextualState(h1, h2))
    for b, k, y, z in [(0, 0, 0, 0), (1, 2, 3, 3), (0, 1, 6, 2)]:
        c1 = horizontal(model.near_inhibition, model.far_inhibition, h2, b, k, y, z)
        c2 = horizontal(model.near_excitation, model.far_excitation, h1, b, k, y, z)
        unit1, unit2, drive = (float(part[b, k, y, z]) for part in (h1, h2, x))
        right1 = max(1.1 * drive - (0.3 * unit1 + 0.6) * c1, 0.0)
        right2 = max(model.gamma * c2, 0.0)
        assert float(d1[b, k, y, z]) == pytest.approx((right1 - 1.3**2 * unit1) / 0.7, abs=1e-12)
        assert float(d2[b, k, y, z]) == pytest.approx((right2 - 0.9**2 * unit2) / 0.4, abs=1e-12)


def test_integrate_follows_the_closed_form_of_an_uninhibited_unit() -> None:
    # Without inhibition H1 = x (1 - exp(-t)), so H2 = x (1 - exp(-t) - t exp(-t)).
    model = single_unit(1.0, 0.0)
    x = torch.full((1, 1, 1, 1), 2.0, dtype=torch.float64)
    out = model.integrate(x, times=[0.0, 0.5, 1.0, 4.0])
    decay = torch.exp(-out.times)
    torch.testing.assert_close(out.h1.flatten(), 2 * (1 - decay), atol=1e-7, rtol=0)
    torch.testing.assert_close(
        out.h2.flatten(), 2 * (1 - decay - out.times * decay), atol=1e-7, rtol=0
    )


def test_euler_converges_to_the_continuous_solution_at_first_order() -> None:
    model, x = random_model(strength=0.6, tau=0.5), random_drive()
    exact = model.integrate(x, times=[0.0, 2.0], rtol=1e-11, atol=1e-12).final.h2
    errors = [
        float((model.euler(x, step=2.0 / n, steps=n).final.h2 - exact).abs().max())
        for n in (100, 200, 400)
    ]
    rates = [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert rates == pytest.approx([1.0, 1.0], abs=0.05)


# -- Eq. 2 and the derivation --------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "epsilon"), [(1.0, 1.0), (0.3, 1.7), (2.5, 0.8)])
def test_euler_with_the_special_step_is_equation_2(eta: float, epsilon: float) -> None:
    model = random_model(eta=eta, tau=eta, epsilon=epsilon, sigma=epsilon, alpha=0.7, mu=0.4)
    x, start = random_drive(), random_state()
    eq2 = model.discrete(x, 10, start)
    euler = model.euler(x, eta / epsilon**2, 10, start)
    assert float(eq2.h1[-1].min()) >= 0
    for name in ("times", "h1", "h2"):
        torch.testing.assert_close(getattr(eq2, name), getattr(euler, name), atol=1e-12, rtol=0)


def test_excitation_reads_the_new_input_state_and_inhibition_the_old_output_state() -> None:
    model = single_unit(1.0, 1.0, alpha=0.0)
    x = torch.full((1, 1, 1, 1), 3.0, dtype=torch.float64)
    start = ContextualState(torch.zeros_like(x), torch.ones_like(x))
    out = model.discrete(x, 1, start).final
    assert (out.h1.item(), out.h2.item()) == (2.0, 2.0)  # 3 - h2[0], then h1[1] and not h1[0]


def test_continuous_and_discrete_time_come_to_the_same_fixed_point() -> None:
    model, x = random_model(epsilon=1.2, sigma=1.2), random_drive()
    rest = model.discrete(x, 60).final
    torch.testing.assert_close(
        model.velocity(x, rest), ContextualState(*map(torch.zeros_like, rest)), atol=1e-12, rtol=0
    )
    path = model.integrate(x, times=[0.0, 1.0, 4.0, 30.0])
    gaps = (path.h2 - rest.h2).abs().amax(dim=(1, 2, 3, 4)).tolist()
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-8


def test_fixed_point_is_the_root_of_the_quadratic() -> None:
    # One unit, alpha = mu = 1 and H2 = H1: h = x - (h + 1) h, so h^2 + 2 h - x = 0.
    model = single_unit(1.0, 1.0)
    x = torch.full((1, 1, 1, 1), 0.5, dtype=torch.float64)
    out = model.integrate(x, times=[0.0, 40.0]).final
    assert out.h1.item() == pytest.approx(math.sqrt(1.5) - 1, abs=1e-8)


def test_strong_inhibition_rests_in_continuous_time_and_jumps_in_discrete_time() -> None:
    model = single_unit(1.0, 3.0, alpha=0.0)
    x = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    assert model.integrate(x, times=[0.0, 40.0]).final.h1.item() == pytest.approx(0.25, abs=1e-7)
    assert model.discrete(x, 40).h1[-2:].flatten().tolist() == [1.0, 0.0]


# -- The gated form ------------------------------------------------------------------------------


def gates(bias: float, weight: float = 0.0) -> MixingGates:
    u = torch.full((CHANNELS, CHANNELS, 1, 1), weight, dtype=torch.float64)
    b = torch.full((CHANNELS,), bias, dtype=torch.float64)
    return MixingGates(u1=u, b1=b, u2=u, b2=b)


def test_a_number_is_no_gate() -> None:
    with pytest.raises(TypeError, match="gates is float; give MixingGates"):
        random_model().gated(random_drive(), 0.5, 1)


def test_open_gates_are_equation_2() -> None:
    model, x = random_model(), random_drive()
    torch.testing.assert_close(model.gated(x, gates(50.0), 5), model.discrete(x, 5))


def test_a_constant_gate_is_euler_with_that_share_of_the_special_step() -> None:
    model = random_model(epsilon=1.4, sigma=1.4)
    x = torch.full_like(random_drive(), 0.5)  # X enters the gates, so it is made the same for all
    gate = 1 / (1 + math.exp(-(0.5 - 1.0)))
    gated = model.gated(x, gates(-1.0), 6, random_state())
    euler = model.euler(x, gate * model.special_step, 6, random_state())
    torch.testing.assert_close(gated.final, euler.final, atol=1e-12, rtol=0)


def test_the_gates_read_the_old_output_state_and_the_new_input_state() -> None:
    model = single_unit(1.0, 0.0)
    x = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    u, b = 2 * torch.ones(1, 1, 1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    start = ContextualState(torch.zeros_like(x), 3 * torch.ones_like(x))
    out = model.gated(x, MixingGates(u1=u, b1=b, u2=u, b2=b), 1, start).final
    h1 = 1 / (1 + math.exp(-(1 + 2 * 3)))
    g2 = 1 / (1 + math.exp(-(1 + 2 * h1)))
    assert out.h1.item() == pytest.approx(h1, abs=1e-12)
    assert out.h2.item() == pytest.approx(g2 * h1 + (1 - g2) * 3, abs=1e-12)


def test_discrete_forms_pass_gradcheck() -> None:
    model = random_model(strength=0.3)

    def output(x: Tensor, excitation: Tensor, u: Tensor) -> Tensor:
        changed = dataclasses.replace(model, far_excitation=excitation)
        b = torch.zeros(CHANNELS, dtype=torch.float64)
        gate = MixingGates(u1=u, b1=b, u2=u, b2=b)
        return changed.gated(x, gate, 2).final.h2 + changed.discrete(x, 2).final.h2

    x = random_drive()[:1, :, :4, :4].requires_grad_()
    excitation = model.far_excitation.clone().requires_grad_()
    assert torch.autograd.gradcheck(output, (x, excitation, gates(0.0, 0.2).u1.requires_grad_()))


# -- Bad input -----------------------------------------------------------------------------------


def test_even_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match=r"far_excitation has shape \(3, 3, 4, 4\).*with S odd"):
        dataclasses.replace(random_model(), far_excitation=torch.zeros(3, 3, 4, 4).double())


def test_kernel_of_other_channels_or_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match=r"far_inhibition .* torch.float32; .* torch.float64"):
        dataclasses.replace(random_model(), far_inhibition=torch.zeros(3, 3, 5, 5))
    with pytest.raises(ValueError, match=r"near_inhibition has shape \(2, 2, 1, 1\).*\(3, 3, S"):
        dataclasses.replace(random_model(), near_inhibition=torch.zeros(2, 2, 1, 1).double())


def test_gate_of_other_channels_is_refused() -> None:
    one = MixingGates(
        u1=torch.zeros(1, 1, 1, 1).double(),
        b1=torch.zeros(1).double(),
        u2=torch.zeros(1, 1, 1, 1).double(),
        b2=torch.zeros(1).double(),
    )
    with pytest.raises(ValueError, match=r"gates.u1 has shape \(1, 1, 1, 1\).*\(3, 3, S, S\)"):
        random_model().gated(random_drive(), one, 1)
    with pytest.raises(ValueError, match=r"b2 has shape \(2,\); u1 asks for \(1,\)"):
        dataclasses.replace(one, b2=torch.zeros(2).double())


@pytest.mark.parametrize("name", ["eta", "epsilon", "tau", "sigma"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_time_constants_must_be_positive(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a positive number, got {value}"):
        random_model(**{name: value})


def test_euler_refuses_a_step_or_a_number_of_steps_that_is_not_positive() -> None:
    with pytest.raises(ValueError, match=r"step must be a positive number, got 0"):
        random_model().euler(random_drive(), 0.0, 3)
    with pytest.raises(ValueError, match=r"number of steps must be at least 1, got 0"):
        random_model().euler(random_drive(), 0.1, 0)


def test_equation_2_needs_equal_time_constants() -> None:
    with pytest.raises(ValueError, match=r"eta=1.0 equal to tau=2.0 .* euler take any"):
        random_model(tau=2.0).discrete(random_drive(), 1)
    with pytest.raises(ValueError, match=r"epsilon=1.0 equal to sigma=2.0"):
        random_model(sigma=2.0).discrete(random_drive(), 1)


def test_times_must_increase() -> None:
    with pytest.raises(ValueError, match=r"increasing numbers, got \[0.0, 1.0, 1.0\]"):
        random_model().integrate(random_drive(), times=[0.0, 1.0, 1.0])


def test_runaway_activity_is_named() -> None:
    # Shunting by negative inhibition grows as the square of the activity: infinite in finite time.
    model = single_unit(1.0, -5.0)
    with pytest.raises(RuntimeError, match=r"solver gave up before t=100: .*lower gamma=1"):
        model.integrate(torch.ones(1, 1, 1, 1, dtype=torch.float64), times=[0.0, 100.0])


def test_drive_of_another_shape_dtype_or_not_finite_is_refused() -> None:
    model, x = random_model(), random_drive()
    with pytest.raises(ValueError, match=r"x has shape \(2, 2, 7, 7\).*need \(B, 3, H, W\)"):
        model.discrete(x[:, :2], 1)
    with pytest.raises(ValueError, match=r"torch.float32; the kernels need .* torch.float64"):
        model.discrete(x.float(), 1)
    with pytest.raises(ValueError, match=r"x holds NaN or infinity"):
        model.discrete(x.clone().fill_(math.nan), 1)


def test_state_of_another_shape_is_refused() -> None:
    x, (h1, h2) = random_drive(), random_state()
    with pytest.raises(ValueError, match=r"h2 is \(1, 3, 7, 7\) but x is \(2, 3, 7, 7\)"):
        random_model().discrete(x, 1, ContextualState(h1, h2[:1]))
