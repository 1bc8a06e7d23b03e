"""The horizontal convolution in the frequency domain, in two forms.

Both cut the image into tiles, transform them, multiply every frequency by a K_in x K_out matrix
(the kernel's spectrum, computed once when the kernel is prepared), and transform back:

- `FourierKernel`: the fast Fourier transform of the library; the fastest on a CPU.
- `MatrixKernel`: the discrete Fourier transform as matrix products, in real numbers throughout.
  Compilers and exporters that know no complex numbers (Inductor, ONNX) take it.

README.md in this folder derives them. Half-precision input is computed in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hgru_vision.ops.tiling import Tiling, plan

__all__ = ["FourierKernel", "MatrixKernel"]

# Spectra of this many numbers at a time: the working set then stays in the cache.
_CPU_CHUNK = 1 << 21


@dataclass(frozen=True, eq=False)
class FourierKernel:
    """A kernel prepared for `torch.fft`.

    Attributes
    ----------
    spectrum
        Complex, (frequencies, K_in, K_out).
    tiling
        How the images are cut.
    """

    spectrum: Tensor
    tiling: Tiling

    @classmethod
    def prepare(cls, weight: Tensor, x: Tensor) -> FourierKernel:
        """Transform `weight` (K_out, K_in, S, S) for images like `x` (B, K_in, H, W)."""
        tiling = plan(x.shape[2], x.shape[3], weight.shape[-1], x.device.type)
        spectrum = torch.fft.rfft2(_at_least_float32(weight), s=(tiling.y.size, tiling.x.size))
        # The conjugate makes it a cross-correlation, like conv2d. It is made here, not in each bmm.
        spectrum = spectrum.conj().resolve_conj().permute(2, 3, 1, 0).flatten(0, 1).contiguous()
        return cls(spectrum, tiling)

    def __call__(self, x: Tensor) -> Tensor:
        """Cross-correlate `x` (B, K_in, H, W) with the kernel: (B, K_out, H, W)."""
        images = len(x)
        if x.device.type == "cpu":
            images = max(1, _CPU_CHUNK // (self.tiling.points * x.shape[1]))
        parts = [self._convolve(part) for part in _at_least_float32(x).split(images)]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(x.dtype)

    def _convolve(self, x: Tensor) -> Tensor:
        y_size, x_size = self.tiling.y.size, self.tiling.x.size
        tiles = torch.fft.rfft2(self.tiling.cut(x))  # (B, K_in, ty, tx, fy, fx)
        batch, _, *counts, fy, fx = tiles.shape
        # bmm is many times slower on strided views than on copies, in both directions.
        rows = tiles.permute(4, 5, 0, 2, 3, 1).flatten(2, 4).flatten(0, 1).contiguous()
        traced = torch.compiler.is_compiling()
        identity = _ContiguousGradient if traced else _ContiguousGradientBothModes
        mixed = identity.apply(torch.bmm(rows, self.spectrum))
        mixed = mixed.unflatten(1, (batch, *counts)).unflatten(0, (fy, fx))
        tiles = torch.fft.irfft2(mixed.permute(2, 5, 3, 4, 0, 1), s=(y_size, x_size))
        return self.tiling.paste(tiles)


@dataclass(frozen=True, eq=False)
class MatrixKernel:
    """A kernel prepared for the discrete Fourier transform by matrix products.

    Attributes
    ----------
    spectrum
        Real, (frequencies, 2 K_in, 2 K_out): each frequency's complex matrix a - ib as the real
        one [[a, -b], [b, a]], which acts on rows [Re, Im].
    tiling
        How the images are cut.
    """

    spectrum: Tensor
    tiling: Tiling

    @classmethod
    def prepare(cls, weight: Tensor, x: Tensor) -> MatrixKernel:
        """Transform `weight` (K_out, K_in, S, S) for images like `x` (B, K_in, H, W)."""
        tiling = plan(x.shape[2], x.shape[3], weight.shape[-1], x.device.type)
        with torch.autocast(x.device.type, enabled=False):
            spectrum = _analyse(_at_least_float32(weight), tiling)  # (K_out, K_in, fy, 2, fx)
        a, b = spectrum.permute(3, 2, 4, 1, 0).flatten(1, 2).unbind()  # (frequencies, K_in, K_out)
        block = torch.cat([torch.cat([a, -b], dim=2), torch.cat([b, a], dim=2)], dim=1)
        return cls(block, tiling)

    def __call__(self, x: Tensor) -> Tensor:
        """Cross-correlate `x` (B, K_in, H, W) with the kernel: (B, K_out, H, W)."""
        # In bfloat16 the transforms would lose more than the convolution that they replace.
        with torch.autocast(x.device.type, enabled=False):
            return self._convolve(_at_least_float32(x)).to(x.dtype)

    def _convolve(self, x: Tensor) -> Tensor:
        tiles = _analyse(self.tiling.cut(x), self.tiling)  # (B, K_in, ty, tx, fy, 2, fx)
        batch, _, *counts, fy, _, fx = tiles.shape
        rows = tiles.permute(4, 6, 0, 2, 3, 5, 1).reshape(fy * fx, -1, self.spectrum.shape[1])
        mixed = torch.bmm(rows, self.spectrum)  # (frequencies, B ty tx, 2 K_out)
        tiles = mixed.reshape(fy, fx, batch, *counts, 2, -1).permute(2, 6, 3, 4, 0, 5, 1)
        return self.tiling.paste(_synthesise(tiles, self.tiling))


class _ContiguousGradient(torch.autograd.Function):
    """The identity; copies a strided gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.contiguous()


