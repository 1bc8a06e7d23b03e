"""The horizontal convolution for a GPU: the transforms of `dft.py` around a mix in Triton.

For any circuit or network, one convolution at a time; the hGRU has all its steps in one piece
(`ops/hgru.py`). Storage is float16, scaled by the largest number of each tensor so that nothing is
too large or too small for it, or float32; sums are float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgru_vision.ops import dft
from hgru_vision.ops.mix_kernels import (
    from_planes,
    mix,
    mix_gradient,
    pitch_of,
    to_planes,
    unit_of,
)

__all__ = ["GemmKernel"]


@dataclass(frozen=True, eq=False)
class GemmKernel:
    """A kernel prepared for the transforms by matrix products, differentiable once.

    Attributes
    ----------
    multiplier
        Real, (R, 2, C, K_in, pitch of K_out), float32: where the gradients of all uses meet.
    stored
        The same in the storage dtype.
    domain
        Of the transforms.
    channels
        K_out.
    """

    multiplier: Tensor
    stored: Tensor
    domain: dft.Circle
    channels: int

    @classmethod
    def prepare(cls, weight: Tensor, x: Tensor, storage: torch.dtype) -> GemmKernel:
        """Transform `weight` (K_out, K_in, S, S) for images like `x` (B, K_in, H, W)."""
        domain = dft.circle(x.shape[2], x.shape[3], weight.shape[-1])
        channels = len(weight)
        padded = F.pad(weight.float(), (0, 0, 0, 0, 0, 0, 0, pitch_of(channels) - channels))
        multiplier = dft.Multiplier.apply(padded, domain)
        return cls(multiplier, multiplier.detach().to(storage), domain, channels)

    def __call__(self, x: Tensor) -> Tensor:
        """Cross-correlate `x` (B, K_in, H, W) with the kernel: (B, K_out, H, W)."""
        return _Convolve.apply(x, self.multiplier, self.stored, self.domain, self.channels)


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, multiplier: Tensor, stored: Tensor, domain: dft.Circle, channels: int
    ) -> Tensor:
        spectrum, unit = _analyse(x, stored.dtype, domain)
        ctx.save_for_backward(spectrum, unit, stored)
        ctx.domain, ctx.size = domain, x.shape
        return _convolve(spectrum, unit, stored, domain, (len(x), channels, *x.shape[2:]), x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        spectrum, unit, stored = ctx.saved_tensors
        spectral, g_unit = _analyse(gradient, stored.dtype, ctx.domain)
        to_x = to_multiplier = None
        if ctx.needs_input_grad[0]:
            to_x = _convolve(
                spectral, g_unit, stored, ctx.domain, ctx.size, gradient.dtype, adjoint=True
            )
        if ctx.needs_input_grad[1]:
            to_multiplier = mix_gradient(
                spectrum.unsqueeze(0),
                spectral.unsqueeze(0),
                unit * g_unit,
                torch.empty(stored.shape, dtype=torch.float32, device=stored.device),
                add=False,
            )
        return to_x, to_multiplier, None, None, None


def _analyse(image: Tensor, storage: torch.dtype, domain: dft.Circle) -> tuple[Tensor, Tensor]:
    """Scale to a largest number of 1 and transform; the spectrum, and what its 1 is worth, (1,)."""
    batch, channels, height, _ = image.shape
    unit = unit_of(image)
    size = height, domain.stored_width, batch, pitch_of(channels)
    planes = torch.empty(size, dtype=storage, device=image.device)
    return dft.analyse(to_planes(image, planes, 1 / unit), domain), unit.reshape(1)


def _convolve(
    spectrum: Tensor,
    unit: Tensor,
    stored: Tensor,
    domain: dft.Circle,
    size: tuple[int, ...],
    dtype: torch.dtype,
    *,
    adjoint: bool = False,
) -> Tensor:
    """Mix, transform back and undo the scale: images of `size`."""
    mixed = spectrum.new_empty(*spectrum.shape[:4], pitch_of(size[1]))
    planes = dft.synthesise(mix(spectrum, stored, mixed, adjoint=adjoint), domain)
    out = torch.empty(size, dtype=dtype, device=spectrum.device)
    return from_planes(planes.unsqueeze(0), unit, out)
