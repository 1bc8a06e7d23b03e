"""Convolutional GRUs, the paper's recurrent controls (Main, "Recurrent models"; Supp.)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.circuits.base import Circuit, Horizontal, Trajectory
from hgru_vision.circuits.start import chronos, xavier_kernel
from hgru_vision.ops import prepare

__all__ = ["ConvGRU", "ConvGRU2L"]


class ConvGRU(Circuit):
    """A GRU with the horizontal kernel of the hGRU and a single stage (Supp., circuit diagrams).

    Gain and mix are 1x1 functions of H[t-1]; the candidate is tanh(X + W * (G1 H[t-1]) + b). W is
    free, not symmetric between channels. The mix multiplies the new state, so both gates have the
    chronos biases of `HGRU`.

    Parameters
    ----------
    channels, kernel_size, timesteps, start, backend, checkpoint, generator
        As in `HGRU`.

    Shape
    -----
    x, state, output : (B, K, H, W)
    trajectory : h1 (the candidate), h2 (the state), g1, g2 of (T, B, K, H, W)

    Examples
    --------
    >>> layer = ConvGRU(channels=4, kernel_size=5, timesteps=3)
    >>> layer(torch.ones(1, 4, 20, 20)).shape
    torch.Size([1, 4, 20, 20])
    """

    def build(self, generator: torch.Generator) -> None:
        """Make the parameters: Xavier kernels, chronos gate biases, b at zero."""
        channels, timesteps = self.channels, self.timesteps
        gate = channels, channels, 1, 1
        self.w = self._kernel(generator)
        self.b = nn.Parameter(torch.zeros(channels, 1, 1))
        self.u1 = nn.Parameter(xavier_kernel(*gate, fan=channels, generator=generator))
        self.b1 = nn.Parameter(chronos(channels, timesteps, generator))
        self.u2 = nn.Parameter(xavier_kernel(*gate, fan=channels, generator=generator))
        self.b2 = nn.Parameter(chronos(channels, timesteps, generator))

    def prepare(self, x: Tensor) -> Horizontal:
        """Make W ready."""
        w = prepare(self.w, x, self.backend)
        return Horizontal(inhibition=w, excitation=w)

    def step(
        self, x: Tensor, h2: Tensor, t: int, horizontal: Horizontal | None = None
    ) -> Trajectory:
        """Go from H[t-1] to H[t]; see `Circuit.step`."""
        w = horizontal or self.prepare(x)
        g1 = torch.sigmoid(F.conv2d(h2, self.u1, self.b1))  # (B, K, H, W), as are all
        g2 = torch.sigmoid(F.conv2d(h2, self.u2, self.b2))
        candidate = self.candidate(x, g1 * h2, w)
        h2 = h2 * (1 - g2) + candidate * g2
        return Trajectory(candidate, h2, g1, g2)

    def candidate(self, x: Tensor, h: Tensor, w: Horizontal) -> Tensor:
        """Compute the new state from the drive and the gated old state."""
        return torch.tanh(x + w.excitation(h) + self.b)

    def _kernel(self, generator: torch.Generator) -> nn.Parameter:
        k, s = self.channels, self.kernel_size
        return nn.Parameter(xavier_kernel(k, k, s, s, fan=k * s * s, generator=generator))


class ConvGRU2L(ConvGRU):
    """The "GRU (2L)" of the supplement: two layers of convolution in the candidate.

    The supplement says no more than "two layers of convolution (with separate kernels)"; here the
    candidate is tanh(W2 * tanh(X + W * (G1 H[t-1]) + b) + b_2l). Takes the arguments of `ConvGRU`.

    Examples
    --------
    >>> layer = ConvGRU2L(channels=4, kernel_size=5, timesteps=3)
    >>> layer(torch.ones(1, 4, 20, 20)).shape
    torch.Size([1, 4, 20, 20])
    """

    def build(self, generator: torch.Generator) -> None:
        """Make the parameters of the GRU, and those of the second layer."""
        super().build(generator)
        self.w_2l = self._kernel(generator)
        self.b_2l = nn.Parameter(torch.zeros(self.channels, 1, 1))

    def prepare(self, x: Tensor) -> Horizontal:
        """Make the kernels of the first and the second layer ready."""
        return Horizontal(
            inhibition=prepare(self.w, x, self.backend),
            excitation=prepare(self.w_2l, x, self.backend),
        )

    def candidate(self, x: Tensor, h: Tensor, w: Horizontal) -> Tensor:
        """Compute the new state in two layers."""
        first = torch.tanh(x + w.inhibition(h) + self.b)
        return torch.tanh(w.excitation(first) + self.b_2l)
