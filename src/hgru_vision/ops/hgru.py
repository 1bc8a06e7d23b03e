"""All steps of the hGRU at once, forward and backward, for a GPU.

What `circuits/hgru.py` says line by line, computed by the kernels of `hgru_kernels.py` (what happens
at a pixel) and by the spectral convolution (what happens between pixels). Images stay in the layout
of `dft.py` from the first step to the last. Kept for the way back: the state H2 of each step, each
convolution's result, and the spectra of what was convolved; the rest is computed again.

The convolution's gradient for the kernel is summed in the frequency domain over all 2 T uses and
transformed once. Storage is float16 or float32; sums are float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgru_vision.ops import dft
from hgru_vision.ops import hgru_kernels as pixel
from hgru_vision.ops.dispatch import MOST_CHANNELS
from hgru_vision.ops.mix_kernels import (
    block,
    from_planes,
    mix,
    mix_gradient,
    pitch_of,
    precision,
    to_planes,
)

__all__ = ["Parameters", "run"]

_PROGRAMS = 1024
# Images that one gradient of the multiplier should sum over: it is 8 bytes a number to be read and
# written, and that pays only when enough is added at a time.
_IMAGES_A_SUM = 128


class Parameters(NamedTuple):
    """The parameters of an hGRU, as `circuits.HGRU` holds them."""

    weight: Tensor  # (K, K, S, S)
    u1: Tensor  # (K, K, 1, 1)
    b1: Tensor  # (K,)
    u2: Tensor
    b2: Tensor
    alpha: Tensor  # (K, 1, 1)
    mu: Tensor
    kappa: Tensor
    beta: Tensor
    omega: Tensor
    eta: Tensor  # (T,)


def run(
    x: Tensor, state: Tensor | None, parameters: Parameters, steps: int, storage: torch.dtype
) -> Tensor:
    """Run all steps; the last H2.

    Parameters
    ----------
    x
        Drive.
    state
        H2[0]; zero if not given, which saves the first convolution.
    parameters
        Of the layer. Beyond its length, eta goes on with its last value.
    steps
        T.
    storage
        torch.float16 or torch.float32.

    Shape
    -----
    x, state, output : (B, K, H, W)
    """
    return _Recurrence.apply(x, state, steps, storage, *parameters)


class _Layout(NamedTuple):
    """Sizes that every kernel needs."""

    rows: int
    pitch: int
    channels: int  # a power of two
    block_rows: int
    domain: dft.Circle

    @property
    def parts(self) -> int:
        return triton.cdiv(self.rows, self.block_rows)


class _Tables(NamedTuple):
    """Parameters in the form that the kernels read."""

    constants: Tensor  # (7, channels)
    u1: Tensor  # (channels in, channels out)
    u2: Tensor
    kernel: Tensor  # (R, 2, C, K, pitch), the multiplier of the convolution


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, state: Tensor | None, steps: int, storage: torch.dtype, *given: Tensor
    ) -> Tensor:
        parameters = Parameters(*given)
        batch, channels, height, width = x.shape
        pitch = pitch_of(channels)
        wide = block(channels, MOST_CHANNELS)
        domain = dft.circle(height, width, parameters.weight.shape[-1])
        layout = _Layout(height * domain.stored_width * batch, pitch, wide, 2048 // wide, domain)
        tables = _tabulate(parameters, layout, storage)
        keep = any(ctx.needs_input_grad)

        def planes() -> Tensor:
            size = height, domain.stored_width, batch, pitch
            return torch.empty(size, dtype=storage, device=x.device)

        drive = to_planes(x, planes())
        h2 = planes().zero_() if state is None else to_planes(state, planes())
        states, second = [h2], []
        first = torch.empty(steps if keep else 1, *h2.shape, dtype=storage, device=x.device)
        shape = domain.rows, 2, domain.columns, batch, pitch
        skipped = int(state is None)  # a state of zero convolves to zero
        uses = 2 * steps - skipped if keep else 1
        spectra = torch.empty(uses, *shape, dtype=storage, device=x.device)
        mixed = torch.empty(shape, dtype=storage, device=x.device)

        def convolve(image: Tensor, use: int, out: Tensor) -> Tensor:
            spectrum = dft.analyse(image, domain, out=spectra[use - skipped if keep else 0])
            return dft.synthesise(mix(spectrum, tables.kernel, mixed), domain, out=out)

        blocks = {"PITCH": pitch, "ROWS": layout.block_rows, "CHANNELS": wide}
        exact = precision(storage)
        grid = (layout.parts,)
        gated, h1 = planes(), planes()
        if state is not None:
            pixel.gate[grid](h2, tables.u1, tables.constants, gated, layout.rows,
                             **blocks, PRECISION=exact)  # fmt: skip
        for t in range(steps):
            c1 = first[t if keep else 0]
            c1 = c1.zero_() if 2 * t < skipped else convolve(gated, 2 * t, c1)
            pixel.inhibit[grid](drive, c1, h2, tables.u2, tables.constants, h1, h1, layout.rows,
                                **blocks, GATE=False, PRECISION=exact)  # fmt: skip
            c2 = convolve(h1, 2 * t + 1, planes())
            h2_new = planes()
            eta = parameters.eta[min(t, len(parameters.eta) - 1) :]
            pixel.excite[grid](c2, h1, h2, tables.u1, tables.u2, tables.constants, eta, h2_new,
                               gated, layout.rows, **blocks, NEXT=t + 1 < steps,
                               PRECISION=exact)  # fmt: skip
            h2 = h2_new
            if keep:
                states.append(h2)
                second.append(c2)
        if keep:
            ctx.save_for_backward(*given)
            ctx.like = torch.empty_like(x, device="meta")
            ctx.kept = drive, states, first, second, spectra, tables
            ctx.layout, ctx.steps, ctx.skipped = layout, steps, skipped
        # Channels last: the readout's product over channels needs no copy then.
        out = torch.empty_like(x, memory_format=torch.channels_last)
        return from_planes(h2.unsqueeze(0), torch.ones(1, device=x.device), out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        parameters = Parameters(*ctx.saved_tensors)
        if ctx.kept is None:
            raise RuntimeError(
                "the hGRU's backward pass reuses what the forward pass kept and can run only once; "
                'for more, run the forward pass again or choose backend="fft"'
            )
        drive, states, first, second, spectra, tables = ctx.kept
        ctx.kept = None
        layout, steps = ctx.layout, ctx.steps
        domain, wide = layout.domain, layout.channels
        storage, device, like = spectra.dtype, spectra.device, ctx.like
        programs = min(layout.parts, _PROGRAMS)

        def floats(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float32, device=device)

        constant_sums = floats(programs, len(pixel.CONSTANTS), wide)
        u1_sums, u2_sums = floats(programs, wide, wide), floats(programs, wide, wide)
        eta_sums = floats(steps, programs, wide)
        largest = floats(_PROGRAMS)
        units = floats(steps + 1)
        # Into float16 with the largest at 1; every step scales anew.
        units[steps] = torch.linalg.vector_norm(gradient, float("inf")).clamp_(min=1e-30)
        largest[:1].fill_(1)
        dh2 = to_planes(gradient, torch.empty_like(states.pop()), 1 / units[steps])
        dc, h1, dh1 = (torch.empty_like(dh2) for _ in range(3))
        kernel_gradient: Tensor | None = None  # made when the first steps have been let go
        stack = min(len(spectra), max(1, _IMAGES_A_SUM // len(like)))
        spectral = torch.empty(stack, *spectra.shape[1:], dtype=storage, device=device)
        mixed = torch.empty(spectra.shape[1:], dtype=storage, device=device)

        def convolve_back(image: Tensor, use: int) -> Tensor:
            nonlocal kernel_gradient
            place = use - ctx.skipped
            spectrum = dft.analyse(image, domain, out=spectral[place % stack])
            dft.synthesise(mix(spectrum, tables.kernel, mixed, adjoint=True), domain, out=image)
            if place % stack == 0:  # what is in the stack goes to the gradient of the multiplier
                end, add = min(place + stack, len(spectra)), kernel_gradient is not None
                if kernel_gradient is None:
                    kernel_gradient = tables.kernel.new_empty(
                        tables.kernel.shape, dtype=torch.float32
                    )
                mix_gradient(
                    spectra[place:end], spectral[: end - place], units, kernel_gradient,
                    first=use, add=add,
                )  # fmt: skip
            return image

        size = layout.rows, layout.parts
        blocks = {"PITCH": layout.pitch, "ROWS": layout.block_rows, "CHANNELS": wide}
        exact = precision(storage)
        grid = (programs,)
        few = max(16, layout.block_rows // 4)  # rows: the many sums take the registers
        u1_t, u2_t = tables.u1.T.contiguous(), tables.u2.T.contiguous()
        for t in reversed(range(steps)):
            h2, c1, c2 = states.pop(), first[t], second.pop()
            eta = parameters.eta[min(t, len(parameters.eta) - 1) :]
            pixel.inhibit[(layout.parts,)](
                drive, c1, h2, tables.u2, tables.constants, h1, dc, layout.rows,
                **blocks, GATE=True, PRECISION=exact,
            )  # fmt: skip
            # Where two arguments are one tensor, a kernel writes what it has read at that place.
            pixel.excite_backward[grid](
                dh2, h1, dc, c2, h2, u2_t, tables.constants, eta, largest,
                units[t + 1 :], units[t:], dc, dh1, dh2, constant_sums, u2_sums, eta_sums[t],
                layout.rows, triton.cdiv(layout.rows, few), PITCH=layout.pitch, ROWS=few,
                CHANNELS=wide, PRECISION=exact, PROGRAMS=_PROGRAMS, num_warps=1,
            )  # fmt: skip
            dc = convolve_back(dc, 2 * t + 1)
            # C1[t] has served: what the step adds to the drive's gradient takes its place.
            pixel.inhibit_backward[grid](
                dh1, dc, h1, c1, h2, dh2, tables.constants, units[t:],
                dc, dh2, c1, constant_sums, *size, **blocks,
            )  # fmt: skip
            if 2 * t < ctx.skipped:
                break
            dc = convolve_back(dc, 2 * t)
            pixel.gate_backward[grid](
                dc, h2, dh2, tables.u1, u1_t, tables.constants, units[t:],
                dh2, largest, constant_sums, u1_sums, *size, **blocks, PRECISION=exact,
            )  # fmt: skip
        channels = like.shape[1]
        constants = constant_sums.sum(0)[:, :channels]
        gates = [sums.sum(0)[:channels, :channels].T[..., None, None] for sums in (u1_sums, u2_sums)]
        b1, b2, *others = constants
        alpha, mu, kappa, beta, omega = (each.view(channels, 1, 1) for each in others)
        per_step = eta_sums.sum((1, 2))
        eta = torch.zeros_like(parameters.eta)
        trained = min(len(eta), steps)
        eta[:trained] = per_step[:trained]
        eta[-1] += per_step[trained:].sum()
        weight = dft.multiplier_gradient(kernel_gradient, domain, parameters.weight.shape[-1])
        to_state = None
        if not ctx.skipped:
            to_state = from_planes(dh2.unsqueeze(0), units, torch.empty_like(like, device=device))
        to_drive = from_planes(first, units, torch.empty_like(like, device=device))
        return (to_drive, to_state, None, None, weight[:channels], gates[0], b1, gates[1], b2,
                alpha, mu, kappa, beta, omega, eta)  # fmt: skip


def _tabulate(parameters: Parameters, layout: _Layout, storage: torch.dtype) -> _Tables:
    """Pad the parameters to the kernels' widths."""
    channels = len(parameters.b1)
    beyond = layout.channels - channels
    rows = [getattr(parameters, name).reshape(-1) for name in pixel.CONSTANTS]
    constants = F.pad(torch.stack(rows).float(), (0, beyond))
    gates = [
        F.pad(u[:, :, 0, 0].T, (0, beyond, 0, beyond)).to(storage).contiguous()
        for u in (parameters.u1, parameters.u2)
    ]
    weight = F.pad(parameters.weight.float(), (0, 0, 0, 0, 0, 0, 0, layout.pitch - channels))
    kernel = dft.multiplier(weight, layout.domain).to(storage).contiguous()
    return _Tables(constants, *gates, kernel)
