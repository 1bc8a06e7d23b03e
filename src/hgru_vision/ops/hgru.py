"""All steps of the hGRU at once, forward and backward, for a GPU.

What `circuits/hgru.py` says line by line, computed by the kernels of `hgru_kernels.py` (what
happens at a pixel) and by the spectral convolution (what happens between pixels). Images stay in
the layout of `dft.py` from the first step to the last. Kept for the way back: the state H2 of each
step, each convolution's result, and the spectra of what was convolved; H1 and the gates are
computed again.

The gradient for the kernel is summed in the frequency domain over all 2 T uses and transformed
once. Storage is float16 (drive, H2 and its gradient: integers of 16 bits with an exponent for each
pixel) or float32; sums are float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from hgru_vision.ops import dft
from hgru_vision.ops import hgru_kernels as pixel
from hgru_vision.ops.hgru_layer import Layer, Parameters, State
from hgru_vision.ops.mix_kernels import from_planes, mix_gradient, unit_of

__all__ = ["Parameters", "run"]

# Programs of a backward kernel. Each has sums of its own, and all read how large the last
# gradients were.
_PROGRAMS = 1024
# Images that one addition to the gradient of the multiplier should have: it is 8 bytes a number to
# be read and written, however little is added.
_IMAGES_A_SUM = 64
_ZEROS = State(None, None)


# What the way back uses up, and in which order, is no business of a compiler.
@torch.compiler.disable(
    reason="the hGRU's steps in one piece are not traced, so that fullgraph=True is not for them; "
    'leave it out, or take the steps one by one: return_trajectory=True or backend="matmul"'
)
def run(
    x: Tensor, state: Tensor | None, parameters: Parameters, steps: int, storage: torch.dtype
) -> Tensor:
    """Run all steps; the last H2, its channels last in memory.

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
    # A function of autograd is told what needs a gradient, and not whether anyone wants one.
    differentiable = (x, *parameters) if state is None else (x, state, *parameters)
    keep = torch.is_grad_enabled() and any(each.requires_grad for each in differentiable)
    with torch.cuda.device_of(x):  # where Triton starts its kernels
        return _Recurrence.apply(x, state, steps, storage, keep, *parameters)


