"""The hGRU network at the paper's size, against the same through plain `conv2d`.

On a GPU, where there is one: `hgru_gpu.py`. On a CPU:

The contenders take turns, and each keeps its best time, so that a busy machine treats them alike.
Training has no channels-last form here: oneDNN 3.12 needs 16 s for the gradient of one 15x15
channels-last kernel, against 0.4 s for the NCHW one, so that NCHW is the one to beat.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from rich.table import Table
from torch import Tensor, nn

from hgru_vision.benchmarks import WrongResultError, hgru_gpu
from hgru_vision.models import create_model
from hgru_vision.ops import Backend
from hgru_vision.papers.linsley2018 import CANVAS

BATCHES = (1, 16)
REPEATS = 2
SIZE = CANVAS


def infer(network: nn.Module, images: Tensor) -> None:
    """Run the network forward."""
    with torch.no_grad():
        network(images)


def train(network: nn.Module, images: Tensor) -> None:
    """Run the network forward and backward."""
    network.zero_grad()
    network(images).square().mean().backward()


def check() -> None:
    """Compare logits and the gradients of all parameters with those of `conv2d`."""
    if torch.cuda.is_available():
        return hgru_gpu.check()
    results = []
    for backend in ("auto", "reference"):
        network = make(backend, timesteps=2)
        logits = network(_images(2))
        results.append([logits, *torch.autograd.grad(logits.sum(), list(network.parameters()))])
    for ours, theirs in zip(*results, strict=True):
        worst = (ours - theirs).abs().max()
        if not worst <= 1e-3 * theirs.abs().max() + 1e-6:  # nan is wrong, too
            raise WrongResultError(f"the spectral hGRU differs from the direct one by {worst:.2g}")


def make(backend: Backend, **keywords: Any) -> nn.Module:
    """Make the network with one way of computing the horizontal convolution."""
    network: Any = create_model("hgru", **keywords).eval()
    network.features.backend = backend
    nn.init.eye_(network.readout.decide.weight)  # it starts at 0, which would stop every gradient
    return network


def tables() -> dict[str, Callable[[], Table]]:
    """Name the tables of the GPU, or the only one of the CPU."""
    return hgru_gpu.tables() if torch.cuda.is_available() else {"network": measure}


def measure() -> Table:
    """Give milliseconds an image, and the others' times as multiples of it."""
    threads = torch.get_num_threads()
    table = Table(title=f"hGRU on the CPU, {threads} threads, torch {torch.__version__}")
    for column in ("task", "batch", "spectral, ms an image", "conv2d", "conv2d, channels-last"):
        table.add_column(column, justify="left" if column == "task" else "right")
    for task in (infer, train):
        for batch in BATCHES:
            ours, *others = compare(task, batch)
            ratios = [f"{other / ours:.2f} x" for other in others]
            table.add_row(task.__name__, str(batch), f"{ours:.0f}", *ratios)
    return table


def compare(task: Callable[[nn.Module, Tensor], None], batch: int) -> list[float]:
    """Milliseconds an image: spectral, `conv2d`, and for inference `conv2d` channels-last."""
    images = _images(batch)
    contenders = [(make("auto"), images), (make("reference"), images)]
    if task is infer:
        last = make("reference").to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        contenders.append((last, images.contiguous(memory_format=torch.channels_last)))
    best = [float("inf")] * len(contenders)
    for _ in range(REPEATS):
        for place, (network, given) in enumerate(contenders):
            began = time.perf_counter()
            task(network, given)
            best[place] = min(best[place], (time.perf_counter() - began) * 1e3 / batch)
    return best


def _images(batch: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(batch, 1, SIZE, SIZE, generator=generator)
