"""What the benchmarks of the hGRU on a GPU are about, and torch's switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from rich.table import Table
from torch import Tensor, nn

from hgru_vision.circuits import HGRU
from hgru_vision.models import create_model
from hgru_vision.ops import Backend
from hgru_vision.papers.linsley2018 import CANVAS, KERNEL_SIZE, TIMESTEPS

__all__ = ["DEVICE", "WIDE", "drive", "images", "network", "switches", "table", "wide_layer"]

DEVICE = "cuda"
WIDE = 128  # channels of the natural-image layer


def network(backend: Backend) -> Any:
    """Make the hGRU network."""
    made: Any = create_model("hgru", backend=backend).to(DEVICE)
    nn.init.eye_(made.readout.decide.weight)  # it starts at 0, which would stop every gradient
    return made


def wide_layer(backend: Backend) -> nn.Module:
    """Make an hGRU of 128 channels."""
    return HGRU(WIDE, KERNEL_SIZE, TIMESTEPS, backend=backend).to(DEVICE)


def images(batch: int, draw: int = 0) -> Tensor:
    """Give images for the network, a tenth of whose pixels are white."""
    generator = torch.Generator().manual_seed(draw)
    return (torch.rand(batch, 1, CANVAS, CANVAS, generator=generator) < 0.1).float().to(DEVICE)


def drive(batch: int, draw: int = 0) -> Tensor:
    """Give drives for the wide layer."""
    generator = torch.Generator().manual_seed(draw)
    return torch.rand(batch, WIDE, CANVAS, CANVAS, generator=generator).to(DEVICE)


@contextmanager
def switches(*, tf32: bool = True) -> Iterator[None]:
    """Set torch's switches as a careful user sets them, for a while."""
    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    cudnn.allow_tf32, cudnn.benchmark = tf32, True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        cudnn.allow_tf32, cudnn.benchmark = before[1:]


def table(title: str, columns: tuple[str, ...]) -> Table:
    """Make a table whose first column has names, and the others numbers."""
    made = Table(title=title)
    made.add_column("")
    for column in columns:
        made.add_column(column, justify="right")
    return made
