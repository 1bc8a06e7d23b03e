"""Triton kernels for what the hGRU does at a pixel: gates, states and their gradients.

A pixel of an image is a row of K channels, all rows lie one after the other, and a gate is a
product of rows with a K x K matrix. Letters and equation numbers are those of `circuits/hgru.py`.
H1 and G2 are not kept for the way back: `inhibit` makes them again, step by step.

`state_kernels.py` tells how drive, H2, its gradient and G2 are stored. An H2 or C1 that is None
stands for zeros, those of a first step: nothing is read.

Constants are one table, (`CONSTANTS`, K): b1, b2, alpha, mu, kappa, beta, omega. Gradients of the
parameters are summed by each program on its own, in a place of its own, and added up outside: the
result does not depend on which program ran first.
"""

from __future__ import annotations

import triton
import triton.language as tl

from hgru_vision.ops.state_kernels import (
    load_gate,
    load_state,
    product,
    row_sizes,
    store_gate,
    store_state,
)

__all__ = ["CONSTANTS", "excite", "excite_backward", "gate", "gate_backward", "inhibit",
           "inhibit_backward"]  # fmt: skip

CONSTANTS = ("b1", "b2", "alpha", "mu", "kappa", "beta", "omega")


# exp2 is an instruction, and exp is five: it looks after results that are too small for float32.
@triton.jit
def _inverse(a):
    # Of 1 or more. A division looks after numbers of any size: with it `excite` took 5 % longer.
    root = tl.rsqrt(a)
    return root * root


@triton.jit
def _sigmoid(a):
    return _inverse(1 + tl.exp2(a * -1.4426950408889634))  # -1 / log 2


@triton.jit
def _tanh(a, stored):
    # exp of a negative number: no overflow, and odd to the last bit.
    e = tl.exp2(tl.abs(a) * -2.8853900817779268)  # -2 / log 2
    size = ((1 - e) * _inverse(1 + e)).to(tl.int32, bitcast=True)
    sign = a.to(tl.int32, bitcast=True) & -0x80000000
    result = (size | sign).to(tl.float32, bitcast=True)
    if stored.dtype.element_ty == tl.float32:
        # Of a small number 1 - e has few bits; what is stored as float16 does not show it.
        square = a * a
        series = a * (1 - square * (1 / 3 - square * (2 / 15 - square * (17 / 315))))
        result = tl.where(square < 0.01, series, result)
    return result


@triton.jit
def _constant(table, index, k, CHANNELS: tl.constexpr):
    return tl.load(table + index * CHANNELS + k)[None, :]


@triton.jit
def _matrix(u, k, CHANNELS: tl.constexpr):
    return tl.load(u + k[:, None] * CHANNELS + k[None, :])


