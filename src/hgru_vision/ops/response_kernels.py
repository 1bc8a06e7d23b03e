"""Squared responses of a bank of filters to images of one channel, there and back in one pass each.

The images are small and the responses are the largest tensors of a network: what costs is to read
and write these. So they are squared before they are written, and made again on the way back, where
their gradient is read and nothing of their size is written. A block of pixels is a product of the
filters, (K, taps), with what they see, (taps, pixels). At the paper's size on an H200 cuDNN and the
square took 13 microseconds an image, there and back, of the 300 of the whole step.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgru_vision.ops.mix_kernels import block
from hgru_vision.ops.responses import MOST_FILTERS, MOST_TAPS

__all__ = ["SquaredResponses"]

_PIXELS = 32  # of a block: 150 are five of them, and little is lost
_PROGRAMS = 1056  # each works on many blocks, and sums the filters' gradient on its own


class SquaredResponses(torch.autograd.Function):
    """Filter images and square; no gradient for the images.

    Shape
    -----
    images : (B, 1, H, W); weight : (K, 1, S, S); output : (B, K, H, W)
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor) -> Tensor:
        """Compute the squares."""
        margin = weight.shape[-1] // 2
        framed = F.pad(images, (margin, margin, margin, margin))  # no tap sees beyond it
        out = images.new_empty(len(images), len(weight), *images.shape[2:])
        weight = weight.contiguous()
        with torch.cuda.device_of(images):  # where Triton starts its kernels
            _launch(_responses_kernel, framed, weight, out, out, num_warps=1)
        ctx.save_for_backward(framed, weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        """Compute the filters' gradient."""
        framed, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        sums = weight.new_zeros(_PROGRAMS, *weight.shape)
        _launch(_responses_backward_kernel, framed, weight, gradient, sums, num_warps=2)
        return None, sums.sum(0)


def _launch(
    kernel: Any, framed: Tensor, weight: Tensor, responses: Tensor, out: Tensor, *, num_warps: int
) -> None:
    """Run a kernel on all pixels of `responses` (or their gradient)."""
    batch, filters, height, width = responses.shape
    size = weight.shape[-1]
    rows, segments = batch * height, triton.cdiv(width, _PIXELS)
    kernel[(min(rows * segments, _PROGRAMS),)](
        framed, weight, responses, out, rows, segments, height, width, filters,
        SIZE=size, TAPS=block(size * size, MOST_TAPS), CHANNELS=block(filters, MOST_FILTERS),
        PIXELS=_PIXELS, num_warps=num_warps, num_stages=1,
    )  # fmt: skip


@triton.jit
def _filters(weight, filters, SIZE: tl.constexpr, TAPS: tl.constexpr, CHANNELS: tl.constexpr):
    k, tap = tl.arange(0, CHANNELS), tl.arange(0, TAPS)
    at = k[:, None] * SIZE * SIZE + tap[None, :]
    inside = (k < filters)[:, None] & (tap < SIZE * SIZE)[None, :]
    return at, inside, tl.load(weight + at, inside, 0.0)


@triton.jit
def _pixels(
    framed, part, segments, height, width, filters,
    SIZE: tl.constexpr, TAPS: tl.constexpr, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    # What each tap sees at each pixel of a part of a row, (TAPS, PIXELS), and where the responses
    # are. Taps that a filter does not have see what its first one does, and their weights are 0.
    row, x = part // segments, (part % segments) * PIXELS + tl.arange(0, PIXELS)  # of all images
    b, wide = row // height, width + SIZE - 1
    tap = tl.arange(0, TAPS)
    tap = tl.where(tap < SIZE * SIZE, tap, 0)
    corner = framed + (row + b * (SIZE - 1)).to(tl.int64) * wide
    reach = tl.minimum(x, width - 1)
    seen = tl.load(corner + (reach[None, :] + ((tap // SIZE) * wide + tap % SIZE)[:, None]))
    k, plane = tl.arange(0, CHANNELS), height * width
    first = b.to(tl.int64) * filters * plane + (row - b * height) * width
    at = k[:, None] * plane + x[None, :]
    return seen, first, at, (x < width)[None, :] & (k < filters)[:, None]


# Three products of TF32 are one of float32, on the fast units.
@triton.jit
def _responses_kernel(
    framed, weight, responses, out, rows, segments, height, width, filters,
    SIZE: tl.constexpr, TAPS: tl.constexpr, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    _, _, taps = _filters(weight, filters, SIZE, TAPS, CHANNELS)
    for part in range(tl.program_id(0), rows * segments, tl.num_programs(0)):
        seen, first, at, inside = _pixels(
            framed, part, segments, height, width, filters, SIZE, TAPS, CHANNELS, PIXELS
        )
        response = tl.dot(taps, seen, input_precision="tf32x3")
        tl.store(out + first + at, response * response, inside)


@triton.jit
def _responses_backward_kernel(
    framed, weight, gradient, sums, rows, segments, height, width, filters,
    SIZE: tl.constexpr, TAPS: tl.constexpr, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    weight_at, weight_inside, taps = _filters(weight, filters, SIZE, TAPS, CHANNELS)
    total = tl.zeros((CHANNELS, TAPS), tl.float32)
    for part in range(tl.program_id(0), rows * segments, tl.num_programs(0)):
        seen, first, at, inside = _pixels(
            framed, part, segments, height, width, filters, SIZE, TAPS, CHANNELS, PIXELS
        )
        slope = 2 * tl.dot(taps, seen, input_precision="tf32x3")
        slope *= tl.load(gradient + first + at, inside, 0.0)
        total = tl.dot(slope, tl.trans(seen), total, input_precision="tf32x3")
    own = sums + tl.program_id(0) * filters * SIZE * SIZE
    tl.store(own + weight_at, total, weight_inside)
