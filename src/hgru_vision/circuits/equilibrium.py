"""Training at a fixed point, in memory that does not grow with the number of steps (C-RBP).

Contractor recurrent back-propagation: Linsley, Ashok, Govindarajan, Liu & Serre (NeurIPS 2020),
"Stable and expressive recurrent vision models", arXiv 2005.11362. Let F be one step of a recurrent
network with parameters w and h = F(h, w) its fixed point. By the implicit function theorem the
gradient of a loss L(h) is

.. code-block:: text

    dL/dw = v dF/dw,    v = dL/dh (1 - J)^-1 = dL/dh (1 + J + J^2 + ...),    J = dF/dh

which needs the last step alone. It holds only if the network does come to rest, so a penalty keeps
J a contraction while the network learns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hgru_vision.circuits.base import Horizontal, Start, Trajectory
from hgru_vision.circuits.hgru import HGRU
from hgru_vision.ops import Backend, in_order
from hgru_vision.papers.linsley2018 import CHANNELS, KERNEL_SIZE, TIMESTEPS

__all__ = [
    "Equilibrium",
    "EquilibriumHGRU",
    "EquilibriumWarning",
    "Recurrence",
    "contractor_penalty",
    "equilibrium",
]

Recurrence = Callable[[Tensor], Tensor]
"""One step of a network over a constant input: the state to the next state."""


class NotFiniteError(RuntimeError, FloatingPointError):
    """A state or a gradient is no finite number."""


class EquilibriumWarning(UserWarning):
    """A state or a gradient had not converged."""


class Equilibrium(NamedTuple):
    """A state (B, ...), and its relative change in the last step, of the image worst in this."""

    state: Tensor
    residual: float


def equilibrium(
    step: Recurrence, state: Tensor, steps: int, *, tolerance: float = 1e-3
) -> Equilibrium:
    """Run a recurrence towards its fixed point and make that differentiable.

    All steps but the last are run without a graph. The backward pass sums as many terms of the
    series above as there were steps: at the fixed point this is back-propagation through that many
    steps. State and series converge at the same rate, that of the powers of J, so one number of
    steps serves both. The start has no gradient: a fixed point does not depend on it.

    A recurrence that does not settle still gives its last state. When the last step changed it by
    more than `tolerance`, or the last term of the series is more than that share of the sum, an
    `EquilibriumWarning` says so, since the gradient is then not that of the state. A state or a
    gradient that is not finite is an error.

    Parameters
    ----------
    step
        The recurrence F, with whatever it depends on (input, parameters) in its graph.
    state
        Where to start.
    steps
        How many steps to run, the same for all images of a batch.
    tolerance
        Largest relative change that passes without a warning.

    Returns
    -------
    Equilibrium
        The last state and the residual, ||h[t] - h[t-1]|| / ||h[t]||, or 1 if that is more.

    Examples
    --------
    The fixed point of h = a h + 1 is 1 / (1 - a), its derivative 1 / (1 - a)^2.

    >>> a = torch.tensor(0.5, requires_grad=True)
    >>> state, residual = equilibrium(lambda h: a * h + 1, torch.zeros(1), steps=30)
    >>> state.sum().backward()
    >>> round(state.item(), 4), round(a.grad.item(), 4)
    (2.0, 4.0)
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}; it must be 1 or more")
    with torch.no_grad():
        for _ in range(steps - 1):
            state = step(state)
    previous = state.detach().requires_grad_(torch.is_grad_enabled())
    last = step(previous)
    with torch.no_grad():
        residual = float(_relative(last - previous, last).max())
    _judge("state", residual, steps, tolerance)
    if last.requires_grad:
        last = _ImplicitGradient.apply(last, previous, steps, tolerance)
    return Equilibrium(last, residual)


