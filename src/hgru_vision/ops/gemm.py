"""The horizontal convolution for a GPU: the transforms of `dft.py` around a mix in Triton.

For any circuit or network, one convolution at a time; the hGRU has all its steps in one piece
(`ops/hgru.py`). Storage is float16 or float32, images and kernels scaled so that nothing is too
large or too small for the first; sums are float32.

While torch.compile traces, the convolution is an operation that the compiler does not look into,
`torch.ops.hgru_vision.convolve`, with its gradient registered. Otherwise it is a function of
autograd around the same code: going through the operation takes some 90 microseconds more of
Python for a pass there and back, and a small batch waits for Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
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
    stored, unit
        The same in the storage dtype, and what a 1 of it is worth, (1,).
    domain
        Of the transforms.
    channels
        K_out.
    """

    multiplier: Tensor
    stored: Tensor
    unit: Tensor
    domain: dft.Circle
    channels: int

    @classmethod
    def prepare(cls, weight: Tensor, x: Tensor, storage: torch.dtype) -> GemmKernel:
        """Transform `weight` (K_out, K_in, S, S) for images like `x` (B, K_in, H, W)."""
        domain = dft.circle(x.shape[2], x.shape[3], weight.shape[-1])
        channels = len(weight)
        padded = F.pad(weight.float(), (0, 0, 0, 0, 0, 0, 0, pitch_of(channels) - channels))
        transform = _multiplier if torch.compiler.is_compiling() else dft.Multiplier.apply
        multiplier = transform(padded, domain)
        unit = dft.multiplier_unit(weight, domain)
        return cls(multiplier, (multiplier.detach() / unit).to(storage), unit, domain, channels)

    def __call__(self, x: Tensor) -> Tensor:
        """Cross-correlate `x` (B, K_in, H, W) with the kernel: (B, K_out, H, W)."""
        self.domain.check(x)
        given = x, self.multiplier, self.stored, self.unit, self.domain, self.channels
        if torch.compiler.is_compiling():
            return _convolve_op(*given)[0]
        return _Convolve.apply(*given)


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        multiplier: Tensor,
        stored: Tensor,
        kernel_unit: Tensor,
        domain: dft.Circle,
        channels: int,
    ) -> Tensor:
        out, spectrum, unit = _there(x, stored, kernel_unit, domain, channels)
        ctx.save_for_backward(spectrum, unit, stored, kernel_unit)
        ctx.domain = domain
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        wanted = ctx.needs_input_grad[:2]
        spectrum, unit, stored, kernel_unit = ctx.saved_tensors
        made = _back(gradient, spectrum, unit, stored, kernel_unit, ctx.domain, *wanted)
        return *_placed(made, wanted), None, None, None, None


