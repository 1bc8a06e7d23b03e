"""How an image is cut into overlapping tiles for the spectral convolution (overlap-save).

Along one axis, a transform of size n sees n pixels. Its circular convolution with a kernel of size
S = 2r + 1 is right at n - 2r of the pixels, and the next tile starts that much further. One tile
is enough for an axis of up to n - r pixels: what wraps around falls into the zero margin.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["Axis", "Tiling", "check_size", "plan"]

# 64 keeps the spectrum of 25 x 25 kernels at 10 MB, within the cache of a CPU core or two.
_LARGEST_CPU_TILE = 64
_SMALLEST_CPU_TILE = 8


def check_size(image: Tensor, height: int, width: int) -> None:
    """Refuse images (B, K, H, W) of another size than a kernel was prepared for."""
    if image.shape[2:] != (height, width):
        raise ValueError(
            f"images are {image.shape[2]} x {image.shape[3]} pixels; this kernel was prepared for "
            f"{height} x {width}"
        )


class Axis(NamedTuple):
    """One axis of a tiling: `tiles` transforms of `size` points, each good for `valid` pixels."""

    size: int
    valid: int
    tiles: int

    @property
    def points(self) -> int:
        """Transform points along this axis."""
        return self.size * self.tiles


class Tiling(NamedTuple):
    """A tiling of an image of `height` by `width` pixels for kernels of radius `radius`."""

    height: int
    width: int
    radius: int
    y: Axis
    x: Axis

    @property
    def points(self) -> int:
        """Transform points of one channel of one image."""
        return self.y.points * self.x.points

    def cut(self, image: Tensor) -> Tensor:
        """Cut (B, K, H, W) into tiles, zeros beyond the border: (B, K, ty, tx, ny, nx)."""
        check_size(image, self.height, self.width)
        below = (self.y.tiles - 1) * self.y.valid + self.y.size - self.radius - self.height
        right = (self.x.tiles - 1) * self.x.valid + self.x.size - self.radius - self.width
        padded = F.pad(image, (self.radius, right, self.radius, below))
        # Slices, not Tensor.unfold: its backward is three times slower and has no vmap rule.
        return _windows(_windows(padded, self.y, dim=2), self.x, dim=4).transpose(3, 4)

    def paste(self, tiles: Tensor) -> Tensor:
        """Join the valid parts of tiles, (B, K, ty, tx, vy or more, vx or more): (B, K, H, W)."""
        valid = tiles[..., : self.y.valid, : self.x.valid]
        rows = valid.transpose(3, 4).flatten(4, 5).flatten(2, 3)
        return rows[..., : self.height, : self.width]


def plan(height: int, width: int, kernel_size: int, device_type: str) -> Tiling:
    """Choose the tiles for an image.

    On a CPU, the power of two that covers an axis with the fewest points (the largest of equals),
    8 to 64 unless the kernel needs more. On other devices one tile for the whole image, of the
    least even size without prime factors above 5: a large transform there is cheap.

    Examples
    --------
    >>> plan(150, 150, 15, "cpu").x
    Axis(size=64, valid=50, tiles=3)
    >>> plan(150, 150, 15, "cuda").x
    Axis(size=160, valid=150, tiles=1)
    """
    radius = kernel_size // 2
    axis = _power_of_two_axis if device_type == "cpu" else _whole_axis
    return Tiling(height, width, radius, axis(height, radius), axis(width, radius))


def _windows(x: Tensor, axis: Axis, dim: int) -> Tensor:
    """Replace dimension `dim` by two: the tile, and the place in it."""
    starts = range(0, axis.valid * axis.tiles, axis.valid)
    return torch.stack([x.narrow(dim, start, axis.size) for start in starts], dim)


def _power_of_two_axis(length: int, radius: int) -> Axis:
    size = _SMALLEST_CPU_TILE
    while size < min(length + radius, max(_LARGEST_CPU_TILE, 4 * radius)):
        size *= 2
    best = _tile(length, radius, size)
    while size // 2 > max(2 * radius, _SMALLEST_CPU_TILE - 1):
        size //= 2
        axis = _tile(length, radius, size)
        if axis.points < best.points:
            best = axis
    return best


def _tile(length: int, radius: int, size: int) -> Axis:
    if length + radius <= size:
        return Axis(size, length, 1)
    tiles = -(-length // (size - 2 * radius))
    # Equal shares: 150 pixels are 3 x 50, and no tile is left with a few columns.
    return Axis(size, -(-length // tiles), tiles)


def _whole_axis(length: int, radius: int) -> Axis:
    size = length + radius
    while not _is_fast(size):
        size += 1
    return Axis(size, length, 1)


def _is_fast(size: int) -> bool:
    if size % 2:
        return False
    for prime in (2, 3, 5):
        while size % prime == 0:
            size //= prime
    return size == 1