class _ContiguousGradientBothModes(_ContiguousGradient):
    """The same, for forward-mode derivatives too, with which torch.compile does not trace it."""

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return tangent.view_as(tangent)


def _analyse(x: Tensor, tiling: Tiling) -> Tensor:
    """Transform (..., h, w), zeros beyond, to the half spectrum (..., fy, 2, fx) of [Re, Im]."""
    height, width = x.shape[-2:]
    cosine, sine = _waves(tiling.y.size // 2 + 1, height, tiling.y.size, like=x)
    half = torch.cat([cosine, -sine]) @ x  # (..., 2 fy, w), Re above Im
    half = half.unflatten(-2, (2, -1)).transpose(-3, -2).flatten(-2)  # (..., fy, 2 w)
    cosine, sine = _waves(width, tiling.x.size, tiling.x.size, like=x)
    turn = torch.cat([torch.cat([cosine, -sine], dim=1), torch.cat([sine, cosine], dim=1)])
    return (half @ turn).unflatten(-1, (2, -1))


def _synthesise(spectrum: Tensor, tiling: Tiling) -> Tensor:
    """Transform (..., fy, 2, fx) back, for the valid pixels only: (..., vy, vx)."""
    (y_size, y_valid, _), (x_size, x_valid, _) = tiling.y, tiling.x
    cosine, sine = _waves(x_size, x_valid, x_size, like=spectrum)
    turn = torch.cat([torch.cat([cosine, sine], dim=1), torch.cat([-sine, cosine], dim=1)])
    half = (spectrum.flatten(-2) @ turn).unflatten(-1, (2, -1)).transpose(-3, -2).flatten(-3, -2)
    cosine, sine = _waves(y_valid, y_size // 2 + 1, y_size, like=spectrum)
    # Every frequency but the first and the middle one stands for its mirror image too.
    weight = torch.full((y_size // 2 + 1,), 2.0, dtype=spectrum.dtype, device=spectrum.device)
    weight[:: y_size // 2] = 1.0
    return torch.cat([cosine * weight, -sine * weight], dim=1) @ half / (y_size * x_size)


def _waves(rows: int, columns: int, size: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of 2 pi row column / size, (rows, columns)."""
    row = torch.arange(rows, device=like.device).unsqueeze(1)
    column = torch.arange(columns, device=like.device)
    # The whole turns are taken off in integers, where nothing is rounded.
    angle = (row * column % size).to(torch.float64) * (2 * math.pi / size)
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
