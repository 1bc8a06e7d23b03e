"""The contextual neural model that the hGRU grew from: Eqs. 1 and 2, and the first gated form.

Linsley et al. (2018), section 2 "Original contextual neural circuit model", adapt the circuit of
Mely, Linsley & Serre (2018). The supplement, "Deriving the hGRU from the contextual neural circuit
model", goes from differential equations to a gated network. `ContextualModel` has each stage:

- `velocity`, `integrate`: two differential equations, Eq. 1;
- `euler`: Euler's method with any time step h;
- `discrete`: Euler's method with h = eta / epsilon^2, which is Eq. 2;
- `gated`: gates in the place of the time step, the last equation before the hGRU.

`contextual_demo` sets kernels by hand and shows surround suppression and contour facilitation. The
derivation is one file, if a long one, so that it reads from the first equation to the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.integrate import solve_ivp
from torch import Tensor

__all__ = ["ContextualModel", "ContextualState", "ContextualTrajectory", "MixingGates"]


class ContextualState(NamedTuple):
    """The circuit's input H1 and output H2, each (B, K, H, W)."""

    h1: Tensor
    h2: Tensor


class ContextualTrajectory(NamedTuple):
    """States over time: `times` (N,) and `h1`, `h2` (N, B, K, H, W). Entry 0 is the start."""

    times: Tensor
    h1: Tensor
    h2: Tensor

    @property
    def final(self) -> ContextualState:
        """The last state."""
        return ContextualState(self.h1[-1], self.h2[-1])


_Advance = Callable[[Tensor, Tensor], ContextualState]


