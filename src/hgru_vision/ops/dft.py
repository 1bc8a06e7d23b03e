"""The discrete Fourier transform as matrix products, for images with space first.

A GPU multiplies matrices far faster than it does anything else, and a transform of 160 points is a
matrix of 160 x 160. Images are kept as (y, x, B, K): space first, channels last. Then both
transforms, there and back, are plain matrix products without a transposition:

- along x, for each y: (2 C x W) times (W x B K); real numbers in, C complex columns out;
- along y, in one product: (2 R x 2 H) times (2 H x C B K).

A spectrum is (fy, 2, fx, B, K), its second axis the real and the imaginary part. Sums are divided
by a power of two near the square root of the size: a spectrum's numbers are then near those of the
image, so that float16 can hold them, and a wave of ones is exact in float16, so that no constant
factor goes wrong. What is missing to the inverse is in the multiplier. README.md in this folder
derives the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgru_vision.ops.tiling import check_size

__all__ = [
    "Circle",
    "Multiplier",
    "analyse",
    "circle",
    "halfway",
    "multiplier",
    "multiplier_gradient",
    "multiplier_unit",
    "multiplies_as_tf32",
    "synthesise",
]

# Sizes in which matrix units work without loss.
_ROWS = 16
_COLUMNS = 8


class Circle(NamedTuple):
    """A circular domain that holds an image and what a kernel reaches over.

    Attributes
    ----------
    height, width
        Of the image.
    rows
        R: circular size along y.
    columns
        C: frequencies along x that a real image needs; the circular size is 2 (C - 1).
    """

    height: int
    width: int
    rows: int
    columns: int

    @property
    def stored_width(self) -> int:
        """Width with columns of zeros, a multiple of 8: matrix units need it."""
        return _multiple(self.width, 8)

    @property
    def x_size(self) -> int:
        """Circular size along x."""
        return 2 * (self.columns - 1)

    def check(self, image: Tensor) -> None:
        """Refuse images (B, K, H, W) of another size."""
        check_size(image, self.height, self.width)

    @property
    def frequencies(self) -> int:
        """Complex numbers of a channel's spectrum."""
        return self.rows * self.columns


def circle(height: int, width: int, kernel_size: int) -> Circle:
    """Choose the domain for an image: what wraps around must fall into the margin.

    Examples
    --------
    >>> circle(150, 150, 15)
    Circle(height=150, width=150, rows=160, columns=80)
    """
    radius = kernel_size // 2
    columns = math.ceil((width + radius) / 2) + 1
    return Circle(height, width, _multiple(height + radius, _ROWS), _multiple(columns, _COLUMNS))


def halfway(image: Tensor, domain: Circle) -> Tensor:
    """Make room for what `analyse` has between its two products, for images like this one.

    Shape
    -----
    image : (H, stored width, B, K); output : (2 H or little more, C B K)
    """
    height, _, batch, channels = image.shape
    half = image.new_empty(_multiple(2 * height, 8), domain.columns * batch * channels)
    half[2 * height :].zero_()  # the rows that make the inner size a multiple of 8
    return half


def analyse(
    image: Tensor, domain: Circle, out: Tensor | None = None, half: Tensor | None = None
) -> Tensor:
    """Transform images to their half spectrum; `half` is room for it to work in.

    Shape
    -----
    image : (H, stored width, B, K); half : as `halfway` makes it; output : (R, 2, C, B, K)
    """
    height, width, batch, channels = image.shape
    along_x, along_y, _, _ = _matrices(domain, image.dtype, image.device, _tf32(image))
    half = halfway(image, domain) if half is None else half
    torch.bmm(
        along_x.expand(height, -1, -1),
        _operand(image).reshape(height, width, -1),
        out=half[: 2 * height].view(height, 2 * domain.columns, -1),
    )
    flat = None if out is None else out.view(2 * domain.rows, -1)
    spectrum = torch.mm(along_y, _operand(half, in_place=True), out=flat)
    return spectrum.view(domain.rows, 2, domain.columns, batch, channels)


