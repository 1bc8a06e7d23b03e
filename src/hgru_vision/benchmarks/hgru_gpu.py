"""The hGRU on a GPU: plain PyTorch in its several forms against ours, in one run.

Every contender trains and runs the same network on the same images. Ours is timed as a training
loop with `cuda_graph` runs it, recorded once and replayed, and launch by launch; the others gain 1
to 5 % from recording. Ratios are over `conv2d`, the faster of its two memory orders.
"""

from __future__ import annotations

import functools
import gc
import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from rich.table import Table
from torch import Tensor, nn

from hgru_vision.benchmarks import WrongResultError
from hgru_vision.benchmarks import hgru_gpu_parts as parts
from hgru_vision.benchmarks.hgru_gpu_errors import (
    error_table,
    forget,
    network_outcomes,
    relative_errors,
    wide_outcomes,
)
from hgru_vision.models import create_model
from hgru_vision.models.large_conv import LargeConv2d
from hgru_vision.ops import Backend, dft
from hgru_vision.papers.linsley2018 import CANVAS, CHANNELS, KERNEL_SIZE, TIMESTEPS

BATCHES = (32, 128)
WIDE_BATCH = 8  # of the natural-image layer
STEP_BY_STEP = ("hgru_bn", "hgru_nonnegative", "gru", "gru_2l")  # whose steps are not in one piece
STEP_BY_STEP_BATCH = 32
FEEDFORWARD = ("ff_small_5", "ff_medium_5", "ff_large_5")
FEEDFORWARD_BATCH = 256
REPEATS = 7

# Batch norm takes the scale of the state out again, so that the gradient of eta is a small
# difference of large numbers: 0.03 was measured.
ALLOWED = {"features.eta": 0.1}
ERROR_BATCHES = (4, 32)
WIDE_ERROR_BATCH = 2


class Timing(NamedTuple):
    """Seconds of a training step and of a forward pass, and bytes at the peak of training."""

    train: float
    infer: float
    memory: int


def tables() -> dict[str, Callable[[], Table]]:
    """Name the tables: the hGRU's network, a wide layer, other networks, the errors."""
    named: dict[str, Callable[[], Table]] = {}
    for batch in BATCHES:
        named[f"network-{batch}"] = functools.partial(_network_table, batch)
    named |= {"wide": _wide_table, "circuits": _circuit_table, "feedforward": _feedforward_table}
    for batch in ERROR_BATCHES:
        named[f"errors-{batch}"] = functools.partial(
            error_table, "network", network_outcomes, batch
        )
    named["errors-wide"] = functools.partial(
        error_table, f"layer of {parts.WIDE} channels", wide_outcomes, WIDE_ERROR_BATCH
    )
    return {name: functools.partial(_switched, table) for name, table in named.items()}


def _switched(table: Callable[[], Table]) -> Table:
    with parts.switches():
        return table()


def check() -> None:
    """Compare the last state and the layer's gradients with those of `conv2d` in float64."""
    errors = relative_errors(network_outcomes, "auto", batch=2)
    forget()
    for name, error in errors.items():
        of_layer = name in ("H2", "drive") or name.startswith("features.")
        if of_layer and not error < ALLOWED.get(name, 2e-2):
            raise WrongResultError(
                f"the hGRU on the GPU differs from float64 by {error:.2g} in {name}"
            )


def _network_table(batch: int) -> Table:
    title = f"hGRU network, {CHANNELS} channels, {CANVAS} x {CANVAS}, batch {batch}"
    floor = _floor(batch, CHANNELS, _ceilings())
    return _contest(title, parts.network, parts.images(batch), _label_loss, floor)


def _label_loss(network: nn.Module, images: Tensor) -> Tensor:
    return F.cross_entropy(network(images), torch.arange(len(images), device=images.device) % 2)