@dataclass(frozen=True, kw_only=True, eq=False)
class MixingGates:
    """Weights of the two gates of the simplest gated form (supplement).

    Parameters
    ----------
    u1, u2
        Kernels U1 over H2[t-1] and U2 over H1[t], of odd size S: (K, K, S, S).
    b1, b2
        Biases: (K,).
    """

    u1: Tensor
    b1: Tensor
    u2: Tensor
    b2: Tensor

    def __post_init__(self) -> None:
        for name in ("u1", "u2"):
            _check_kernel(name, getattr(self, name), like=self.u1)
        for name in ("b1", "b2"):
            shape, channels = tuple(getattr(self, name).shape), len(self.u1)
            if shape != (channels,):
                raise ValueError(f"{name} has shape {shape}; u1 asks for ({channels},)")


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextualModel:
    """The recurrent neural model of contextual interactions, Eq. 1.

    .. code-block:: text

        eta dH1/dt + epsilon^2 H1 = [xi X - (alpha H1 + mu) C1]_+     C1 = W^I * H2
        tau dH2/dt + sigma^2   H2 = [gamma C2]_+                      C2 = W^E * H1

    X drives the input state H1; H1 excites the output state H2 through W^E; H2 inhibits H1 through
    W^I, in part by subtraction (mu) and in part by shunting, in proportion to H1 (alpha). Units
    beyond the border of the image are silent (zero padding). Gradients flow through everything but
    `integrate`.

    Parameters
    ----------
    near_excitation, far_excitation, near_inhibition, far_inhibition
        The four connectivity patterns of the original model, which the footnote to Eq. 1 adds up
        to W^E and W^I. Each has an odd size S of its own, with r = (S - 1) / 2: the weight
        [i, j, r + dy, r + dx] leads from channel j at (y + dy, x + dx) to channel i at (y, x).
    eta, tau
        Time constants of H1 and H2.
    epsilon, sigma
        Their squares are the rates of decay of H1 and H2. The discrete forms need eta = tau and
        epsilon = sigma, as the derivation does.
    xi, alpha, mu, gamma
        Strength of the drive, of shunting and of subtractive inhibition, and of excitation.

    Shape
    -----
    Kernels (K, K, S, S); drive X and states (B, K, H, W).

    Examples
    --------
    A unit which excites and inhibits itself alone: H1 = 2 - H2 and H2 = H1 have their rest at 1.

    >>> one, none = torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1)
    >>> model = ContextualModel(near_excitation=one, far_excitation=none,
    ...                         near_inhibition=one, far_inhibition=none, alpha=0.0)
    >>> round(model.integrate(2 * one, times=[0.0, 20.0]).final.h2.item(), 4)
    1.0
    """

    near_excitation: Tensor
    far_excitation: Tensor
    near_inhibition: Tensor
    far_inhibition: Tensor
    eta: float = 1.0
    epsilon: float = 1.0
    tau: float = 1.0
    sigma: float = 1.0
    xi: float = 1.0
    alpha: float = 1.0
    mu: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        for name in ("near_excitation", "far_excitation", "near_inhibition", "far_inhibition"):
            _check_kernel(name, getattr(self, name), like=self.near_excitation)
        for name in ("eta", "epsilon", "tau", "sigma"):
            _check_positive(name, getattr(self, name))

    @property
    def channels(self) -> int:
        """K, the number of feature channels."""
        return len(self.near_excitation)

    @property
    def excitation(self) -> Tensor:
        """W^E, the sum of near and far excitation, (K, K, S, S)."""
        return _sum_centred(self.near_excitation, self.far_excitation)

    @property
    def inhibition(self) -> Tensor:
        """W^I, the sum of near and far inhibition, (K, K, S, S)."""
        return _sum_centred(self.near_inhibition, self.far_inhibition)

    @property
    def special_step(self) -> float:
        """The time step eta / epsilon^2, at which Euler's method turns Eq. 1 into Eq. 2."""
        if self.eta != self.tau or self.epsilon != self.sigma:
            raise ValueError(
                f"Eq. 2 needs eta={self.eta} equal to tau={self.tau} and epsilon={self.epsilon} "
                f"equal to sigma={self.sigma}; integrate and euler take any"
            )
        return self.eta / self.epsilon**2

    def velocity(self, x: Tensor, state: ContextualState) -> ContextualState:
        """Give dH1/dt and dH2/dt at a state: Eq. 1 with the decay moved to the right.

        Parameters
        ----------
        x, state
            Feedforward drive X, and where to take the derivatives.

        Returns
        -------
        ContextualState
            The two derivatives. They are zero at a fixed point, of this and of every form below.
        """
        h1, h2 = self._start(x, state)
        return ContextualState(
            (self._inhibited_drive(x, h1, h2) - self.epsilon**2 * h1) / self.eta,  # Eq. 1, line 1
            (self._excitation(h1) - self.sigma**2 * h2) / self.tau,  # Eq. 1, line 2
        )

    def integrate(
        self,
        x: Tensor,
        times: Sequence[float],
        state: ContextualState | None = None,
        *,
        rtol: float = 1e-8,
        atol: float = 1e-10,
    ) -> ContextualTrajectory:
        """Solve Eq. 1 in continuous time (adaptive Runge-Kutta 4(5), no gradient).

        Parameters
        ----------
        x, state
            Feedforward drive X, and the start: zeros when it is not given.
        times
            Increasing times to report; the first is the time of the start.
        rtol, atol
            Tolerances of the solver. The images of a batch share its step size.

        Returns
        -------
        ContextualTrajectory
            The state at each of `times`.
        """
        clock = np.asarray(times, dtype=np.float64)
        if clock.ndim != 1 or len(clock) < 2 or not (np.diff(clock) > 0).all():
            raise ValueError(f"times must be two or more increasing numbers, got {clock.tolist()}")
        start = torch.stack(self._start(x, state))  # (2, B, K, H, W)

        def flat_velocity(_: float, flat: np.ndarray) -> np.ndarray:
            h1, h2 = torch.from_numpy(flat).to(x).reshape(start.shape)
            return _flat(torch.stack(self.velocity(x, ContextualState(h1, h2))))

        with torch.no_grad():
            solution = solve_ivp(
                flat_velocity, clock[[0, -1]], _flat(start), t_eval=clock, rtol=rtol, atol=atol
            )
        if not solution.success:
            raise RuntimeError(
                f"the solver gave up before t={clock[-1]:g}: {solution.message} Activity runs away "
                f"where excitation outweighs decay and inhibition; lower gamma={self.gamma:g}"
            )
        h1, h2 = torch.from_numpy(solution.y.T.copy()).to(x).reshape(-1, *start.shape).unbind(1)
        return ContextualTrajectory(torch.from_numpy(clock), h1, h2)

    def euler(
        self, x: Tensor, step: float, steps: int, state: ContextualState | None = None
    ) -> ContextualTrajectory:
        """Integrate Eq. 1 by the supplement's form of Euler's method, with any time step.

        The supplement's indices make the method semi-implicit in one place. Explicit, from the
        state at t-1: both decay terms, the H1 of the shunting term, and C1[t] = W^I * H2[t-1].
        From the state just computed: C2[t] = W^E * H1[t]. The order of accuracy is one, as for the
        wholly explicit method, and the fixed points are those of Eq. 1 at any step.

        Parameters
        ----------
        x, state
            Feedforward drive X, and the start: zeros when it is not given.
        step, steps
            The time step h, and how many of them.

        Returns
        -------
        ContextualTrajectory
            The start and the state after each step.
        """
        _check_positive("step", step)
        decay1, decay2 = step * self.epsilon**2 / self.eta, step * self.sigma**2 / self.tau

        def advance(h1: Tensor, h2: Tensor) -> ContextualState:
            h1 = h1 - decay1 * h1 + step / self.eta * self._inhibited_drive(x, h1, h2)
            h2 = h2 - decay2 * h2 + step / self.tau * self._excitation(h1)
            return ContextualState(h1, h2)

        return _iterate(advance, self._start(x, state), steps, step)

    def discrete(
        self, x: Tensor, timesteps: int, state: ContextualState | None = None
    ) -> ContextualTrajectory:
        """Run the discrete-time network of Eq. 2, which is `euler` with `special_step`.

        .. code-block:: text

            H1[t] = epsilon^-2 [xi X - (alpha H1[t-1] + mu) C1[t]]_+      C1[t] = W^I * H2[t-1]
            H2[t] = epsilon^-2 [gamma C2[t]]_+                            C2[t] = W^E * H1[t]

        It shares the fixed points of Eq. 1 but not their stability: where inhibition is strong,
        Eq. 1 comes to rest and Eq. 2 jumps over the rest for ever.

        Parameters
        ----------
        x, state
            Feedforward drive X, and the start: zeros when it is not given.
        timesteps
            How many steps.

        Returns
        -------
        ContextualTrajectory
            The start and the state after each step.
        """

        def advance(h1: Tensor, h2: Tensor) -> ContextualState:
            h1 = self._inhibited_drive(x, h1, h2) / self.epsilon**2  # Eq. 2, line 1
            h2 = self._excitation(h1) / self.epsilon**2  # Eq. 2, line 2
            return ContextualState(h1, h2)

        return _iterate(advance, self._start(x, state), timesteps, self.special_step)

    def gated(
        self, x: Tensor, gates: MixingGates, timesteps: int, state: ContextualState | None = None
    ) -> ContextualTrajectory:
        """Run the simplest gated form, the last of the derivation (supplement).

        .. code-block:: text

            G1[t] = sigmoid(X + U1 * H2[t-1] + b1)
            G2[t] = sigmoid(X + U2 * H1[t] + b2)
            H1[t] = epsilon^-2 G1[t] [xi X - (alpha H1[t-1] + mu) C1[t]]_+ + (1 - G1[t]) H1[t-1]
            H2[t] = epsilon^-2 G2[t] [gamma C2[t]]_+ + (1 - G2[t]) H2[t-1]

        A gate is a time step that each unit computes for itself: a constant gate g is `euler` with
        the step g eta / epsilon^2, an open one is Eq. 2. The supplement prints the left side of
        the second line as G1 again; the fourth line shows that G2 is meant.

        Parameters
        ----------
        x, state
            Feedforward drive X, and the start: zeros when it is not given.
        gates
            The gates' kernels and biases.
        timesteps
            How many steps.

        Returns
        -------
        ContextualTrajectory
            The start and the state after each step. Its times count open gates.
        """
        if not isinstance(gates, MixingGates):
            raise TypeError(f"gates is {type(gates).__name__}; give MixingGates")
        _check_kernel("gates.u1", gates.u1, like=self.near_excitation)

        def advance(h1: Tensor, h2: Tensor) -> ContextualState:
            g1 = torch.sigmoid(x + _convolve(h2, gates.u1, gates.b1))  # (B, K, H, W)
            h1 = g1 * self._inhibited_drive(x, h1, h2) / self.epsilon**2 + (1 - g1) * h1
            g2 = torch.sigmoid(x + _convolve(h1, gates.u2, gates.b2))  # (B, K, H, W)
            h2 = g2 * self._excitation(h1) / self.epsilon**2 + (1 - g2) * h2
            return ContextualState(h1, h2)

        return _iterate(advance, self._start(x, state), timesteps, self.special_step)

    def _inhibited_drive(self, x: Tensor, h1: Tensor, h2: Tensor) -> Tensor:
        c1 = _convolve(h2, self.inhibition)  # (B, K, H, W)
        return torch.relu(self.xi * x - (self.alpha * h1 + self.mu) * c1)

    def _excitation(self, h1: Tensor) -> Tensor:
        c2 = _convolve(h1, self.excitation)  # (B, K, H, W)
        return torch.relu(self.gamma * c2)

    def _start(self, x: Tensor, state: ContextualState | None) -> ContextualState:
        kernel = self.near_excitation
        if x.ndim != 4 or x.shape[1] != self.channels or x.dtype != kernel.dtype:
            raise ValueError(
                f"x has shape {tuple(x.shape)} and {x.dtype}; the kernels need "
                f"(B, {self.channels}, H, W) and {kernel.dtype}"
            )
        if not x.isfinite().all():
            raise ValueError("x holds NaN or infinity; every drive must be finite")
        if state is None:
            return ContextualState(torch.zeros_like(x), torch.zeros_like(x))
        for name, value in zip(("h1", "h2"), state, strict=True):
            if value.shape != x.shape:
                raise ValueError(f"{name} is {tuple(value.shape)} but x is {tuple(x.shape)}")
        return state


