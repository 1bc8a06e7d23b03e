"""An hGRU made ready for a GPU: its parameters as tables, its states, its equations as launches."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
import triton
from torch import Tensor

from hgru_vision.ops import dft
from hgru_vision.ops import hgru_kernels as pixel
from hgru_vision.ops.dispatch import MOST_CHANNELS
from hgru_vision.ops.mix_kernels import block, mix, pitch_of, precision, to_planes

__all__ = ["Layer", "Parameters", "State"]


class Parameters(NamedTuple):
    """The parameters of an hGRU, as `circuits.HGRU` holds them."""

    weight: Tensor  # (K, K, S, S)
    u1: Tensor  # (K, K, 1, 1)
    b1: Tensor  # (K,)
    u2: Tensor
    b2: Tensor
    alpha: Tensor  # (K, 1, 1)
    mu: Tensor
    kappa: Tensor
    beta: Tensor
    omega: Tensor
    eta: Tensor  # (T,)


class State(NamedTuple):
    """The drive, H2 or its gradient, one image a channel, as `hgru_kernels` stores them.

    `numbers` are float32, or uint16 (2^15 stands for 0) of which each pixel has an exponent in
    `exponents`, int8; those of float32 are not used. Both are None for an H2 of zeros.
    """

    numbers: Tensor | None  # (y, x, B, K)
    exponents: Tensor | None  # (y, x, B)


class Layer:
    """An hGRU made ready for images of one size: its tables, and its equations as launches."""

    def __init__(
        self, size: torch.Size, parameters: Parameters, storage: torch.dtype, device: torch.device
    ) -> None:
        self.batch, self.channels, height, width = size
        self.storage, self.device = storage, device
        self.kernel_size = parameters.weight.shape[-1]
        self.domain = dft.circle(height, width, self.kernel_size)
        self.pitch = pitch_of(self.channels)
        self.wide = block(self.channels, MOST_CHANNELS)
        self.rows = height * self.domain.stored_width * self.batch
        self.block_rows = 2048 // self.wide
        self.parts = triton.cdiv(self.rows, self.block_rows)
        self._tabulate(parameters)
        self._mixed = self.spectra(1)[0]
        self._half = dft.halfway(self.planes(), self.domain)

    @property
    def image(self) -> tuple[int, ...]:
        """What a kernel must know to find a pixel in images (B, H, W, K)."""
        domain = self.domain
        return self.batch, domain.stored_width, domain.height, domain.width, self.channels

    @property
    def size(self) -> tuple[int, ...]:
        """Shape of one image a channel, as it is stored."""
        return self.domain.height, self.domain.stored_width, self.batch, self.pitch

    def planes(self, count: int | None = None) -> Tensor:
        """Make room for one image a channel, or for `count` of them."""
        size = self.size if count is None else (count, *self.size)
        return torch.empty(size, dtype=self.storage, device=self.device)

    def finer(self) -> Tensor:
        """Make room for one image a channel of what is stored as `state_kernels` tells."""
        dtype = torch.uint16 if self.storage == torch.float16 else torch.float32
        return torch.empty(self.size, dtype=dtype, device=self.device)

    def state(self) -> State:
        """Make room for the drive or for H2."""
        exponents = torch.empty(self.size[:3], dtype=torch.int8, device=self.device)
        return State(self.finer(), exponents)

    def keep(self, image: Tensor) -> State:
        """Store images (B, K, H, W) as a state."""
        numbers, exponents = kept = self.state()
        assert numbers is not None
        to_planes(image, numbers, exponents=exponents)
        return kept

    def spectra(self, count: int) -> Tensor:
        """Make room for spectra."""
        size = (count, self.domain.rows, 2, self.domain.columns, self.batch, self.pitch)
        return torch.empty(size, dtype=self.storage, device=self.device)

    def convolve(self, image: Tensor, spectrum: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
        """Eqs. 4 and 7, or back through them; the spectrum of `image` stays in `spectrum`."""
        dft.analyse(image, self.domain, out=spectrum, half=self._half)
        # A result whose mean is 287 or more at 150 x 150 does not fit. Behind a tanh that is one.
        mixed = mix(spectrum, self.kernel, self._mixed, adjoint=adjoint, saturate=True)
        return dft.synthesise(mixed, self.domain, out=out, half=self._half)

    def gate(self, h2: State, out: Tensor) -> None:
        """Launch Eq. 3 and the product in Eq. 4."""
        pixel.gate[(self.parts,)](
            *h2, self.u1, self.constants, out, self.rows, **self.blocks(), PRECISION=self.exact
        )

    def inhibit(
        self, drive: State, c1: Tensor | None, h2: State, h1: Tensor, g2: Tensor | None = None
    ) -> None:
        """Launch Eq. 5; with `g2`, Eq. 6 as well. A C1 that is None stands for zeros."""
        pixel.inhibit[(self.parts,)](
            *drive, c1, *h2, self.u2, self.constants, h1, h1 if g2 is None else g2, self.rows,
            **self.blocks(), GATE=g2 is not None, PRECISION=self.exact,
        )  # fmt: skip

    def excite(
        self,
        c2: Tensor,
        h1: Tensor,
        h2: State,
        t: int,
        out: State | Tensor,
        gated: Tensor,
    ) -> None:
        """Launch Eqs. 6, 8 and 9, and Eq. 3 of the next step; or make the last H2, (B, H, W, K)."""
        last = isinstance(out, Tensor)
        new = State(out, out) if isinstance(out, Tensor) else out
        pixel.excite[(self.parts,)](
            c2, h1, *h2, self.u1, self.u2, self.constants, self.eta(t), *new, gated, self.rows,
            *self.image, **self.blocks(), LAST=last, PRECISION=self.exact,
        )  # fmt: skip

    def eta(self, t: int) -> Tensor:
        """Give the time-gain of a step, the first of what is returned."""
        return self._eta[min(t, len(self._eta) - 1) :]

    def blocks(self) -> dict[str, int]:
        """Give the sizes of what a program of a pixel kernel works on."""
        return {"PITCH": self.pitch, "ROWS": self.block_rows, "CHANNELS": self.wide}

    def _tabulate(self, parameters: Parameters) -> None:
        """Pad the parameters to the kernels' widths."""
        self.exact = precision(self.storage)
        beyond = self.wide - self.channels
        rows = [getattr(parameters, name).reshape(-1) for name in pixel.CONSTANTS]
        self.constants = F.pad(torch.stack(rows).float(), (0, beyond))
        self.u1, self.u2 = (
            F.pad(u[:, :, 0, 0].T, (0, beyond, 0, beyond)).to(self.storage).contiguous()
            for u in (parameters.u1, parameters.u2)
        )
        self._eta = parameters.eta
        # A convolution makes a gradient larger by no more than the sum of a kernel's sizes: on the
        # way back those over what comes out, which are others where W is not symmetric.
        gain = parameters.weight.detach().abs().sum((0, 2, 3)).max().float()
        self.room = (2**15 / gain).clamp(max=256).log2().floor().exp2()
        more = self.pitch - self.channels
        weight = F.pad(parameters.weight.float(), (0, 0, 0, 0, 0, 0, 0, more))
        self.kernel = dft.multiplier(weight, self.domain).to(self.storage).contiguous()