def contractor_penalty(step: Recurrence, state: Tensor, *, bound: float = 0.9) -> Tensor:
    """Penalise a step that is no contraction around a state, so that the network learns to settle.

    The mean of the squares of (1^T J - bound)_+: the sums of the columns of the Jacobian J of the
    step, as far as they exceed the bound. One vector-Jacobian product gives all of them. The
    authors' code (github.com/c-rbp/pathfinder_experiments) adds ten times this, with a bound of
    0.9, to the loss. Signed sums are a proxy: columns whose weights cancel pass unseen.

    Parameters
    ----------
    step
        The recurrence; it must be twice differentiable.
    state
        Where to take the Jacobian, the fixed point as a rule. Its own graph is left out.
    bound
        Lambda of the paper, at least 0 and less than 1.

    Returns
    -------
    Tensor
        The penalty, a scalar with a graph.

    Examples
    --------
    >>> a = torch.tensor(1.5, requires_grad=True)
    >>> penalty = contractor_penalty(lambda h: a * h, torch.ones(1, 4), bound=0.5)
    >>> penalty.item()
    1.0
    """
    if not 0 <= bound < 1:
        raise ValueError(f"bound is {bound}; a contraction needs 0 <= bound < 1")
    state = state.detach().requires_grad_()
    (column_sums,) = torch.autograd.grad(step(state).sum(), state, create_graph=True)
    return (column_sums - bound).clamp(min=0).square().mean()