def _iterate(
    advance: _Advance, state: ContextualState, steps: int, step: float
) -> ContextualTrajectory:
    if steps < 1:
        raise ValueError(f"the number of steps must be at least 1, got {steps}")
    states = [state]
    for _ in range(steps):
        states.append(advance(*states[-1]))
    h1, h2 = (torch.stack(part) for part in zip(*states, strict=True))  # (N, B, K, H, W)
    return ContextualTrajectory(step * torch.arange(steps + 1, dtype=torch.float64), h1, h2)


def _convolve(h: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.conv2d(h, kernel, bias, padding=kernel.shape[-1] // 2)


def _sum_centred(near: Tensor, far: Tensor) -> Tensor:
    size = max(near.shape[-1], far.shape[-1])
    near, far = (F.pad(kernel, [(size - kernel.shape[-1]) // 2] * 4) for kernel in (near, far))
    return near + far


def _flat(tensor: Tensor) -> np.ndarray:
    return tensor.double().cpu().numpy().ravel()


def _check_kernel(name: str, kernel: Tensor, like: Tensor) -> None:
    k, size, shape = len(like), kernel.shape[-1], tuple(kernel.shape)
    if shape != (k, k, size, size) or size % 2 == 0 or kernel.dtype != like.dtype:
        raise ValueError(
            f"{name} has shape {shape} and {kernel.dtype}; "
            f"it must be ({k}, {k}, S, S) with S odd, and {like.dtype}"
        )


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number, got {value}")
