"""The horizontal gated recurrent unit: Linsley et al. (2018), section 2."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.circuits.base import Circuit, Horizontal, Trajectory
from hgru_vision.circuits.start import chronos, xavier_kernel, xavier_vector
from hgru_vision.circuits.symmetric import SymmetricKernel
from hgru_vision.ops import prepare, storage_at_once

__all__ = ["HGRU", "run_by_kernels"]


class HGRU(Circuit):
    """The horizontal gated recurrent unit (hGRU), Eqs. 3 to 9.

    Parameters
    ----------
    channels, kernel_size, timesteps
        K, S (odd) and T of the paper.
    start
        Where H2[0] starts when `forward` is given no state: "zero", "random" (the paper's; see
        `Circuit` for the draw) or "learned" (K more parameters). The default is "zero", which makes
        an output a function of the input alone.
    backend
        How the horizontal convolution is computed: "auto", "reference", "fft", "matmul", or, on a
        GPU, "gemm" and "gemm32"; see `hgru_vision.ops`.
    checkpoint
        Keep one state a step for the backward pass and compute the rest again.
    generator
        For the starting values of the parameters; a new one of seed 0 if not given.

    Attributes
    ----------
    w
        The horizontal kernel W, symmetric between channels; `layer.w()` is (K, K, S, S).
    u1, b1, u2, b2
        1x1 kernels and biases of the gain G1 and the mix G2.
    alpha, mu, kappa, beta, omega
        One value a channel: quadratic and linear inhibition; peephole, linear and quadratic
        excitation.
    eta
        Time-gain, one value a step.

    Notes
    -----
    Starting values: Xavier-uniform for W (fans of the whole K x K x S x S kernel), for U1 and U2,
    and for alpha, mu, kappa, beta and omega as maps from 1 to K channels. The mix of Eq. 9
    multiplies the *new* state, so the chronos biases are -log U(1, T - 1) for both gates. eta
    starts at 1, which leaves the state as it is; the paper gives no start, and values near 1 were
    seen to take off sooner than U(0, 1).

    Shape
    -----
    x, state, output : (B, K, H, W)
    trajectory : h1, h2, g1, g2 of (T, B, K, H, W)

    Examples
    --------
    >>> layer = HGRU(channels=4, kernel_size=5, timesteps=3)
    >>> layer(torch.ones(1, 4, 20, 20)).shape
    torch.Size([1, 4, 20, 20])
    >>> layer(torch.ones(1, 4, 20, 20), timesteps=6, return_trajectory=True).h1.shape
    torch.Size([6, 1, 4, 20, 20])
    >>> sum(p.numel() for p in HGRU().parameters())
    74558
    """

    def build(self, generator: torch.Generator) -> None:
        """Make the parameters; see Notes for their start."""
        channels, timesteps = self.channels, self.timesteps
        gate = channels, channels, 1, 1
        self.w = SymmetricKernel(channels, self.kernel_size, generator=generator)
        self.u1 = nn.Parameter(xavier_kernel(*gate, fan=channels, generator=generator))
        self.b1 = nn.Parameter(chronos(channels, timesteps, generator))
        self.u2 = nn.Parameter(xavier_kernel(*gate, fan=channels, generator=generator))
        self.b2 = nn.Parameter(chronos(channels, timesteps, generator))
        self.alpha = nn.Parameter(xavier_vector(channels, generator))
        self.mu = nn.Parameter(xavier_vector(channels, generator))
        self.kappa = nn.Parameter(xavier_vector(channels, generator))
        self.beta = nn.Parameter(xavier_vector(channels, generator))
        self.omega = nn.Parameter(xavier_vector(channels, generator))
        self.eta = nn.Parameter(torch.ones(timesteps))

    @staticmethod
    def zeta(activity: Tensor) -> Tensor:
        """Squash to [-1, 1]."""
        return torch.tanh(activity)

    def prepare(self, x: Tensor) -> Horizontal:
        """Make W ready: one kernel for both stages."""
        w = prepare(self.w(), x, self.backend)
        return Horizontal(inhibition=w, excitation=w)

    def step(
        self, x: Tensor, h2: Tensor, t: int, horizontal: Horizontal | None = None
    ) -> Trajectory:
        """Go from H2[t-1] to H1[t], H2[t], G1[t] and G2[t]; see `Circuit.step`."""
        w = horizontal or self.prepare(x)
        alpha, mu = self.alpha, self.mu  # (K, 1, 1)
        kappa, beta, omega = self.kappa, self.beta, self.omega  # (K, 1, 1)
        eta = self.eta[min(t, self.timesteps - 1)]

        # Inhibition; every line (B, K, H, W)
        g1 = torch.sigmoid(F.conv2d(h2, self.u1, self.b1))  # Eq. 3
        c1 = w.inhibition(g1 * h2)  # Eq. 4
        h1 = self.zeta(x - c1 * (alpha * h2 + mu))  # Eq. 5

        # Excitation; every line (B, K, H, W)
        g2 = torch.sigmoid(F.conv2d(h1, self.u2, self.b2))  # Eq. 6
        c2 = w.excitation(h1)  # Eq. 7
        candidate = self.zeta(kappa * h1 + beta * c2 + omega * h1 * c2)  # Eq. 8
        h2 = eta * (h2 * (1 - g2) + candidate * g2)  # Eq. 9
        return Trajectory(h1, h2, g1, g2)

    def run_at_once(self, x: Tensor, state: Tensor | None, steps: int) -> Tensor | None:
        """Run all steps by the kernels of `ops/hgru.py`, which know the equations above alone."""
        return run_by_kernels(
            self, HGRU, x, state, steps,
            lambda: (
                self.w(), self.u1, self.b1, self.u2, self.b2,
                self.alpha, self.mu, self.kappa, self.beta, self.omega, self.eta,
            ),
        )  # fmt: skip


def run_by_kernels(
    circuit: Circuit,
    kind: type[Circuit],
    x: Tensor,
    state: Tensor | None,
    steps: int,
    parameters: Callable[[], tuple[Tensor, ...]],
) -> Tensor | None:
    """Run Eqs. 3 to 9 by the kernels of `ops/hgru.py`.

    None where these do not take the drive, or where the circuit has other equations than `kind`,
    of which it is. `parameters` gives W, U1, b1, U2, b2, alpha, mu, kappa, beta, omega and eta.
    """
    for name in ("prepare", "step", "zeta"):
        if getattr(type(circuit), name, None) is not getattr(kind, name, None):
            return None
    storage = storage_at_once(x, circuit.channels, circuit.kernel_size, circuit.backend)
    if storage is None:
        return None
    from hgru_vision.ops.hgru import Parameters, run  # needs Triton

    return run(x, state, Parameters(*parameters()), steps, storage)