def synthesise(
    spectrum: Tensor, domain: Circle, out: Tensor | None = None, half: Tensor | None = None
) -> Tensor:
    """Transform half spectra back, for the pixels of the image alone; zeros in the other columns.

    Where products are TF32, the spectrum is taken as rounded to it (`mix` does so).

    Shape
    -----
    spectrum : (R, 2, C, B, K); half : as `halfway` makes it; output : (H, stored width, B, K)
    """
    *_, batch, channels = spectrum.shape
    _, _, along_y, along_x = _matrices(domain, spectrum.dtype, spectrum.device, _tf32(spectrum))
    room = None if half is None else half[: 2 * domain.height]
    half = torch.mm(along_y, spectrum.reshape(2 * domain.rows, -1), out=room)
    half = _operand(half, in_place=True).view(domain.height, 2 * domain.columns, -1)
    flat = None if out is None else out.view(domain.height, domain.stored_width, -1)
    image = torch.bmm(along_x.expand(domain.height, -1, -1), half, out=flat)
    return image.view(domain.height, domain.stored_width, batch, channels)


def multiplier(weight: Tensor, domain: Circle) -> Tensor:
    """Transform a kernel to what a cross-correlation multiplies each frequency by.

    Sum of w[dy, dx] exp(+i (fy dy + fx dx)), the offsets counted from the kernel's centre, times
    what the transforms there and back leave undone.

    Shape
    -----
    weight : (K_out, K_in, S, S); output : (R, 2, C, K_in, K_out)
    """
    k_out, k_in, size, _ = weight.shape
    waves_x, _, waves_y = _kernel_waves(domain, size, weight.dtype, weight.device)
    kernel = weight.permute(3, 2, 1, 0).reshape(size, -1)  # (dx, (dy, K_in, K_out))
    with _exact_products(weight.device):
        half = (waves_x @ kernel).view(2, domain.columns, size, k_in * k_out)  # Re and Im first
        half = half.permute(2, 0, 1, 3).reshape(2 * size, -1)  # ((dy, 2), (fx, K_in, K_out))
        return (waves_y @ half).view(domain.rows, 2, domain.columns, k_in, k_out)


def multiplier_gradient(gradient: Tensor, domain: Circle, size: int) -> Tensor:
    """Transform the gradient of a multiplier, X^H G at each frequency, to that of the kernel.

    Shape
    -----
    gradient : (R, 2, C, K_in, K_out); output : (K_out, K_in, S, S)
    """
    *_, k_in, k_out = gradient.shape
    _, mirrored_x, waves_y = _kernel_waves(domain, size, gradient.dtype, gradient.device)
    with _exact_products(gradient.device):
        half = waves_y.T @ gradient.reshape(2 * domain.rows, -1)  # ((dy, 2), (fx, K_in, K_out))
        half = half.view(size, 2, domain.columns, k_in * k_out).permute(1, 2, 0, 3)
        kernel = mirrored_x.T @ half.reshape(2 * domain.columns, -1)  # (dx, (dy, K_in, K_out))
    return kernel.view(size, size, k_in, k_out).permute(3, 2, 1, 0)


def multiplier_unit(weight: Tensor, domain: Circle) -> Tensor:
    """Give what to divide a kernel's multiplier by for float16, a power of two, float32 (1,).

    Neither it nor the product with a spectrum, there or back, exceeds 2^15 then, if no number of
    the image exceeds 1; and a small kernel is not too small.
    """
    sizes = weight.detach().abs().float()
    gain = torch.maximum(sizes.sum((1, 2, 3)).max(), sizes.sum((0, 2, 3)).max())
    roots = _root(domain.rows) * _root(domain.x_size)
    most = max(domain.height * domain.width, roots) * roots / (domain.rows * domain.x_size)
    largest = (gain * most).clamp(2.0**-80, 2.0**80)  # zeros have a unit, too
    return (largest.log2().ceil() - 15).exp2().reshape(1)


def multiplies_as_tf32(dtype: torch.dtype) -> bool:
    """Tell whether a GPU multiplies matrices of a dtype as TF32."""
    return dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "tf32"


def _tf32(numbers: Tensor) -> bool:
    return numbers.is_cuda and multiplies_as_tf32(numbers.dtype)


def _operand(numbers: Tensor, *, in_place: bool = False) -> Tensor:
    """Round to the nearest TF32 what is multiplied as TF32; `state_kernels` tells why."""
    if not _tf32(numbers):
        return numbers
    from hgru_vision.ops.mix_kernels import nearest_tf32  # Triton's, which is where a GPU is

    return nearest_tf32(numbers, numbers if in_place else torch.empty_like(numbers))