def _wide_table() -> Table:
    def loss(layer: nn.Module, drive: Tensor) -> Tensor:
        return layer(drive).square().mean()

    title = f"hGRU layer, {parts.WIDE} channels, {CANVAS} x {CANVAS}, batch {WIDE_BATCH}"
    floor = _floor(WIDE_BATCH, parts.WIDE, _ceilings())
    return _contest(title, parts.wide_layer, parts.drive(WIDE_BATCH), loss, floor, repeats=3)


def _contest(
    title: str,
    make: Callable[[Backend], nn.Module],
    images: Tensor,
    loss: Callable[[nn.Module, Tensor], Tensor],
    floor: float,
    *,
    repeats: int | None = None,
) -> Table:
    """Time every way of computing one thing; `floor` is the least time of a training step."""

    def timing(network: nn.Module, given: Tensor, graph: bool = False) -> Timing:
        return _time(network, lambda n: loss(n, given), given, graph=graph, repeats=repeats)

    last = images.contiguous(memory_format=torch.channels_last)
    plain = min(
        timing(make("reference"), images),
        timing(make("reference").to(memory_format=torch.channels_last), last),  # type: ignore[call-overload]
        key=lambda each: each.train,
    )
    rows = {
        "conv2d": plain,
        "conv2d, compiled": timing(torch.compile(make("reference")), images),  # type: ignore[arg-type]
        "torch.fft": timing(make("fft"), images),
        "ours, launch by launch": timing(make("auto"), images),
        "ours, recorded": timing(make("auto"), images, graph=True),
    }
    table = parts.table(
        f"{title}, {torch.cuda.get_device_name()}, torch {torch.__version__}",
        ("train, images/s", "", "infer, images/s", "", "GiB", "", "of the roofline"),
    )
    for name, each in rows.items():
        share = f"{floor / each.train:.0%}" if name.startswith("ours") else ""
        table.add_row(name, *_cells(each, plain, len(images)), share)
    return table


def _circuit_table() -> Table:
    images = parts.images(STEP_BY_STEP_BATCH)
    table = parts.table(
        f"Circuits that go step by step, batch {STEP_BY_STEP_BATCH}, training images/s",
        ("conv2d", "ours, recorded", "", "ours, compiled and recorded", ""),
    )

    def seconds(network: nn.Module, graph: bool) -> float:
        loss = functools.partial(_label_loss, images=images)
        return _time(network, loss, images, graph=graph, repeats=3).train

    for name in STEP_BY_STEP:
        plain, ours, compiled = (
            create_model(name, backend=backend).to(parts.DEVICE)
            for backend in ("reference", "auto", "auto")
        )
        base = seconds(plain, graph=False)
        cells = [f"{len(images) / base:,.0f}"]
        for network in (ours, torch.compile(compiled)):
            each = seconds(network, graph=True)  # type: ignore[arg-type]
            cells += [f"{len(images) / each:,.0f}", f"{base / each:.2f} x"]
        table.add_row(name, *cells)
    return table


