"""How far each way of computing the hGRU on a GPU is from float64, forward and every gradient."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from rich.table import Table
from torch import Tensor, nn

from hgru_vision.benchmarks import hgru_gpu_parts as parts
from hgru_vision.ops import Backend

__all__ = ["Case", "error_table", "forget", "network_outcomes", "relative_errors", "wide_outcomes"]

# Images at a time of which cuDNN convolves TF32; of 32 it takes float32 on the way there.
TF32_IMAGES = 4
DRAWS = 8  # of images: the error of a small difference of large sums is a matter of luck


class Case(NamedTuple):
    """What is computed, and how.

    The readout takes the largest number of each map, at `places` (B, 2, 1) if they are given:
    which of two that differ in their last digits is the larger is no matter of accuracy, and
    where it changes, so do all gradients.
    """

    backend: Backend
    batch: int
    draw: int
    at_a_time: int
    dtype: torch.dtype = torch.float32
    places: Tensor | None = None


Outcomes = Callable[[Case], tuple[dict[str, Tensor], Tensor | None]]
"""Tensors by name, and where the maxima of the readout's maps lie."""


def error_table(subject: str, outcomes: Outcomes, batch: int) -> Table:
    """Tell the relative errors of each way of computing.

    Ratios of TF32 are over `conv2d` on a few images at a time, as which cuDNN does take TF32.

    Parameters
    ----------
    subject, outcomes
        Of what: `network_outcomes` or `wide_outcomes`, and its name for people.
    batch
        Images at a time.
    """

    def errors(backend: Backend, at_a_time: int | None = None) -> dict[str, float]:
        return relative_errors(outcomes, backend, batch, at_a_time)

    whole, few = errors("reference"), errors("reference", TF32_IMAGES)
    ours, wide = errors("gemm"), errors("gemm32")
    with parts.switches(tf32=False):
        plain32, ours32 = errors("reference"), errors("gemm32")
    forget()
    tf32 = "conv2d, TF32", f"{TF32_IMAGES} at a time", "gemm", "", "gemm32, TF32", ""
    table = parts.table(
        f"Relative error against float64, {subject}, batch {batch}, {DRAWS} draws",
        (*tf32, "conv2d, float32", "gemm32", ""),
    )
    for name in whole:
        cells = [f"{whole[name]:.1e}", f"{few[name]:.1e}"]
        for found, base in ((ours, few), (wide, few)):
            cells += [f"{found[name]:.1e}", f"{found[name] / base[name]:.2f} x"]
        cells += [f"{plain32[name]:.1e}", f"{ours32[name]:.1e}"]
        table.add_row(name, *cells, f"{ours32[name] / plain32[name]:.2f} x")
    return table


def relative_errors(
    outcomes: Outcomes, backend: Backend, batch: int, at_a_time: int | None = None
) -> dict[str, float]:
    """Give the relative error of each outcome, the root of its mean square over several draws."""
    squares: dict[str, list[float]] = {}
    for draw in range(DRAWS):
        exact, places = _exact(outcomes, batch, draw)
        found, _ = outcomes(Case(backend, batch, draw, at_a_time or batch, places=places))
        for name, got in found.items():
            error = (got.double() - exact[name]).norm() / exact[name].norm()
            squares.setdefault(name, []).append(float(error) ** 2)
    return {name: math.sqrt(statistics.mean(each)) for name, each in squares.items()}


@functools.cache
def _exact(outcomes: Outcomes, batch: int, draw: int) -> tuple[dict[str, Tensor], Tensor | None]:
    # By `fft`: cuDNN's convolution of float64 takes a hundred times as long.
    return outcomes(Case("fft", batch, draw, batch, torch.float64))


def forget() -> None:
    """Let go of the results in float64, which would count as memory of what is measured next."""
    _exact.cache_clear()


def network_outcomes(case: Case) -> tuple[dict[str, Tensor], Tensor]:
    """Logits, last state, gradients of the drive and of all parameters; and where maxima lie."""
    network = parts.network(case.backend).to(case.dtype)
    drive = network.input(parts.images(case.batch, case.draw).to(case.dtype))
    state = torch.cat([network.features(each) for each in drive.split(case.at_a_time)])
    readout = network.readout
    maps = readout.normalise(readout.maps(state)).flatten(2)
    places = maps.argmax(2, keepdim=True) if case.places is None else case.places
    logits = readout.decide(maps.gather(2, places).squeeze(2))
    loss = F.cross_entropy(logits, torch.arange(case.batch, device=parts.DEVICE) % 2)
    found = _with_gradients(network, drive, state, loss)
    return {"logits": logits.detach(), **found}, places


def wide_outcomes(case: Case) -> tuple[dict[str, Tensor], None]:
    """Last state of the wide layer, gradients of its drive and of all parameters."""
    layer = parts.wide_layer(case.backend).to(case.dtype)
    drive = parts.drive(case.batch, case.draw).to(case.dtype).requires_grad_()
    state = torch.cat([layer(each) for each in drive.split(case.at_a_time)])
    return _with_gradients(layer, drive, state, state.square().mean()), None


def _with_gradients(
    network: nn.Module, drive: Tensor, state: Tensor, loss: Tensor
) -> dict[str, Tensor]:
    named = {"drive": drive, **dict(network.named_parameters())}
    gradients = torch.autograd.grad(loss, list(named.values()))
    return {"H2": state.detach(), **dict(zip(named, gradients, strict=True))}