class EquilibriumHGRU(HGRU):
    """The hGRU run to its fixed point and trained there, by C-RBP.

    The layer is the `HGRU` but for two things: all steps have the last time-gain, since a fixed
    point needs a step that stays the same; and the gradient is that of the fixed point. The
    parameters are those of `HGRU`, so weights go from one to the other. What happens when the
    state does not settle is told under `equilibrium`.

    Parameters
    ----------
    channels, kernel_size, timesteps, backend, generator
        As in `HGRU`; `timesteps` sets the number of time-gains and the start of the biases only.
    steps
        How many steps to run. More cost time and no memory. Untrained layers of the default size
        changed by 1e-5 to 6e-4, depending on the drive, in the last of 64 steps, and by 4e-2 to
        6e-2 in the last of 8.
    start
        "zero" or "random"; a learned start has no gradient here.
    tolerance
        Largest relative change of the state in the last step that passes without a warning.

    Attributes
    ----------
    residual
        That change in the latest call; NaN before the first.

    Notes
    -----
    `contractor_penalty` needs second derivatives, which the GPU forms of the convolution do not
    have: with it, on a GPU, give ``backend="fft"``.

    Where the time-gain is 1, as at the start, the fixed point of Eq. 9 is the candidate of Eq. 8,
    whatever the mix: U2 and b2 have no gradient until the time-gain has moved.

    Shape
    -----
    x, state, output : (B, K, H, W)

    Examples
    --------
    >>> layer = EquilibriumHGRU(channels=8, kernel_size=5, steps=64)
    >>> x = torch.ones(1, 8, 12, 12)
    >>> h2 = layer(x)
    >>> penalty = contractor_penalty(layer.recurrence(x), h2)
    >>> (h2.mean() + 10 * penalty).backward()
    """

    def __init__(
        self,
        channels: int = CHANNELS,
        kernel_size: int = KERNEL_SIZE,
        timesteps: int = TIMESTEPS,
        *,
        steps: int = 64,
        start: Start = "zero",
        backend: Backend = "auto",
        tolerance: float = 1e-3,
        generator: torch.Generator | None = None,
    ) -> None:
        if start == "learned":
            raise ValueError(
                "start is 'learned'; a fixed point gives it no gradient, so choose zero or random"
            )
        if steps < 1:
            raise ValueError(f"steps is {steps}; it must be 1 or more")
        if not tolerance > 0:
            raise ValueError(f"tolerance is {tolerance}; it must be greater than 0")
        super().__init__(
            channels, kernel_size, timesteps, start=start, backend=backend, generator=generator
        )
        self.steps = steps
        self.tolerance = tolerance
        self.residual = float("nan")

    def extra_repr(self) -> str:
        """Show what the layer was made with."""
        return f"{super().extra_repr()}, steps={self.steps}, tolerance={self.tolerance}"

    def step(
        self, x: Tensor, h2: Tensor, t: int, horizontal: Horizontal | None = None
    ) -> Trajectory:
        """Go one step with the last time-gain, whatever `t` is."""
        return super().step(x, h2, self.timesteps - 1, horizontal)

    def recurrence(self, x: Tensor) -> Recurrence:
        """Give the map from H2 to the next H2 for a drive, for `contractor_penalty`."""
        horizontal = self.prepare(x)
        return lambda h2: self.step(x, h2, 0, horizontal).h2

    def forward(
        self,
        x: Tensor,
        state: Tensor | None = None,
        timesteps: int | None = None,
        return_trajectory: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor | Trajectory:
        """Run to the fixed point; see `Circuit.forward` for the parameters.

        `timesteps` are the steps to run, `steps` if not given. A trajectory holds all of them in
        memory, so its gradient is that of plain back-propagation through time.
        """
        steps = self.steps if timesteps is None else timesteps
        if return_trajectory:
            return super().forward(x, state, steps, True, generator)
        self._check_drive(x)
        first = self._first_state(x, state, generator)
        x = in_order(x, self.channels, self.kernel_size, self.backend)
        h2 = torch.zeros_like(x) if first is None else first
        # The last step is differentiated by its state in any case: a frozen layer wants none of it.
        trained = x.requires_grad or any(each.requires_grad for each in self.parameters())
        with torch.set_grad_enabled(torch.is_grad_enabled() and trained):
            h2, self.residual = equilibrium(self.recurrence(x), h2, steps, tolerance=self.tolerance)
        return h2


class _ImplicitGradient(torch.autograd.Function):
    """The identity on the last state, whose gradient is that of the fixed point."""

    @staticmethod
    def forward(ctx: Any, last: Tensor, previous: Tensor, steps: int, tolerance: float) -> Tensor:
        ctx.save_for_backward(last, previous)  # with their graph, that of one step
        ctx.steps, ctx.tolerance = steps, tolerance
        return last.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        if torch.is_grad_enabled():  # create_graph=True: the series below would be a constant in it
            raise RuntimeError(
                "the gradient of a fixed point cannot be differentiated again (create_graph=True); "
                "use back-propagation through time, by return_trajectory=True"
            )
        last, previous = ctx.saved_tensors
        term, total = grad, grad
        for _ in range(ctx.steps - 1):
            (term,) = torch.autograd.grad(last, previous, term, retain_graph=True)
            total = total + term
        _judge("gradient", float(_relative(term, total).max()), ctx.steps, ctx.tolerance)
        return total, None, None, None


def _relative(change: Tensor, whole: Tensor) -> Tensor:
    """Give the norm of a change relative to that of the whole, (B,), at most 1."""
    change, whole = (
        torch.linalg.vector_norm(part.reshape(len(part), -1), dim=1) for part in (change, whole)
    )
    return torch.where(change == 0, 0.0, change / torch.maximum(change, whole))


def _judge(what: str, residual: float, steps: int, tolerance: float) -> None:
    if not math.isfinite(residual):
        raise NotFiniteError(
            f"the {what} is not finite after {steps} steps: the recurrence diverges. Add "
            "contractor_penalty to the loss, lower the time-gain, or start from smaller weights"
        )
    if residual > tolerance:
        # One digit, so that Python's filter, which shows a text once, is of use in training.
        warnings.warn(
            f"the {what} has not converged: its relative change in the last of {steps} steps is "
            f"{residual:.0e}, above the tolerance {tolerance:g}. Take more steps, or add "
            "contractor_penalty to the loss",
            EquilibriumWarning,
            stacklevel=3,
        )
