"""Two maps of many channels, a 1x1 convolution, where the channels of a pixel lie side by side.

The readout of every network of the study begins with it. It moves few bytes and adds little: one
pass over the features forward, one backward. cuDNN took 17 microseconds an image for it at the
paper's size on an H200, there and back, of the 300 of the whole step.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgru_vision.ops.maps import MOST_CHANNELS
from hgru_vision.ops.mix_kernels import block

__all__ = ["TwoMaps"]

_PROGRAMS = 1024  # of the backward kernel; each sums the weights' gradient on its own


class TwoMaps(torch.autograd.Function):
    """Products of the channels of every pixel with two rows of weights.

    Shape
    -----
    features : (B, K, H, W), channels last in memory; weight : (2, K); output : (B, 2, H, W),
        channels last in memory
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor) -> Tensor:
        """Compute the maps."""
        channels, weight = features.shape[1], weight.contiguous()
        pixels = features.numel() // channels
        maps = features.new_empty(features.shape[0], *features.shape[2:], 2)
        sizes = _blocks(channels)
        with torch.cuda.device_of(features):  # where Triton starts its kernels
            _maps_kernel[(triton.cdiv(pixels, sizes["PIXELS"]),)](
                features, weight, maps, pixels, channels, **sizes
            )
        ctx.save_for_backward(features, weight)
        return maps.movedim(3, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the gradients of features and weights."""
        features, weight = ctx.saved_tensors
        channels = features.shape[1]
        pixels = features.numel() // channels
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        to_features = torch.empty_like(features)
        sizes = _blocks(channels)
        parts = triton.cdiv(pixels, sizes["PIXELS"])
        programs = min(parts, _PROGRAMS)
        sums = features.new_empty(programs, 2, channels)
        _maps_backward_kernel[(programs,)](
            features, weight, gradient, to_features, sums, pixels, channels, parts, **sizes
        )
        return to_features, sums.sum(0)


def _blocks(channels: int) -> dict[str, int]:
    wide = block(channels, MOST_CHANNELS)
    return {"CHANNELS": wide, "PIXELS": max(1, 4096 // wide)}


@triton.jit
def _maps_kernel(
    features, weight, maps, pixels, channels, CHANNELS: tl.constexpr, PIXELS: tl.constexpr
):
    k = tl.arange(0, CHANNELS)
    p = tl.program_id(0).to(tl.int64) * PIXELS + tl.arange(0, PIXELS)
    inside = (p < pixels)[:, None] & (k < channels)[None, :]
    value = tl.load(features + p[:, None] * channels + k[None, :], inside, 0.0)
    first = tl.load(weight + k, k < channels, 0.0)
    second = tl.load(weight + channels + k, k < channels, 0.0)
    tl.store(maps + 2 * p, tl.sum(value * first[None, :], 1), p < pixels)
    tl.store(maps + 2 * p + 1, tl.sum(value * second[None, :], 1), p < pixels)


@triton.jit
def _maps_backward_kernel(
    features, weight, gradient, to_features, sums, pixels, channels, parts,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    k = tl.arange(0, CHANNELS)
    first = tl.load(weight + k, k < channels, 0.0)
    second = tl.load(weight + channels + k, k < channels, 0.0)
    to_first = tl.zeros((PIXELS, CHANNELS), tl.float32)
    to_second = tl.zeros((PIXELS, CHANNELS), tl.float32)
    for part in range(tl.program_id(0), parts, tl.num_programs(0)):
        p = (part * PIXELS + tl.arange(0, PIXELS)).to(tl.int64)
        at = p[:, None] * channels + k[None, :]
        inside = (p < pixels)[:, None] & (k < channels)[None, :]
        value = tl.load(features + at, inside, 0.0)
        g_first = tl.load(gradient + 2 * p, p < pixels, 0.0)[:, None]
        g_second = tl.load(gradient + 2 * p + 1, p < pixels, 0.0)[:, None]
        to_first += value * g_first
        to_second += value * g_second
        tl.store(to_features + at, g_first * first[None, :] + g_second * second[None, :], inside)
    own = sums + tl.program_id(0) * 2 * channels + k
    tl.store(own, tl.sum(to_first, 0), k < channels)
    tl.store(own + channels, tl.sum(to_second, 0), k < channels)
