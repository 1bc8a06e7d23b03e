"""How Triton kernels store what goes through all steps of the hGRU: drive, state and its gradient.

What is cut off of these is carried along, and no matrix product reads them as they are stored. So
they are not stored in float16 like the rest but, in as many bytes, as integers with an exponent for
each pixel: 15 bits of the pixel's largest channel instead of 11 of each.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["load_state", "store_state"]

# Exponents of rows of integers: those of finite numbers, and one for a row that has others.
_LEAST: tl.constexpr = tl.constexpr(-100)
_MOST: tl.constexpr = tl.constexpr(126)
_BROKEN: tl.constexpr = tl.constexpr(127)
# An integer from -2^15 on and this one, as a float32, have it in the last 16 bits of their sum, and
# nothing of it in the others. Conversions would share the slow unit with exp and rsqrt.
_BIAS: tl.constexpr = tl.constexpr(2.0**23 + 2.0**15)
_BIAS_BITS: tl.constexpr = tl.constexpr(0x4B000000)  # its first 16 bits


@triton.jit
def _power_of_two(exponent):
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def load_state(numbers, exponents, r, at, there, inside):
    """Read rows of a state; one with a NaN or an infinity is all NaN."""
    if numbers.dtype.element_ty == tl.uint16:
        whole = tl.load(numbers + at, inside, 0x8000)  # which stands for 0
        exponent = tl.load(exponents + r, there, 0).to(tl.int32)
        unit = tl.where(exponent == _BROKEN, float("nan"), _power_of_two(exponent - 15))
        biased = (whole.to(tl.uint32) | _BIAS_BITS).to(tl.float32, bitcast=True)
        value = biased * unit[:, None] - (unit * _BIAS)[:, None]
    else:
        value = tl.load(numbers + at, inside, 0.0).to(tl.float32)
    return value


@triton.jit
def store_state(numbers, exponents, r, at, there, inside, value):
    """Write rows of a state: integers below 2^15, and the power of two above, or plain numbers."""
    if numbers.dtype.element_ty == tl.uint16:
        # Of the bits without the sign, those of a NaN are the largest.
        size = tl.max(value.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 1)
        exponent = (size >> 23) - 126  # all are below its power of two
        broken = exponent > _MOST
        exponent = tl.minimum(tl.maximum(exponent, _LEAST), _MOST)
        scaled = tl.minimum(value * _power_of_two(15 - exponent)[:, None], 32767.0)
        biased = (scaled + _BIAS).to(tl.int32, bitcast=True)
        tl.store(numbers + at, biased.to(tl.uint16), inside)
        tl.store(exponents + r, tl.where(broken, _BROKEN, exponent).to(tl.int8), there)
    else:
        tl.store(numbers + at, value.to(numbers.dtype.element_ty), inside)
