"""Triton kernels of the spectral convolution: the channel mix, its gradient, changes of layout.

Spectra are (R, 2, C, B, K), multipliers (R, 2, C, K_in, K_out); see `hgru_vision.ops.dft`. One
program works at one frequency, where a complex product of matrices is four real ones. Channels lie
`pitch` apart so that rows are aligned; what is beyond the last channel is kept at zero.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from hgru_vision.ops.dft import multiplies_as_tf32
from hgru_vision.ops.state_kernels import operand, product, row_sizes, store_state

__all__ = [
    "block",
    "from_planes",
    "mix",
    "mix_gradient",
    "nearest_tf32",
    "pitch_of",
    "precision",
    "to_planes",
    "unit_of",
]


def pitch_of(channels: int) -> int:
    """Channels that a row has room for: a multiple of 8, so that loads are 16 bytes wide."""
    return -(-channels // 8) * 8


def unit_of(tensor: Tensor) -> Tensor:
    """Give the largest number of a tensor, float32 (): what a 1 is worth after division by it.

    Zeros, and tensors with a NaN or an infinity, have the unit 1: the other images of a batch with
    one of these are not harmed.
    """
    largest = torch.linalg.vector_norm(tensor, float("inf"), dtype=torch.float32)
    usable = largest.isfinite() & (largest > 0)
    # The inverse of a smaller one is infinite.
    return torch.where(usable, largest, torch.ones_like(largest)).clamp(min=2.0**-126)


def block(size: int, most: int) -> int:
    """Least power of two that covers `size`, from 16 (what matrix units take) to `most`."""
    return min(max(16, triton.next_power_of_2(size)), most)


def mix(
    spectrum: Tensor,
    kernel: Tensor,
    out: Tensor,
    *,
    adjoint: bool = False,
    saturate: bool = False,
) -> Tensor:
    """Multiply every frequency by its matrix: Y = X M, or D = G M^H for the gradient of X.

    Where float16 ends, numbers become infinite, or, with `saturate`, as large as float16 can hold.

    Shape
    -----
    spectrum : (R, 2, C, B, K_in or, adjoint, K_out), channels at a pitch
    kernel : (R, 2, C, K_in, K_out)
    out : as spectrum, with the other channels
    """
    rows, _, columns, batch, pitch_in = spectrum.shape
    k_in, k_out = kernel.shape[-2:]
    step_in, step_out = (1, k_out) if adjoint else (k_out, 1)
    inner, outer = (k_out, k_in) if adjoint else (k_in, k_out)
    inner_block, outer_block = block(inner, 64), block(outer, 64)
    batch_block = block(batch, 4096 // outer_block)
    grid = (rows * columns, triton.cdiv(batch, batch_block), triton.cdiv(outer, outer_block))
    _mix_kernel[grid](
        spectrum, kernel, out,
        columns, batch, inner, outer,
        step_in, step_out, k_in * k_out,
        SIGN=-1.0 if adjoint else 1.0, SATURATE=saturate and out.dtype == torch.float16,
        PITCH_IN=pitch_in, PITCH_OUT=out.shape[-1],
        BATCH=batch_block, INNER=inner_block, OUTER=outer_block,
        PRECISION=precision(spectrum.dtype),
        num_warps=_warps(batch_block * max(inner_block, outer_block), 1024),
    )  # fmt: skip
    return out


def mix_gradient(
    spectra: Tensor, gradients: Tensor, units: Tensor, out: Tensor, *, first: int = 0, add: bool
) -> Tensor:
    """Sum X^H G over images and uses: the gradient of the multiplier, in float32.

    Shape
    -----
    spectra : (U, R, 2, C, B, K_in); gradients : (U, R, 2, C, B, K_out)
    units : (T,), the true size of a 1 in the gradients of each step, which has two uses; `first`
        is the number of the first use
    out : (R, 2, C, K_in, K_out)
    """
    uses, rows, _, columns, batch, pitch_in = spectra.shape
    k_in, k_out = out.shape[-2:]
    in_block, out_block, batch_block = block(k_in, 64), block(k_out, 64), block(batch, 32)
    grid = (rows * columns, triton.cdiv(k_in, in_block), triton.cdiv(k_out, out_block))
    _gradient_kernel[grid](
        spectra, gradients, units, out,
        first, uses, columns, batch, k_in, k_out,
        spectra.stride(0), gradients.stride(0),
        ADD=add, PITCH_IN=pitch_in, PITCH_OUT=gradients.shape[-1],
        BATCH=batch_block, INNER=in_block, OUTER=out_block,
        PRECISION=precision(spectra.dtype),
        num_warps=_warps(in_block * out_block, 1024),
    )  # fmt: skip
    return out


def to_planes(
    image: Tensor, out: Tensor, scale: Tensor | None = None, exponents: Tensor | None = None
) -> Tensor:
    """Copy images of any strides to (y, x, B, K), times a scale; zeros beyond image and channels.

    With `exponents`, as a state of at most 128 channels (see `state_kernels`).

    Shape
    -----
    image : (B, K, H, W); out : (H, stored width, B, pitch); scale : ()
    exponents : (H, stored width, B)
    """
    batch, channels, height, width = image.shape
    stored, pitch = out.shape[1], out.shape[3]
    k_block = block(pitch, 128)
    grid = (batch * height * triton.cdiv(stored, 32), triton.cdiv(pitch, k_block))
    _to_planes_kernel[grid](
        image, out, out if exponents is None else exponents, image if scale is None else scale,
        batch, channels, width, stored, *image.stride(),
        SCALED=scale is not None, PITCH=pitch, CHANNELS=k_block, PIXELS=32, num_warps=4,
    )  # fmt: skip
    return out


def from_planes(planes: Tensor, units: Tensor, out: Tensor) -> Tensor:
    """Copy (y, x, B, K) to images of any strides; of several, take the sum, each times its unit.

    Shape
    -----
    planes : (N, H, stored width, B, pitch); units : (N,); out : (B, K, H, W)
    """
    batch, channels, height, width = out.shape
    k_block = block(channels, 128)
    grid = (batch * height * triton.cdiv(width, 32), triton.cdiv(channels, k_block))
    _from_planes_kernel[grid](
        planes, units, out,
        len(planes), planes.stride(0), batch, channels, width, planes.shape[2],
        *out.stride(), PITCH=planes.shape[4], CHANNELS=k_block, PIXELS=32, num_warps=4,
    )  # fmt: skip
    return out


def _warps(numbers: int, share: int) -> int:
    """Warps for a block of so many numbers, each warp with a share: 1 to 4."""
    return min(4, max(1, numbers // share))


def precision(dtype: torch.dtype) -> str:
    """How Triton multiplies: float32 operands as TF32 only where torch does."""
    exact = dtype == torch.float32 and not multiplies_as_tf32(dtype)
    return "ieee" if exact else "tf32"


def nearest_tf32(numbers: Tensor, out: Tensor) -> Tensor:
    """Round float32 to the nearest TF32; `out` may be the same."""
    assert numbers.is_contiguous() and out.is_contiguous()
    count = numbers.numel()
    _nearest_kernel[(triton.cdiv(count, 4096),)](numbers, out, count, BLOCK=4096, num_warps=8)
    return out


@triton.jit
def _mix_kernel(
    spectrum, kernel, out,
    columns, batch, inner, outer,
    step_in, step_out, kernel_size,
    SIGN: tl.constexpr, SATURATE: tl.constexpr, PITCH_IN: tl.constexpr, PITCH_OUT: tl.constexpr,
    BATCH: tl.constexpr, INNER: tl.constexpr, OUTER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    frequency = tl.program_id(0).to(tl.int64)
    real = (frequency // columns) * 2 * columns + frequency % columns  # place of the real part
    b = tl.program_id(1) * BATCH + tl.arange(0, BATCH)
    o = tl.program_id(2) * OUTER + tl.arange(0, OUTER)
    x_real = spectrum + real * batch * PITCH_IN
    x_imaginary = x_real + columns * batch * PITCH_IN
    m_real = kernel + real * kernel_size
    m_imaginary = m_real + columns * kernel_size
    y_r = tl.zeros((BATCH, OUTER), tl.float32)
    y_i = tl.zeros((BATCH, OUTER), tl.float32)
    for start in range(0, inner, INNER):
        k = start + tl.arange(0, INNER)
        x_at = b[:, None] * PITCH_IN + k[None, :]
        # Zeros lie between the last channel and the pitch: a mask at the pitch lets loads be wide.
        x_in = (b < batch)[:, None] & (k < PITCH_IN)[None, :]
        m_at = k[:, None] * step_in + o[None, :] * step_out
        m_in = (k < inner)[:, None] & (o < outer)[None, :]
        x_r = tl.load(x_real + x_at, x_in, 0.0)
        x_i = tl.load(x_imaginary + x_at, x_in, 0.0)
        m_r = tl.load(m_real + m_at, m_in, 0.0)
        m_i = tl.load(m_imaginary + m_at, m_in, 0.0) * SIGN
        m_i = m_i.to(m_r.dtype)
        y_r = product(x_r, m_r, PRECISION, y_r)
        y_r = product(-x_i, m_i, PRECISION, y_r)
        y_i = product(x_r, m_i, PRECISION, y_i)
        y_i = product(x_i, m_r, PRECISION, y_i)
    if SATURATE:
        y_r = tl.clamp(y_r, -65504.0, 65504.0, propagate_nan=tl.PropagateNan.ALL)
        y_i = tl.clamp(y_i, -65504.0, 65504.0, propagate_nan=tl.PropagateNan.ALL)
    y_at = b[:, None] * PITCH_OUT + o[None, :]
    # Beyond the last channel the sums are zero: they are written, so that the pitch stays clean.
    y_in = (b < batch)[:, None] & (o < PITCH_OUT)[None, :]
    y_real = out + real * batch * PITCH_OUT
    y_r = operand(y_r.to(out.dtype.element_ty), PRECISION)  # of the transform that comes next
    y_i = operand(y_i.to(out.dtype.element_ty), PRECISION)
    tl.store(y_real + y_at, y_r, y_in)
    tl.store(y_real + columns * batch * PITCH_OUT + y_at, y_i, y_in)


@triton.jit
def _gradient_kernel(
    spectra, gradients, units, out,
    first, uses, columns, batch, k_in, k_out,
    spectra_step, gradients_step,
    ADD: tl.constexpr, PITCH_IN: tl.constexpr, PITCH_OUT: tl.constexpr,
    BATCH: tl.constexpr, INNER: tl.constexpr, OUTER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    frequency = tl.program_id(0).to(tl.int64)
    real = (frequency // columns) * 2 * columns + frequency % columns
    i = tl.program_id(1) * INNER + tl.arange(0, INNER)
    o = tl.program_id(2) * OUTER + tl.arange(0, OUTER)
    m_at = i[:, None] * k_out + o[None, :]
    m_in = (i < k_in)[:, None] & (o < k_out)[None, :]
    out_real = out + real * k_in * k_out
    out_imaginary = out_real + columns * k_in * k_out
    if ADD:
        sum_r = tl.load(out_real + m_at, m_in, 0.0)
        sum_i = tl.load(out_imaginary + m_at, m_in, 0.0)
    else:
        sum_r = tl.zeros((INNER, OUTER), tl.float32)
        sum_i = tl.zeros((INNER, OUTER), tl.float32)
    x_real = spectra + real * batch * PITCH_IN
    g_real = gradients + real * batch * PITCH_OUT
    for use in range(uses):
        x_imaginary = x_real + columns * batch * PITCH_IN
        g_imaginary = g_real + columns * batch * PITCH_OUT
        m_r = tl.zeros((INNER, OUTER), tl.float32)
        m_i = tl.zeros((INNER, OUTER), tl.float32)
        for start in range(0, batch, BATCH):
            b = start + tl.arange(0, BATCH)
            x_at = i[:, None] + b[None, :] * PITCH_IN
            x_in = (i < PITCH_IN)[:, None] & (b < batch)[None, :]
            g_at = b[:, None] * PITCH_OUT + o[None, :]
            g_in = (b < batch)[:, None] & (o < PITCH_OUT)[None, :]
            x_r = tl.load(x_real + x_at, x_in, 0.0)
            x_i = tl.load(x_imaginary + x_at, x_in, 0.0)
            g_r = tl.load(g_real + g_at, g_in, 0.0)
            g_i = tl.load(g_imaginary + g_at, g_in, 0.0)
            m_r = product(x_r, g_r, PRECISION, m_r)
            m_r = product(x_i, g_i, PRECISION, m_r)
            m_i = product(x_r, g_i, PRECISION, m_i)
            m_i = product(-x_i, g_r, PRECISION, m_i)
        unit = tl.load(units + (first + use) // 2)
        sum_r += unit * m_r
        sum_i += unit * m_i
        x_real += spectra_step
        g_real += gradients_step
    tl.store(out_real + m_at, sum_r, m_in)
    tl.store(out_imaginary + m_at, sum_i, m_in)


@triton.jit
def _nearest_kernel(numbers, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, operand(tl.load(numbers + at, at < count, 0.0), "tf32"), at < count)


@triton.jit
def _to_planes_kernel(
    image, out, exponents, scale,
    batch, channels, width, stored, step_b, step_k, step_y, step_x,
    SCALED: tl.constexpr, PITCH: tl.constexpr, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    parts = tl.cdiv(stored, PIXELS)
    # Programs that run together are of one place in all images, which lie side by side.
    b, place = (tl.program_id(0) % batch).to(tl.int64), tl.program_id(0) // batch
    y = (place // parts).to(tl.int64)
    x = (place % parts) * PIXELS + tl.arange(0, PIXELS)
    k = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    source = image + b * step_b + y * step_y + k[:, None] * step_k + x[None, :] * step_x
    value = tl.load(source, (k < channels)[:, None] & (x < width)[None, :], 0.0).to(tl.float32)
    if SCALED:
        value *= tl.load(scale)
    r = (y * stored + x) * batch + b
    at = r[:, None] * PITCH + k[None, :]
    inside = (x < stored)[:, None] & (k < PITCH)[None, :]
    value = tl.trans(value)
    store_state(out, exponents, r, at, x < stored, inside, value, row_sizes(value))


@triton.jit
def _from_planes_kernel(
    planes, units, out,
    count, step, batch, channels, width, stored, step_b, step_k, step_y, step_x,
    PITCH: tl.constexpr, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    parts = tl.cdiv(width, PIXELS)
    # Programs that run together are of one place in all images, which lie side by side.
    b, place = (tl.program_id(0) % batch).to(tl.int64), tl.program_id(0) // batch
    y = (place // parts).to(tl.int64)
    x = (place % parts) * PIXELS + tl.arange(0, PIXELS)
    k = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    source = planes + (y * stored * batch + b) * PITCH + x[:, None] * batch * PITCH + k[None, :]
    inside = (x < width)[:, None] & (k < PITCH)[None, :]
    value = tl.zeros((PIXELS, CHANNELS), tl.float32)
    for n in range(count):
        value += tl.load(units + n) * tl.load(source, inside, 0.0).to(tl.float32)
        source += step
    target = out + b * step_b + y * step_y + k[:, None] * step_k + x[None, :] * step_x
    inside = (k < channels)[:, None] & (x < width)[None, :]
    tl.store(target, tl.trans(value).to(out.dtype.element_ty), inside)