class Multiplier(torch.autograd.Function):
    """`multiplier` for weights that are trained.

    Its gradient is what `mix_gradient` sums, X^H G: the count of mirrored columns comes in here.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, domain: Circle) -> Tensor:
        """Transform a kernel (K_out, K_in, S, S)."""
        ctx.domain, ctx.kernel_size = domain, weight.shape[-1]
        return multiplier(weight, domain)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Transform a sum of X^H G."""
        return multiplier_gradient(gradient, ctx.domain, ctx.kernel_size), None


@contextmanager
def _exact_products(device: torch.device) -> Iterator[None]:
    """Multiply float32 as float32: an error in a multiplier would be in every image alike."""
    # This switch, and not `torch.set_float32_matmul_precision`, which sets others along: torch
    # refuses to tell its precision after someone else has put back one of them.
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "ieee"
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        matmul.fp32_precision = before


# Nothing is given up: a recorded step reads these tables without asking for them again.
@cache
def _matrices(
    domain: Circle, dtype: torch.dtype, device: torch.device, tf32: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Make the transforms along x and y, and back along y and x; as TF32 rounds them or not."""
    cosine, sine = _waves(domain.columns, torch.arange(domain.width), domain.x_size)
    along_x = torch.cat([cosine, -sine]) / _root(domain.x_size)  # ((2, fx), x)
    cosine, sine = _waves(domain.rows, torch.arange(domain.height), domain.rows)
    along_y = _complex_product(cosine, -sine) / _root(domain.rows)  # ((fy, 2), (y, 2))
    mirror = _mirror(domain).repeat(2)
    width, height = domain.stored_width, _multiple(2 * domain.height, 8)
    every = (
        F.pad(along_x, (0, width - domain.width)),
        F.pad(along_y, (0, height - 2 * domain.height)),
        along_y.T,
        F.pad(along_x.T * mirror, (0, 0, 0, width - domain.width)),
    )
    tables = (m.contiguous().to(dtype) for m in every)
    if tf32:
        tables = ((m.view(torch.int32) + 0x1000 & -0x2000).view(torch.float32) for m in tables)
    return tuple(m.to(device) for m in tables)  # type: ignore[return-value]


@cache
def _kernel_waves(
    domain: Circle, size: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Waves over a kernel's offsets: ((2, fx), dx), the same mirrored, and ((fy, 2), (dy, 2))."""
    offsets = torch.arange(size) - size // 2
    along_x = torch.cat(_waves(domain.columns, offsets, domain.x_size))
    along_y = _complex_product(*_waves(domain.rows, offsets, domain.rows))
    # The transforms divide by the roots, there and back; the inverse takes the sizes themselves.
    along_y *= (_root(domain.rows) * _root(domain.x_size)) ** 2 / (domain.rows * domain.x_size)
    mirrored = along_x * _mirror(domain).repeat(2).unsqueeze(1)
    return along_x.to(device, dtype), mirrored.to(device, dtype), along_y.to(device, dtype)


def _waves(frequencies: int, places: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of 2 pi f p / size, float64, (f, p)."""
    turns = torch.outer(torch.arange(frequencies), places) % size
    angle = turns.double() * (2 * math.pi / size)
    return angle.cos(), angle.sin()


def _complex_product(real: Tensor, imaginary: Tensor) -> Tensor:
    """Write complex (f, p) as the real ((f, 2), (p, 2)) that multiplies (Re, Im)."""
    rows = torch.stack([torch.stack([real, -imaginary], 2), torch.stack([imaginary, real], 2)], 1)
    return rows.flatten(2, 3).flatten(0, 1)


def _mirror(domain: Circle) -> Tensor:
    """How many columns of the whole spectrum each of the half one stands for: 1 or 2, float64."""
    count = torch.full((domain.columns,), 2.0, dtype=torch.float64)
    count[0] = count[-1] = 1
    return count


def _root(size: int) -> int:
    """Power of two near the square root of a size."""
    return 2 ** round(math.log2(size) / 2)


def _multiple(number: int, step: int) -> int:
    return -(-number // step) * step
