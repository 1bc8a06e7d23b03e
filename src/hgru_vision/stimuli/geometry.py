"""Plane geometry of paddles, by arithmetic that gives the same bits on every machine.

A paddle is a bar of length l and thickness d; its core is the segment of length l through its
middle. The bar lies within d/2 of its core, corners included, so two bars are at least
``distance(cores) - d`` apart: all tests of clearance are made on cores and err on the safe side.

Only +, -, * and / are used (no call of the C library, whose last bit differs between machines).
"""

import math

import numpy as np
from numba import njit

from hgru_vision.stimuli._types import Array
from hgru_vision.stimuli.random import uniform

_HALF_PI_HIGH = 1.5707963267341256  # pi/2 in two parts, so that subtracting keeps every bit
_HALF_PI_LOW = 6.077100506506192e-11
_TAYLOR = tuple(  # coefficients of x**(2n + 1) / x in sin x and of x**2n in cos x, highest first
    ((-1) ** n / math.factorial(2 * n + 1), (-1) ** n / math.factorial(2 * n))
    for n in range(8, -1, -1)
)


@njit(cache=True)
def sine_cosine(angle: float) -> tuple[float, float]:
    """Return sin and cos to about 1e-15, for angles of a few turns."""
    quarter = math.floor(angle * (2.0 / math.pi) + 0.5)
    rest = (angle - quarter * _HALF_PI_HIGH) - quarter * _HALF_PI_LOW
    square = rest * rest
    # Taylor series on [-pi/4, pi/4]; the first term left out is below 1e-16.
    s, c = 0.0, 0.0
    for odd, even in _TAYLOR:
        s = odd + square * s
        c = even + square * c
    s *= rest
    turn = np.int64(quarter) & 3
    if turn == 0:
        return s, c
    if turn == 1:
        return c, -s
    if turn == 2:
        return -s, -c
    return -c, s


@njit(cache=True)
def draw_turn(stream: Array, continuity: float, squared: bool) -> float:
    """Draw the angle between two paddles of a path, density max(cos(c * turn), 0).

    Supp., "Growing a path". The released code uses the square of that density.
    """
    while True:
        angle = math.pi * (uniform(stream) - 0.5)
        _, weight = sine_cosine(angle)
        if squared:
            weight *= weight
        if uniform(stream) < weight:
            return angle / continuity


@njit(cache=True)
def core_distance_squared(
    dx: float, dy: float, ux: float, uy: float, vx: float, vy: float, half: float
) -> float:
    """Square of the distance between two cores.

    The second centre lies at (dx, dy) from the first; (ux, uy) and (vx, vy) are their unit
    directions and ``half`` is half the length of both.
    """
    dot = ux * vx + uy * vy
    along_u = dx * ux + dy * uy
    along_v = dx * vx + dy * vy
    determinant = 1.0 - dot * dot
    # Closest point on the first line, clamped to the segment; then on the second, likewise.
    s = 0.0
    if determinant > 1e-12:
        s = min(max((along_u - dot * along_v) / determinant, -half), half)
    t = min(max(s * dot - along_v, -half), half)
    s = min(max(along_u + t * dot, -half), half)
    ex = dx + t * vx - s * ux
    ey = dy + t * vy - s * uy
    return ex * ex + ey * ey