def _feedforward_table() -> Table:
    images = parts.images(FEEDFORWARD_BATCH)
    target = torch.arange(FEEDFORWARD_BATCH, device=parts.DEVICE) % 2
    table = parts.table(
        f"Five layers of large kernels, batch {FEEDFORWARD_BATCH}, training images/s",
        ("conv2d", "conv2d, bfloat16", "ours", "over the faster"),
    )
    ours = LargeConv2d.forward

    def direct(layer: LargeConv2d, x: Tensor) -> Tensor:
        size = layer.weight.shape[-1]
        if size % 2:
            return F.conv2d(x, layer.weight, layer.bias, padding=size // 2)
        before, after = size // 2 - 1, size // 2
        return F.conv2d(F.pad(x, (before, after, before, after)), layer.weight, layer.bias)

    for name in FEEDFORWARD:
        seconds = []
        for convolve, half in ((direct, False), (direct, True), (ours, False)):
            LargeConv2d.forward = convolve  # type: ignore[method-assign, assignment]
            try:
                network = create_model(name).to(parts.DEVICE)

                def loss(n: nn.Module, half: bool = half) -> Tensor:
                    with torch.autocast("cuda", torch.bfloat16, enabled=half):
                        return F.cross_entropy(n(images).float(), target)

                seconds.append(_time(network, loss, images, repeats=3).train)
            finally:
                LargeConv2d.forward = ours  # type: ignore[method-assign]
        rates = [f"{FEEDFORWARD_BATCH / each:,.0f}" for each in seconds]
        table.add_row(name, *rates, f"{min(seconds[:2]) / seconds[2]:.2f} x")
    return table


def _time(
    network: nn.Module,
    loss: Callable[[nn.Module], Tensor],
    images: Tensor,
    *,
    graph: bool = False,
    repeats: int | None = None,
) -> Timing:
    repeats = repeats or REPEATS

    def train() -> None:
        network.zero_grad(set_to_none=True)
        loss(network).backward()

    def infer() -> None:
        with torch.no_grad():
            network(images)

    gc.collect()  # what is left of the contender before would count as this one's
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    train()
    train()
    memory = torch.cuda.max_memory_allocated()
    trained = _seconds(_recorded(train) if graph else train, repeats)
    network.eval()
    inferred = _seconds(_recorded(infer) if graph else infer, repeats)
    return Timing(trained, inferred, memory)


def _seconds(run: Callable[[], object], repeats: int) -> float:
    """Take the median of several runs, after two that count for nothing."""
    times = []
    for number in range(repeats + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        if number >= 2:
            times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def _recorded(run: Callable[[], None]) -> Callable[[], None]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


@functools.cache
def _ceilings() -> tuple[float, float]:
    """Measure bytes a second of a copy, read and written, and operations of a large product."""
    data = torch.rand(2**28, device=parts.DEVICE)
    copied = 2 * data.nbytes / _seconds(lambda: data.clone().resize_(0), 5)
    square = torch.rand(8192, 8192, device=parts.DEVICE).half()
    multiplied = 2 * 8192**3 / _seconds(lambda: (square @ square).resize_(0), 5)
    return copied, multiplied


def _floor(batch: int, channels: int, ceilings: tuple[float, float]) -> float:
    """Seconds of a training step if every kernel of ours were at its ceiling.

    README.md of `ops` counts: at the pixels of a step 9 images forward and 26 back; around a
    convolution, there and back, 4 images and 18 spectra; once a batch, the kernel's spectrum for
    each of these. The matrix products hide behind their own bytes as far as those reach.
    """
    domain = dft.circle(CANVAS, CANVAS, KERNEL_SIZE)
    pitch = -(-channels // 8) * 8  # channels with their padding
    width = batch * pitch
    image = 2 * CANVAS * domain.stored_width * width
    spectrum = 2 * 2 * domain.frequencies * width
    kernel = 2 * 2 * domain.frequencies * channels * pitch
    uses = 2 * TIMESTEPS - 1
    moved = 35 * TIMESTEPS * image + uses * (4 * image + 18 * spectrum + 2 * kernel)
    along_x = 2 * CANVAS * (2 * domain.columns) * domain.stored_width * width
    along_y = 2 * (2 * domain.rows) * (2 * CANVAS) * domain.columns * width
    bandwidth, rate = ceilings
    products = uses * 4 * (along_x + along_y) / rate
    behind = uses * (4 * image + 12 * spectrum) / bandwidth
    return moved / bandwidth + max(0.0, products - behind)


def _cells(each: Timing, plain: Timing, batch: int) -> tuple[str, ...]:
    return (
        f"{batch / each.train:,.0f}",
        f"{plain.train / each.train:.2f} x",
        f"{batch / each.infer:,.0f}",
        f"{plain.infer / each.infer:.2f} x",
        f"{each.memory / 2**30:.2f}",
        f"{each.memory / plain.memory:.2f} x",
    )
