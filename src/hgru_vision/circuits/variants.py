"""Other hGRUs of the paper: separate kernels, gates with the drive, batch norm, nonnegative."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor

from hgru_vision.circuits.base import Horizontal, Trajectory
from hgru_vision.circuits.hgru import HGRU
from hgru_vision.circuits.normalization import NotTracking, StepBatchNorm
from hgru_vision.circuits.symmetric import SymmetricKernel
from hgru_vision.ops import prepare

__all__ = [
    "HGRUBatchNorm",
    "HGRUGatesWithDrive",
    "HGRUNonnegative",
    "HGRUSeparateKernels",
    "HGRUSharedBatchNorm",
]


class HGRUSeparateKernels(HGRU):
    """An hGRU with one kernel for inhibition and one for excitation, W_I and W_E as in Eq. 2.

    Takes the arguments of `HGRU`. `w` is W_I and `w_e` is W_E, both symmetric between channels.

    Examples
    --------
    >>> layer = HGRUSeparateKernels(channels=2, kernel_size=3)
    >>> layer(torch.ones(1, 2, 5, 5)).shape
    torch.Size([1, 2, 5, 5])
    """

    def build(self, generator: torch.Generator) -> None:
        """Make the parameters of the hGRU, and W_E."""
        super().build(generator)
        self.w_e = SymmetricKernel(self.channels, self.kernel_size, generator=generator)

    def prepare(self, x: Tensor) -> Horizontal:
        """Make W_I and W_E ready."""
        return Horizontal(
            inhibition=prepare(self.w(), x, self.backend),
            excitation=prepare(self.w_e(), x, self.backend),
        )


class HGRUGatesWithDrive(HGRU):
    """An hGRU whose gates see the drive too: the footnote to Eq. 5, in the form of the supplement.

    The supplement's gates ("Deriving the hGRU") add X itself, without weights. Takes the arguments
    of `HGRU`.

    Examples
    --------
    >>> layer = HGRUGatesWithDrive(channels=2, kernel_size=3)
    >>> layer(torch.ones(1, 2, 5, 5)).shape
    torch.Size([1, 2, 5, 5])
    """

    def step(
        self, x: Tensor, h2: Tensor, t: int, horizontal: Horizontal | None = None
    ) -> Trajectory:
        """Go from H2[t-1] to step t; see `Circuit.step`."""
        w = horizontal or self.prepare(x)
        alpha, mu = self.alpha, self.mu  # (K, 1, 1)
        kappa, beta, omega = self.kappa, self.beta, self.omega  # (K, 1, 1)
        eta = self.eta[min(t, self.timesteps - 1)]

        g1 = torch.sigmoid(x + F.conv2d(h2, self.u1, self.b1))  # Eq. 3 with X
        c1 = w.inhibition(g1 * h2)  # Eq. 4
        h1 = self.zeta(x - c1 * (alpha * h2 + mu))  # Eq. 5

        g2 = torch.sigmoid(x + F.conv2d(h1, self.u2, self.b2))  # Eq. 6 with X
        c2 = w.excitation(h1)  # Eq. 7
        candidate = self.zeta(kappa * h1 + beta * c2 + omega * h1 * c2)  # Eq. 8
        h2 = eta * (h2 * (1 - g2) + candidate * g2)  # Eq. 9
        return Trajectory(h1, h2, g1, g2)


class HGRUBatchNorm(HGRU):
    """The hGRU-BN of the supplement: batch norm of gates and convolutions, a set for each step.

    Takes the arguments of `HGRU`. The supplement's equations have neither gate biases, whose part
    the shifts nu play (with the same chronos start), nor a time-gain.

    Attributes
    ----------
    norm_g1, norm_c1, norm_g2, norm_c2
        `StepBatchNorm` of the four convolutions.

    Examples
    --------
    >>> layer = HGRUBatchNorm(channels=2, kernel_size=3, timesteps=4)
    >>> layer.norm_g1.delta.shape
    torch.Size([4, 2])
    >>> layer(torch.ones(1, 2, 5, 5)).shape
    torch.Size([1, 2, 5, 5])
    """

    def build(self, generator: torch.Generator) -> None:
        """Make the parameters of the hGRU, with shifts in the place of biases and time-gain."""
        super().build(generator)
        steps = self.statistics(self.timesteps)
        self.norm_g1 = StepBatchNorm(self.b1, steps)
        self.norm_c1 = StepBatchNorm(torch.zeros(self.channels), steps)
        self.norm_g2 = StepBatchNorm(self.b2, steps)
        self.norm_c2 = StepBatchNorm(torch.zeros(self.channels), steps)
        del self.b1, self.b2, self.eta

    @staticmethod
    def statistics(timesteps: int) -> int:
        """How many sets of parameters and statistics there are: one a step."""
        return timesteps

    def step(
        self, x: Tensor, h2: Tensor, t: int, horizontal: Horizontal | None = None
    ) -> Trajectory:
        """Go from H2[t-1] to step t by the equations of the supplement; see `Circuit.step`."""
        w = horizontal or self.prepare(x)
        alpha, mu = self.alpha, self.mu  # (K, 1, 1)
        kappa, beta, omega = self.kappa, self.beta, self.omega  # (K, 1, 1)

        g1 = torch.sigmoid(self.norm_g1(F.conv2d(h2, self.u1), t))  # Eq. 3 with BN
        c1 = self.norm_c1(w.inhibition(g1 * h2), t)  # Eq. 4 with BN
        h1 = self.zeta(x - c1 * (alpha * h2 + mu))  # Eq. 5

        g2 = torch.sigmoid(self.norm_g2(F.conv2d(h1, self.u2), t))  # Eq. 6 with BN
        c2 = self.norm_c2(w.excitation(h1), t)  # Eq. 7 with BN
        candidate = self.zeta(kappa * h1 + beta * c2 + omega * h1 * c2)  # Eq. 8
        h2 = h2 * (1 - g2) + candidate * g2  # Eq. 9 without eta
        return Trajectory(h1, h2, g1, g2)

    def _images_interact(self) -> bool:
        return self.training

    def _contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        norms = self.norm_g1, self.norm_c1, self.norm_g2, self.norm_c2
        return nullcontext(), NotTracking(norms)


class HGRUSharedBatchNorm(HGRUBatchNorm):
    """`HGRUBatchNorm` with one set of parameters and statistics for all steps.

    The supplement found it worse than a set for each step. Takes the arguments of `HGRU`.

    Examples
    --------
    >>> HGRUSharedBatchNorm(channels=2, kernel_size=3).norm_g1.delta.shape
    torch.Size([1, 2])
    """

    @staticmethod
    def statistics(timesteps: int) -> int:
        """How many sets of parameters and statistics there are: one."""
        return 1


class HGRUNonnegative(HGRUBatchNorm, HGRUSeparateKernels):
    """The "nonnegative" hGRU of the supplement: batch norm, ReLU for zeta, and W_I beside W_E.

    H1 can then only inhibit and H2 only excite, as in the neural model of Eq. 1 (but for the first
    state, where `start` or the caller makes it negative). Takes the arguments of `HGRU`.

    Examples
    --------
    >>> layer = HGRUNonnegative(channels=2, kernel_size=3)
    >>> bool((layer(torch.rand(1, 2, 5, 5)) >= 0).all())
    True
    """

    @staticmethod
    def zeta(activity: Tensor) -> Tensor:
        """Rectify."""
        return torch.relu(activity)
