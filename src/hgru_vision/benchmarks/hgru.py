"""The hGRU at the paper's size on a CPU, against the same layer through plain `conv2d`.

The contenders take turns, and each keeps its best time, so that a busy machine treats them alike.
Training has no channels-last form here: oneDNN 3.12 needs 16 s for the gradient of one 15x15
channels-last kernel, against 0.4 s for the NCHW one, so that NCHW is the one to beat.
"""

import time
from collections.abc import Callable, Iterator

import torch
from rich.table import Table
from torch import Tensor

from hgru_vision.benchmarks import WrongResultError
from hgru_vision.circuits import HGRU
from hgru_vision.papers.linsley2018 import CANVAS, CHANNELS

BATCHES = (1, 16)
REPEATS = 2
SIZE = CANVAS


def infer(layer: HGRU, x: Tensor) -> None:
    """Run the layer forward."""
    with torch.no_grad():
        layer(x)


def train(layer: HGRU, x: Tensor) -> None:
    """Run the layer forward and backward."""
    layer.zero_grad()
    out = layer(x)
    assert isinstance(out, Tensor)
    out.square().mean().backward()


def check() -> None:
    """Compare outputs and the gradient of W with those of `conv2d`."""
    x = _drive(1)
    results = []
    for layer in (HGRU(backend="auto"), HGRU(backend="reference")):
        out = layer(x, timesteps=2)
        assert isinstance(out, Tensor)
        results.append((out, *torch.autograd.grad(out.square().sum(), layer.w.pairs)))
    for ours, theirs in zip(*results, strict=True):
        if not torch.allclose(ours, theirs, rtol=1e-3, atol=1e-3):
            worst = (ours - theirs).abs().max()
            raise WrongResultError(f"the spectral hGRU differs from the direct one by {worst:.2g}")


def measure() -> Iterator[Table]:
    """Yield milliseconds an image, and the others' times as multiples of it."""
    threads = torch.get_num_threads()
    table = Table(title=f"hGRU on the CPU, {threads} threads, torch {torch.__version__}")
    for column in ("task", "batch", "spectral, ms an image", "conv2d", "conv2d, channels-last"):
        table.add_column(column, justify="left" if column == "task" else "right")
    for task in (infer, train):
        for batch in BATCHES:
            ours, *others = compare(task, batch)
            ratios = [f"{other / ours:.2f} x" for other in others]
            table.add_row(task.__name__, str(batch), f"{ours:.0f}", *ratios)
    yield table


def compare(task: Callable[[HGRU, Tensor], None], batch: int) -> list[float]:
    """Milliseconds an image: spectral, `conv2d`, and for inference `conv2d` channels-last."""
    fast, plain, x = HGRU(backend="auto"), HGRU(backend="reference"), _drive(batch)
    contenders = [(fast, x), (plain, x)]
    if task is infer:
        contenders.append((plain, x.contiguous(memory_format=torch.channels_last)))
    best = [float("inf")] * len(contenders)
    for _ in range(REPEATS):
        for place, (layer, drive) in enumerate(contenders):
            began = time.perf_counter()
            task(layer, drive)
            best[place] = min(best[place], (time.perf_counter() - began) * 1e3 / batch)
    return best


def _drive(batch: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(batch, CHANNELS, SIZE, SIZE, generator=generator)
