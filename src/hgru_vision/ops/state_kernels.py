"""How Triton kernels store what float16 would cut too much off, in as many bytes; and TF32.

Drive, state and its gradient go through all steps, and with them what is cut off: they are integers
with an exponent for each pixel, 15 bits of the pixel's largest channel instead of 11 of each.

A gate is alike at many pixels, and so is what is cut off of it, which does not average out. It is
not negative and at most 1: no sign and a bit less of the exponent leave 13 bits instead of 11.

Matrix units cut off what TF32 does not have, always towards zero, which does not average out
either: `product` rounds to the nearest before.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = [
    "load_gate",
    "load_state",
    "operand",
    "product",
    "row_sizes",
    "store_gate",
    "store_state",
]

# Exponents of rows of integers, and one for a row that has larger numbers, an infinity or a NaN.
_LEAST: tl.constexpr = tl.constexpr(-100)
_MOST: tl.constexpr = tl.constexpr(119)  # `_BIAS` of their units must be finite
_BROKEN: tl.constexpr = tl.constexpr(127)
# An integer from -2^15 on and this one, as a float32, have it in the last 16 bits of their sum, and
# nothing of it in the others. Conversions would share the slow unit with exp and rsqrt.
_BIAS: tl.constexpr = tl.constexpr(2.0**23 + 2.0**15)
_BIAS_BITS: tl.constexpr = tl.constexpr(0x4B000000)  # its first 16 bits
# The least gate is stored as 0; added to all, so that none has a smaller exponent.
_CLOSED: tl.constexpr = tl.constexpr(2.0**-15)
_CLOSED_BITS: tl.constexpr = tl.constexpr(0x38000000)


@triton.jit
def _power_of_two(exponent):
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def load_state(numbers, exponents, r, at, there, inside):
    """Read rows of a state, zeros if there is none; one with a NaN or beyond 2^119 is all NaN."""
    if numbers is None:
        value = tl.zeros(at.shape, tl.float32)
    elif numbers.dtype.element_ty == tl.uint16:
        whole = tl.load(numbers + at, inside, 0x8000)  # which stands for 0
        exponent = tl.load(exponents + r, there, 0).to(tl.int32)
        unit = tl.where(exponent == _BROKEN, float("nan"), _power_of_two(exponent - 15))
        biased = (whole.to(tl.uint32) | _BIAS_BITS).to(tl.float32, bitcast=True)
        value = biased * unit[:, None] - (unit * _BIAS)[:, None]
    else:
        value = tl.load(numbers + at, inside, 0.0).to(tl.float32)
    return value


@triton.jit
def row_sizes(value):
    """Give the bits of each row's largest size; those of an infinity or a NaN are the largest."""
    return tl.max(value.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 1)


@triton.jit
def store_state(numbers, exponents, r, at, there, inside, value, sizes):
    """Write rows of a state: integers below 2^15, and the power of two above, or plain numbers."""
    if numbers.dtype.element_ty == tl.uint16:
        exponent = (sizes >> 23) - 126  # all are below its power of two
        broken = exponent > _MOST
        exponent = tl.minimum(tl.maximum(exponent, _LEAST), _MOST)
        scaled = tl.minimum(value * _power_of_two(15 - exponent)[:, None], 32767.0)
        biased = (scaled + _BIAS).to(tl.int32, bitcast=True)
        tl.store(numbers + at, biased.to(tl.uint16), inside)
        tl.store(exponents + r, tl.where(broken, _BROKEN, exponent).to(tl.int8), there)
    else:
        tl.store(numbers + at, value.to(numbers.dtype.element_ty), inside)


@triton.jit
def operand(value, PRECISION: tl.constexpr):
    """Round float32 to the nearest TF32, for products of these; other numbers stay as they are."""
    if PRECISION == "tf32" and value.dtype == tl.float32:
        bits = value.to(tl.int32, bitcast=True)
        nearest = (bits + 0x1000) & -0x2000
        finite = (bits & 0x7F800000) != 0x7F800000  # the sum makes another number of a NaN
        value = tl.where(finite, nearest, bits).to(tl.float32, bitcast=True)
    return value


@triton.jit
def product(a, b, PRECISION: tl.constexpr, added=None):
    """Multiply matrices, and add to a sum if there is one."""
    a, b = operand(a, PRECISION), operand(b, PRECISION)
    return tl.dot(a, b, added, input_precision=PRECISION)


@triton.jit
def load_gate(gates, at, inside):
    """Read a gate."""
    if gates.dtype.element_ty == tl.uint16:
        bits = (tl.load(gates + at, inside, 0).to(tl.int32) << 11) + _CLOSED_BITS
        gate = bits.to(tl.float32, bitcast=True) - _CLOSED
    else:
        gate = tl.load(gates + at, inside, 0.0)
    return gate


@triton.jit
def store_gate(gates, at, inside, gate):
    """Write a gate: the last 4 bits of its exponent and the first 12 of its fraction."""
    if gates.dtype.element_ty == tl.uint16:
        bits = (gate + _CLOSED).to(tl.int32, bitcast=True) - _CLOSED_BITS
        tl.store(gates + at, ((bits + (1 << 10)) >> 11).to(tl.uint16), inside)
    else:
        tl.store(gates + at, gate, inside)