class _Kept(NamedTuple):
    """What the way back needs of the way there."""

    layer: Layer
    drive: State
    first: list[tuple[State, Tensor | None]]  # H2 before each step, and C1
    second: Tensor  # C2 of each step
    spectra: Tensor  # of what was convolved, and room for one more
    skipped: int  # uses that were not convolved: the first, if the state began at zero


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        state: Tensor | None,
        steps: int,
        storage: torch.dtype,
        keep: bool,
        *given: Tensor,
    ) -> Tensor:
        layer = Layer(x.shape, Parameters(*given), storage, x.device)
        skipped = int(state is None)
        drive = layer.keep(x)
        h2 = _ZEROS if state is None else layer.keep(state)
        first: list[tuple[State, Tensor | None]] = []
        second = layer.planes(steps if keep else 1)
        spectra = layer.spectra(2 * steps - skipped + 1 if keep else 1)
        gated, h1 = layer.planes(), layer.planes()
        if state is not None:
            layer.gate(h2, gated)
        out = x.new_empty(len(x), *x.shape[2:], x.shape[1])
        for t in range(steps):
            c1, c2 = None, second[t if keep else 0]
            if 2 * t >= skipped:  # zero convolves to zero
                spectrum = spectra[2 * t - skipped if keep else 0]
                c1 = layer.convolve(gated, spectrum, layer.planes(), adjoint=False)
            layer.inhibit(drive, c1, h2, h1)
            layer.convolve(h1, spectra[2 * t + 1 - skipped if keep else 0], c2, adjoint=False)
            if keep:
                first.append((h2, c1))
            if t + 1 == steps:
                layer.excite(c2, h1, h2, t, out, gated)
            else:
                new = layer.state()
                layer.excite(c2, h1, h2, t, new, gated)
                h2 = new
        if keep:
            ctx.save_for_backward(*given)  # so that torch notices a change in place
            ctx.like = torch.empty_like(x, device="meta")
            ctx.kept = _Kept(layer, drive, first, second, spectra, skipped)
        return out.movedim(3, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        eta = Parameters(*ctx.saved_tensors).eta
        if ctx.kept is None:
            raise RuntimeError(
                "the hGRU's backward pass uses up what the forward pass kept and can run only "
                'once; for more, run the forward pass again or choose backend="fft"'
            )
        way_back = _WayBack(ctx.kept, gradient)
        ctx.kept = None
        for t in reversed(range(way_back.steps)):
            way_back.step(t)
        to_drive, to_state = way_back.images(ctx.like)
        return (to_drive, to_state, None, None, None, *way_back.parameters(eta))


class _WayBack:
    """The backward pass: the gradient of H2, and the sums for the parameters so far.

    Where two arguments of a launch are one tensor, the kernel writes what it has read there.
    """

    def __init__(self, kept: _Kept, gradient: Tensor) -> None:
        self.kept, self.layer = kept, kept.layer
        layer, self.steps = kept.layer, len(kept.first)
        self.programs = min(layer.parts, _PROGRAMS)
        wide = layer.wide
        self.constants = self._zeros(self.programs, len(pixel.CONSTANTS), wide)
        self.u1 = self._zeros(self.programs, wide, wide)
        self.u2 = self._zeros(self.programs, wide, wide)
        self.eta = self._zeros(self.steps, self.programs, wide)
        # The kernel of a step scales its gradients anew and leaves here what a stored 1 is worth.
        self.units = self._zeros(self.steps + 1)
        self.units[-1:].fill_(1)
        self.largest = self._zeros(_PROGRAMS)
        self.largest[:1] = unit_of(gradient)
        gradient = gradient.movedim(1, 3).contiguous()
        self.last = State(gradient, gradient)  # as plain numbers, (B, H, W, K)
        self.dh2 = layer.state()
        # Of the first state, if there was one: as plain numbers, to be handed out.
        self.first = None if kept.skipped else layer.planes()
        self.dc, self.h1, self.g2 = layer.planes(), layer.planes(), layer.finer()
        self.u1_t, self.u2_t = layer.u1.T.contiguous(), layer.u2.T.contiguous()
        self.multiplier: Tensor | None = None  # made when all else is
        self._group(end=len(kept.spectra) - 1)

    def step(self, t: int) -> None:
        """Go back from H2[t + 1] to H2[t]."""
        kept, layer, units = self.kept, self.layer, self.units[t:]
        dc, h1, g2 = self.dc, self.h1, self.g2
        c2 = kept.second[t]
        h2, c1 = kept.first.pop()
        last = t + 1 == self.steps
        given = self.last if last else self.dh2
        rows = max(16, layer.block_rows // 4)  # sums over many iterations take many registers
        parts = layer.rows, triton.cdiv(layer.rows, rows)
        few = {
            **layer.blocks(), "ROWS": rows, "PRECISION": layer.exact, "LAST": last,
            "num_warps": min(8, max(1, layer.wide**2 // 1024)),
        }  # fmt: skip
        layer.inhibit(kept.drive, c1, h2, h1, g2=g2)
        # C2[t] has served then: the gradient of H1 takes its place, and that of the drive in turn.
        pixel.excite_backward[(self.programs,)](
            *given, h1, g2, c2, *h2, self.u2_t, layer.constants, layer.eta(t), self.largest,
            layer.room, units[1:], units, dc, c2, self.constants, self.u2, self.eta[t],
            *parts, *layer.image, **few, PROGRAMS=_PROGRAMS, FOLD=2 if few["num_warps"] == 1 else 1,
        )  # fmt: skip
        self._convolve(2 * t + 1)
        pixel.inhibit_backward[(self.programs,)](
            c2, dc, h1, c1, *h2, layer.constants, units,
            dc, c2, self.constants, layer.rows, layer.parts, **layer.blocks(),
        )  # fmt: skip
        if 2 * t < kept.skipped:
            return
        self._convolve(2 * t)
        new = self.dh2 if t or self.first is None else State(self.first, self.first)
        pixel.gate_backward[(self.programs,)](
            dc, *h2, *given, g2, c2, c1, layer.u1, self.u1_t, layer.constants, layer.eta(t),
            units[1:], units, *new, self.largest, self.constants, self.u1, *parts, *layer.image,
            **few, num_stages=1,
        )  # fmt: skip

    def images(self, like: Tensor) -> tuple[Tensor, Tensor | None]:
        """Give the gradients of the drive and, if there was one, of the first state."""

        def collect(planes: Tensor) -> Tensor:
            out = torch.empty_like(like, device=planes.device)
            return from_planes(planes, self.units, out)

        to_state = None if self.first is None else collect(self.first.unsqueeze(0))
        return collect(self.kept.second), to_state

    def parameters(self, eta: Tensor) -> Parameters:
        """Give the gradients of the parameters."""
        layer, channels = self.layer, self.layer.channels
        assert self.multiplier is not None
        weight = dft.multiplier_gradient(self.multiplier, layer.domain, layer.kernel_size)
        u1, u2 = (
            sums.sum(0)[:channels, :channels].T[..., None, None] for sums in (self.u1, self.u2)
        )
        rows = dict(zip(pixel.CONSTANTS, self.constants.sum(0)[:, :channels], strict=True))
        b1, b2 = rows.pop("b1"), rows.pop("b2")
        each = {name: row.view(channels, 1, 1) for name, row in rows.items()}
        per_step, own = self.eta.sum((1, 2)), min(len(eta), self.steps)
        to_eta = torch.zeros_like(eta)
        to_eta[:own] = per_step[:own]
        to_eta[-1:] += per_step[own:].sum()  # steps beyond the layer's use its last
        return Parameters(weight=weight[:channels], u1=u1, b1=b1, u2=u2, b2=b2, eta=to_eta, **each)

    def _group(self, end: int) -> None:
        """Let the uses before `end` be the next whose kernel gradients are added together.

        Their gradients' spectra take the place of the spectra that have served: those of the uses
        from `end` on, of which the first has none but the room for one more.
        """
        free = len(self.kept.spectra) - end
        self.end = end
        self.size = min(end, free, max(2, _IMAGES_A_SUM // self.layer.batch))

    def _convolve(self, use: int) -> None:
        """Take `dc` back through a convolution, in place, and add to the kernel's gradient."""
        kept, layer = self.kept, self.layer
        place = use - kept.skipped
        spectrum = kept.spectra[place + self.size]
        layer.convolve(self.dc, spectrum, self.dc, adjoint=True)
        if place > self.end - self.size:
            return  # more will be added with it
        add = self.multiplier is not None
        if self.multiplier is None:
            size = layer.kernel.shape
            self.multiplier = torch.empty(size, dtype=torch.float32, device=layer.device)
        forward, backward = kept.spectra[place : place + 2 * self.size].split(self.size)
        mix_gradient(forward, backward, self.units, self.multiplier, first=use, add=add)
        self._group(end=place)

    def _zeros(self, *size: int) -> Tensor:
        return torch.zeros(size, dtype=torch.float32, device=self.layer.device)