@triton.jit
def _in_image(r, k, batch, stored, height, width, channels):
    # Where rows of (y, x, B) are in images (B, H, W, K), and which of them are pixels.
    row = r.to(tl.int32)  # long divisions are slow
    b, x, y = row % batch, (row // batch) % stored, row // (batch * stored)
    at = ((b * height + y) * width + x).to(tl.int64)[:, None] * channels + k[None, :]
    return at, ((x < width) & (y < height))[:, None] & (k < channels)[None, :]


@triton.jit
def _gradient(
    dh2_in, dh2_exponents, r, k, at, rows, inside, batch, stored, height, width, channels,
    LAST: tl.constexpr,
):  # fmt: skip
    if LAST:
        at, inside = _in_image(r, k, batch, stored, height, width, channels)
        dh2 = tl.load(dh2_in + at, inside, 0.0).to(tl.float32)
    else:
        dh2 = load_state(dh2_in, dh2_exponents, r, at, r < rows, inside)
    return dh2


@triton.jit
def _add(sums, k, value):
    tl.store(sums + k, tl.load(sums + k) + value)


@triton.jit
def _folded(value, FOLD: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    # Rows of `FOLD` parts added up: a sum over many iterations then takes fewer registers. With one
    # warp they lie in the same threads; with more they would meet behind barriers.
    if FOLD > 1:
        value = tl.sum(tl.reshape(value, (FOLD, ROWS // FOLD, CHANNELS)), 0)
    return value


@triton.jit
def gate(
    h2_in, h2_exponents, u1, table, u_out, rows,
    PITCH: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gate the first state: Eq. 3 and the product in Eq. 4."""
    k = tl.arange(0, CHANNELS)
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    at = r[:, None] * PITCH + k[None, :]
    inside = (r < rows)[:, None] & (k < PITCH)[None, :]
    h2 = load_state(h2_in, h2_exponents, r, at, r < rows, inside)
    g1 = _sigmoid(
        product(h2.to(u1.dtype.element_ty), _matrix(u1, k, CHANNELS), PRECISION)
        + _constant(table, 0, k, CHANNELS)
    )  # Eq. 3
    tl.store(u_out + at, (g1 * h2).to(u_out.dtype.element_ty), inside)


@triton.jit
def inhibit(
    x_in, x_exponents, c1_in, h2_in, h2_exponents, u2, table, h1_out, g2_out, rows,
    PITCH: tl.constexpr, GATE: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Inhibit the drive, Eq. 5; for the way back compute the second gate with it, Eq. 6."""
    k = tl.arange(0, CHANNELS)
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    at = r[:, None] * PITCH + k[None, :]
    inside = (r < rows)[:, None] & (k < PITCH)[None, :]
    x = load_state(x_in, x_exponents, r, at, r < rows, inside)
    if c1_in is not None:
        c1 = tl.load(c1_in + at, inside, 0.0).to(tl.float32)
        h2 = load_state(h2_in, h2_exponents, r, at, r < rows, inside)
        alpha, mu = _constant(table, 2, k, CHANNELS), _constant(table, 3, k, CHANNELS)
        x -= c1 * (alpha * h2 + mu)
    h1 = _tanh(x, h1_out)  # Eq. 5
    if GATE:  # a barrier: without it Triton makes all of this twice, once for each use of H1
        h1 = tl.where(inside, h1, 0.0)
    h1 = h1.to(h1_out.dtype.element_ty)
    tl.store(h1_out + at, h1, inside)
    if GATE:
        g2 = _sigmoid(
            product(h1, _matrix(u2, k, CHANNELS), PRECISION) + _constant(table, 1, k, CHANNELS)
        )  # Eq. 6
        store_gate(g2_out, at, inside, g2)


@triton.jit
def excite(
    c2_in, h1_in, h2_in, h2_exponents, u1, u2, table, eta_in, h2_out, out_exponents, u_out, rows,
    batch, stored, height, width, channels,
    PITCH: tl.constexpr, LAST: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Excite and mix, Eqs. 6, 8 and 9, and gate the new state for the next step.

    The last state goes to images (B, H, W, K) as it is, not rounded for storage.
    """
    k = tl.arange(0, CHANNELS)
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    at = r[:, None] * PITCH + k[None, :]
    inside = (r < rows)[:, None] & (k < PITCH)[None, :]
    h1_stored = tl.load(h1_in + at, inside, 0.0)
    c2 = tl.load(c2_in + at, inside, 0.0).to(tl.float32)
    h2 = load_state(h2_in, h2_exponents, r, at, r < rows, inside)
    kappa, beta = _constant(table, 4, k, CHANNELS), _constant(table, 5, k, CHANNELS)
    omega, eta = _constant(table, 6, k, CHANNELS), tl.load(eta_in)
    g2 = _sigmoid(
        product(h1_stored, _matrix(u2, k, CHANNELS), PRECISION) + _constant(table, 1, k, CHANNELS)
    )  # Eq. 6
    h1 = h1_stored.to(tl.float32)
    candidate = _tanh(kappa * h1 + beta * c2 + omega * h1 * c2, h1_in)  # Eq. 8
    h2 = eta * (h2 * (1 - g2) + candidate * g2)  # Eq. 9
    if LAST:
        at, inside = _in_image(r, k, batch, stored, height, width, channels)
        tl.store(h2_out + at, h2.to(h2_out.dtype.element_ty), inside)
    else:
        store_state(h2_out, out_exponents, r, at, r < rows, inside, h2, row_sizes(h2))
        g1 = _sigmoid(
            product(h2.to(u1.dtype.element_ty), _matrix(u1, k, CHANNELS), PRECISION)
            + _constant(table, 0, k, CHANNELS)
        )  # Eq. 3
        tl.store(u_out + at, (g1 * h2).to(u_out.dtype.element_ty), inside)


@triton.jit
def excite_backward(
    dh2_in, dh2_exponents, h1_in, g2_in, c2_in, h2_in, h2_exponents, u2_t, table, eta_in, largest,
    room, unit_in, unit_out, dc2_out, dh1_out, constant_sums, matrix_sums, eta_sums,
    rows, parts, batch, stored, height, width, channels,
    PITCH: tl.constexpr, LAST: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr, PROGRAMS: tl.constexpr, FOLD: tl.constexpr,
):  # fmt: skip
    """Go back through Eqs. 9, 8 and 6, but for what goes straight from H2 to H2.

    Gradients are scaled anew at each step, the largest to `room` or little less: far from overflow
    in float16, and the small ones are kept. `largest` has what the last kernel found, one number a
    program; `unit` is the true size of a stored 1. The gradient of the last state is read from
    images (B, H, W, K), not rounded: a readout's is large at few pixels, and small and alike at all
    others, where errors would add up.
    """
    k = tl.arange(0, CHANNELS)
    program = tl.program_id(0)
    most = tl.max(tl.load(largest + tl.arange(0, PROGRAMS)), 0)
    finite = (most > 0) & (most < float("inf"))
    most = tl.maximum(tl.where(finite, most, 1.0), 2.0**-100)  # its inverse must be finite too
    scale = tl.load(room) / tl.exp2(tl.ceil(tl.log2(most)))  # a power of two
    unit = tl.load(unit_in)
    # A gradient that vanishes must not make the unit 0.
    scale = tl.minimum(tl.where(finite, scale, 1.0), tl.minimum(unit, 1.0) * 2.0**126)
    unit /= scale
    if program == 0:
        tl.store(unit_out, unit)
    kappa, beta = _constant(table, 4, k, CHANNELS), _constant(table, 5, k, CHANNELS)
    omega, eta = _constant(table, 6, k, CHANNELS), tl.load(eta_in)
    matrix_t = _matrix(u2_t, k, CHANNELS)
    db2 = tl.zeros((ROWS // FOLD, CHANNELS), tl.float32)
    dkappa = tl.zeros((ROWS // FOLD, CHANNELS), tl.float32)
    dbeta = tl.zeros((ROWS // FOLD, CHANNELS), tl.float32)
    domega = tl.zeros((ROWS // FOLD, CHANNELS), tl.float32)
    deta = tl.zeros((ROWS // FOLD, CHANNELS), tl.float32)
    du2 = tl.zeros((CHANNELS, CHANNELS), tl.float32)
    for part in range(program, parts, tl.num_programs(0)):
        r = (part * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        at = r[:, None] * PITCH + k[None, :]
        inside = (r < rows)[:, None] & (k < PITCH)[None, :]
        dh2 = _gradient(
            dh2_in, dh2_exponents, r, k, at, rows, inside,
            batch, stored, height, width, channels, LAST,
        )  # fmt: skip
        dh2 *= scale
        h1_stored = tl.load(h1_in + at, inside, 0.0)
        g2 = load_gate(g2_in, at, inside)
        c2 = tl.load(c2_in + at, inside, 0.0).to(tl.float32)
        h2 = load_state(h2_in, h2_exponents, r, at, r < rows, inside)
        h1 = h1_stored.to(tl.float32)
        slope = kappa + omega * c2
        candidate = _tanh(h1 * slope + beta * c2, h1_in)  # Eq. 8
        change = g2 * (candidate - h2)  # Eq. 9
        deta += _folded(dh2 * (h2 + change), FOLD, ROWS, CHANNELS)
        dh2 = eta * dh2
        dz = dh2 * g2 * (1 - candidate * candidate)
        dgate = dh2 * change * (1 - g2)
        dkappa += _folded(dz * h1, FOLD, ROWS, CHANNELS)
        dbeta += _folded(dz * c2, FOLD, ROWS, CHANNELS)
        domega += _folded(dz * h1 * c2, FOLD, ROWS, CHANNELS)
        db2 += _folded(dgate, FOLD, ROWS, CHANNELS)
        dgate = dgate.to(h1_stored.dtype)
        du2 = product(tl.trans(h1_stored), dgate, PRECISION, du2)
        dh1 = dz * slope + product(dgate, matrix_t, PRECISION)
        dc2 = dz * (beta + omega * h1)
        tl.store(dc2_out + at, dc2.to(dc2_out.dtype.element_ty), inside)
        tl.store(dh1_out + at, dh1.to(dh1_out.dtype.element_ty), inside)
    own = constant_sums + program * 7 * CHANNELS
    _add(own + 1 * CHANNELS, k, tl.sum(db2, 0) * unit)
    _add(own + 4 * CHANNELS, k, tl.sum(dkappa, 0) * unit)
    _add(own + 5 * CHANNELS, k, tl.sum(dbeta, 0) * unit)
    _add(own + 6 * CHANNELS, k, tl.sum(domega, 0) * unit)
    tl.store(eta_sums + program * CHANNELS + k, tl.sum(deta, 0) * unit)
    _add(matrix_sums + program * CHANNELS * CHANNELS,
         k[:, None] * CHANNELS + k[None, :], du2 * unit)  # fmt: skip


@triton.jit
def inhibit_backward(
    dh1_in, dh1_conv_in, h1_in, c1_in, h2_in, h2_exponents, table, unit_in,
    dc1_out, dx_out, constant_sums, rows, parts,
    PITCH: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Go back through Eq. 5; `dx` is what this step adds to the gradient of the drive."""
    k = tl.arange(0, CHANNELS)
    program = tl.program_id(0)
    alpha, mu = _constant(table, 2, k, CHANNELS), _constant(table, 3, k, CHANNELS)
    dalpha = tl.zeros((ROWS, CHANNELS), tl.float32)
    dmu = tl.zeros((ROWS, CHANNELS), tl.float32)
    unit = tl.load(unit_in)
    for part in range(program, parts, tl.num_programs(0)):
        r = (part * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        at = r[:, None] * PITCH + k[None, :]
        inside = (r < rows)[:, None] & (k < PITCH)[None, :]
        dh1 = tl.load(dh1_in + at, inside, 0.0).to(tl.float32)
        dh1 += tl.load(dh1_conv_in + at, inside, 0.0).to(tl.float32)
        h1 = tl.load(h1_in + at, inside, 0.0).to(tl.float32)
        dz = dh1 * (1 - h1 * h1)
        if c1_in is not None:
            c1 = tl.load(c1_in + at, inside, 0.0).to(tl.float32)
            h2 = load_state(h2_in, h2_exponents, r, at, r < rows, inside)
            dalpha -= dz * c1 * h2
            dmu -= dz * c1
            dc1 = -dz * (alpha * h2 + mu)
            tl.store(dc1_out + at, dc1.to(dc1_out.dtype.element_ty), inside)
        tl.store(dx_out + at, dz.to(dx_out.dtype.element_ty), inside)
    own = constant_sums + program * 7 * CHANNELS
    _add(own + 2 * CHANNELS, k, tl.sum(dalpha, 0) * unit)
    _add(own + 3 * CHANNELS, k, tl.sum(dmu, 0) * unit)


@triton.jit
def gate_backward(
    du_in, h2_in, h2_exponents, dh2_in, dh2_exponents, g2_in, dx_in, c1_in, u1, u1_t, table,
    eta_in, unit_in, unit_out, dh2_out, out_exponents, largest, constant_sums, matrix_sums,
    rows, parts, batch, stored, height, width, channels,
    PITCH: tl.constexpr, LAST: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Go back through the product in Eq. 4 and through Eq. 3, and collect the gradient of H2.

    H2 goes into Eq. 9, Eq. 5 and the two here. All are added up before anything is rounded: the
    gradient that goes straight from step to step is rounded once a step, as a state is; that of a
    first state is written as plain numbers.
    """
    k = tl.arange(0, CHANNELS)
    program = tl.program_id(0)
    b1 = _constant(table, 0, k, CHANNELS)
    matrix, matrix_t = _matrix(u1, k, CHANNELS), _matrix(u1_t, k, CHANNELS)
    db1 = tl.zeros((ROWS, CHANNELS), tl.float32)
    du1 = tl.zeros((CHANNELS, CHANNELS), tl.float32)
    most = tl.zeros((ROWS,), tl.int32)
    unit = tl.load(unit_out)
    kept = tl.load(eta_in) * (tl.load(unit_in) / unit)  # Eq. 9, in the units of this step
    alpha = _constant(table, 2, k, CHANNELS)
    for part in range(program, parts, tl.num_programs(0)):
        r = (part * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        at = r[:, None] * PITCH + k[None, :]
        inside = (r < rows)[:, None] & (k < PITCH)[None, :]
        du = tl.load(du_in + at, inside, 0.0).to(tl.float32)
        h2 = load_state(h2_in, h2_exponents, r, at, r < rows, inside)
        h2_rounded = tl.where(inside, h2, 0.0).to(matrix.dtype)  # a barrier, as in `inhibit`
        dh2 = _gradient(
            dh2_in, dh2_exponents, r, k, at, rows, inside,
            batch, stored, height, width, channels, LAST,
        )  # fmt: skip
        g2 = load_gate(g2_in, at, inside)
        dx = tl.load(dx_in + at, inside, 0.0).to(tl.float32)
        c1 = tl.load(c1_in + at, inside, 0.0).to(tl.float32)
        g1 = _sigmoid(product(h2_rounded, matrix, PRECISION) + b1)  # Eq. 3
        dgate = du * h2 * g1 * (1 - g1)
        db1 += dgate
        dgate = dgate.to(matrix.dtype)
        du1 = product(tl.trans(h2_rounded), dgate, PRECISION, du1)
        dh2 = kept * dh2 * (1 - g2) - dx * c1 * alpha + du * g1
        dh2 += product(dgate, matrix_t, PRECISION)
        sizes = row_sizes(dh2)
        most = tl.maximum(most, tl.where(sizes < 0x7F800000, sizes, 0))  # of those that are finite
        store_state(dh2_out, out_exponents, r, at, r < rows, inside, dh2, sizes)
    tl.store(largest + program, tl.max(most).to(tl.float32, bitcast=True))
    _add(constant_sums + program * 7 * CHANNELS, k, tl.sum(db1, 0) * unit)
    _add(matrix_sums + program * CHANNELS * CHANNELS,
         k[:, None] * CHANNELS + k[None, :], du1 * unit)  # fmt: skip