def _there(
    x: Tensor, stored: Tensor, kernel_unit: Tensor, domain: dft.Circle, channels: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Convolve: the result, and what the way back needs of it, the spectrum of `x` and its unit."""
    with _no_autocast(x), torch.cuda.device_of(x):
        spectrum, unit = _analyse(x, stored.dtype, domain)
        out = _convolve(spectrum, unit * kernel_unit, stored, domain, _room(x, channels))
        return out, spectrum, unit


def _back(
    gradient: Tensor,
    spectrum: Tensor,
    unit: Tensor,
    stored: Tensor,
    kernel_unit: Tensor,
    domain: dft.Circle,
    to_x: bool,
    to_multiplier: bool,
) -> list[Tensor]:
    """Give the gradients of `x` and of the multiplier, those that are asked for."""
    made = []
    with _no_autocast(gradient):
        spectral, g_unit = _analyse(gradient, stored.dtype, domain)
        if to_x:
            room = _room(gradient, stored.shape[-2])
            both = g_unit * kernel_unit
            made.append(_convolve(spectral, both, stored, domain, room, adjoint=True))
        if to_multiplier:
            sums = torch.empty(stored.shape, dtype=torch.float32, device=stored.device)
            spectra, gradients = spectrum.unsqueeze(0), spectral.unsqueeze(0)
            made.append(mix_gradient(spectra, gradients, unit * g_unit, sums, add=False))
    return made


def _placed(made: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor | None]:
    """Put what was made where it was wanted, and None elsewhere."""
    each = iter(made)
    return [next(each) if here else None for here in wanted]


def _no_autocast(tensor: Tensor) -> AbstractContextManager[Any]:
    """Keep products of the storage dtype in it: autocast would round them to another."""
    if torch.is_autocast_enabled(tensor.device.type):
        return torch.autocast(tensor.device.type, enabled=False)
    return nullcontext()


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
    out: Tensor,
    *,
    adjoint: bool = False,
) -> Tensor:
    """Mix, transform back and undo the scale."""
    mixed = spectrum.new_empty(*spectrum.shape[:4], pitch_of(out.shape[1]))
    planes = dft.synthesise(mix(spectrum, stored, mixed, adjoint=adjoint), domain)
    return from_planes(planes.unsqueeze(0), unit, out)


def _room(like: Tensor, channels: int) -> Tensor:
    """Make room for images of so many channels, side by side in memory if those of `like` are."""
    batch, _, height, width = like.shape
    if like.is_contiguous() or not like.is_contiguous(memory_format=torch.channels_last):
        return like.new_empty(batch, channels, height, width)
    return like.new_empty(batch, height, width, channels).movedim(3, 1)


# What compilers see. A `dft.Circle` is four integers to them. The tables of `dft.py` are made at
# the first call and kept, which must not happen in the memory of a graph that Inductor records.
_UNRECORDED = (torch.Tag.cudagraph_unsafe,)


@torch.library.custom_op("hgru_vision::convolve", mutates_args=(), tags=_UNRECORDED)
def _convolve_op(
    x: Tensor,
    multiplier: Tensor,
    stored: Tensor,
    kernel_unit: Tensor,
    domain: Sequence[int],
    channels: int,
) -> tuple[Tensor, Tensor, Tensor]:
    return _there(x, stored, kernel_unit, dft.Circle(*domain), channels)


@_convolve_op.register_fake
def _convolve_shapes(
    x: Tensor,
    multiplier: Tensor,
    stored: Tensor,
    kernel_unit: Tensor,
    domain: Sequence[int],
    channels: int,
) -> tuple[Tensor, Tensor, Tensor]:
    rows, _, columns, k_in, _ = stored.shape
    spectrum = stored.new_empty(rows, 2, columns, len(x), pitch_of(k_in))
    return _room(x, channels), spectrum, x.new_empty(1, dtype=torch.float32)


@torch.library.custom_op("hgru_vision::convolve_backward", mutates_args=(), tags=_UNRECORDED)
def _convolve_backward_op(
    gradient: Tensor,
    spectrum: Tensor,
    unit: Tensor,
    stored: Tensor,
    kernel_unit: Tensor,
    domain: Sequence[int],
    to_x: bool,
    to_multiplier: bool,
) -> list[Tensor]:
    circle = dft.Circle(*domain)
    return _back(gradient, spectrum, unit, stored, kernel_unit, circle, to_x, to_multiplier)


@_convolve_backward_op.register_fake
def _convolve_backward_shapes(
    gradient: Tensor,
    spectrum: Tensor,
    unit: Tensor,
    stored: Tensor,
    kernel_unit: Tensor,
    domain: Sequence[int],
    to_x: bool,
    to_multiplier: bool,
) -> list[Tensor]:
    like_x = _room(gradient, stored.shape[-2])
    like_multiplier = stored.new_empty(stored.shape, dtype=torch.float32)
    return [like_x] * to_x + [like_multiplier] * to_multiplier


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    _, _, stored, kernel_unit, ctx.domain, _ = inputs
    _, spectrum, unit = output
    ctx.save_for_backward(spectrum, unit, stored, kernel_unit)


def _differentiate(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    wanted = ctx.needs_input_grad[:2]
    made = _convolve_backward_op(gradient, *ctx.saved_tensors, ctx.domain, *wanted)
    return *_placed(made, wanted), None, None, None, None


_convolve_op.register_autograd(_differentiate, setup_context=_keep)


@torch.library.custom_op("hgru_vision::multiplier", mutates_args=(), tags=_UNRECORDED)
def _multiplier(weight: Tensor, domain: Sequence[int]) -> Tensor:
    return dft.multiplier(weight, dft.Circle(*domain))


@_multiplier.register_fake
def _multiplier_shape(weight: Tensor, domain: Sequence[int]) -> Tensor:
    circle, (k_out, k_in, _, _) = dft.Circle(*domain), weight.shape
    return weight.new_empty(circle.rows, 2, circle.columns, k_in, k_out)


@torch.library.custom_op("hgru_vision::multiplier_backward", mutates_args=(), tags=_UNRECORDED)
def _multiplier_backward(gradient: Tensor, domain: Sequence[int], kernel_size: int) -> Tensor:
    return dft.multiplier_gradient(gradient, dft.Circle(*domain), kernel_size)


@_multiplier_backward.register_fake
def _multiplier_backward_shape(gradient: Tensor, domain: Sequence[int], kernel_size: int) -> Tensor:
    *_, k_in, k_out = gradient.shape
    return gradient.new_empty(kernel_size, kernel_size, k_in, k_out).permute(3, 2, 1, 0)


def _keep_sizes(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    weight, ctx.domain = inputs
    ctx.kernel_size = weight.shape[-1]


def _differentiate_multiplier(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    return _multiplier_backward(gradient, ctx.domain, ctx.kernel_size), None


_multiplier.register_autograd(_differentiate_multiplier, setup_context=_keep_sizes)
