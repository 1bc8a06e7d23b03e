"""The hGRU on a GPU: plain PyTorch in its several forms against ours, in one run.

Every contender trains and runs the same network on the same images. Ours is timed as a training
loop with `cuda_graph` runs it, recorded once and replayed, and launch by launch; the others gain 1
to 5 % from recording. Ratios are over `conv2d`, the faster of its two memory orders.
"""

from __future__ import annotations

import functools
import gc
import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from rich.table import Table
from torch import Tensor, nn

from hgru_vision.benchmarks import WrongResultError
from hgru_vision.circuits import HGRU
from hgru_vision.models import create_model
from hgru_vision.models.stages import LargeConv2d
from hgru_vision.ops import Backend, dft
from hgru_vision.papers.linsley2018 import CANVAS, CHANNELS, KERNEL_SIZE, TIMESTEPS

BATCHES = (32, 128)
WIDE, WIDE_BATCH = 128, 8  # channels of the natural-image layer
FEEDFORWARD = ("ff_small_5", "ff_medium_5", "ff_large_5")
FEEDFORWARD_BATCH = 256
REPEATS = 7

# Batch norm takes the scale of the state out again, so that the gradient of eta is a small
# difference of large numbers: 0.03 was measured.
ALLOWED = {"features.eta": 0.1}
ERROR_BATCHES = (4, 32)
# Images at a time of which cuDNN convolves TF32; of 32 it takes float32 on the way there.
TF32_IMAGES = 4
ERROR_DRAWS = 8  # of images: the error of a small difference of large sums is a matter of luck


class Timing(NamedTuple):
    """Seconds of a training step and of a forward pass, and bytes at the peak of training."""

    train: float
    infer: float
    memory: int


def tables() -> dict[str, Callable[[], Table]]:
    """Name the tables: the network, the wide layer, the large-kernel networks, the errors."""
    named: dict[str, Callable[[], Table]] = {}
    for batch in BATCHES:
        named[f"network-{batch}"] = functools.partial(_network_table, batch)
    named |= {"wide": _wide_table, "feedforward": _feedforward_table}
    for batch in ERROR_BATCHES:
        named[f"errors-{batch}"] = functools.partial(_error_table, batch)
    return {name: functools.partial(_switched, table) for name, table in named.items()}


def _switched(table: Callable[[], Table]) -> Table:
    with _switches():
        return table()


def check() -> None:
    """Compare the last state and the layer's gradients with those of `conv2d` in float64."""
    errors = _errors("auto", batch=2)
    _exact.cache_clear()  # it would count as memory of what is measured next
    for name, error in errors.items():
        of_layer = name in ("H2", "drive") or name.startswith("features.")
        if of_layer and not error < ALLOWED.get(name, 2e-2):
            raise WrongResultError(
                f"the hGRU on the GPU differs from float64 by {error:.2g} in {name}"
            )


def _network_table(batch: int) -> Table:
    images = _images(batch)
    target = torch.arange(batch, device="cuda") % 2

    def timing(network: nn.Module, given: Tensor, graph: bool = False) -> Timing:
        def loss(n: nn.Module) -> Tensor:
            return F.cross_entropy(n(given), target)

        return _time(network, loss, given, graph=graph)

    last = images.contiguous(memory_format=torch.channels_last)
    plain = min(
        timing(_network("reference"), images),
        timing(_network("reference").to(memory_format=torch.channels_last), last),  # type: ignore[call-overload]
        key=lambda each: each.train,
    )
    rows = {
        "conv2d": plain,
        "conv2d, compiled": timing(torch.compile(_network("reference")), images),  # type: ignore[arg-type]
        "torch.fft": timing(_network("fft"), images),
        "ours, launch by launch": timing(_network("auto"), images),
        "ours, recorded": timing(_network("auto"), images, graph=True),
    }
    table = _table(
        f"hGRU network, {CHANNELS} channels, {CANVAS} x {CANVAS}, batch {batch}, "
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}",
        ("train, images/s", "", "infer, images/s", "", "GiB", "", "of the roofline"),
    )
    floor = _floor(batch, _ceilings())
    for name, each in rows.items():
        share = f"{floor / each.train:.0%}" if name.startswith("ours") else ""
        table.add_row(name, *_cells(each, plain, batch), share)
    return table


def _wide_table() -> Table:
    x = torch.rand(WIDE_BATCH, WIDE, CANVAS, CANVAS, device="cuda")
    timings = {}
    for name, backend in (("conv2d", "reference"), ("ours", "auto")):
        layer = HGRU(WIDE, KERNEL_SIZE, TIMESTEPS, backend=backend).cuda()  # type: ignore[arg-type]
        timings[name] = _time(layer, lambda n: n(x).square().mean(), x, repeats=3)
    table = _table(
        f"hGRU layer, {WIDE} channels, batch {WIDE_BATCH}",
        ("train, images/s", "", "infer, images/s", "", "GiB", ""),
    )
    for name, each in timings.items():
        table.add_row(name, *_cells(each, timings["conv2d"], WIDE_BATCH))
    return table


def _feedforward_table() -> Table:
    images = _images(FEEDFORWARD_BATCH)
    target = torch.arange(FEEDFORWARD_BATCH, device="cuda") % 2
    table = _table(
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
                network = create_model(name).cuda()

                def loss(n: nn.Module, half: bool = half) -> Tensor:
                    with torch.autocast("cuda", torch.bfloat16, enabled=half):
                        return F.cross_entropy(n(images).float(), target)

                seconds.append(_time(network, loss, images, repeats=3).train)
            finally:
                LargeConv2d.forward = ours  # type: ignore[method-assign]
        rates = [f"{FEEDFORWARD_BATCH / each:,.0f}" for each in seconds]
        table.add_row(name, *rates, f"{min(seconds[:2]) / seconds[2]:.2f} x")
    return table


def _error_table(batch: int) -> Table:
    """Relative errors against float64, of logits, last state and every gradient of the network.

    Ratios of TF32 are over `conv2d` on a few images at a time, as which cuDNN does take TF32.
    """
    whole, few = _errors("reference", batch), _errors("reference", batch, at_a_time=TF32_IMAGES)
    ours, wide = _errors("gemm", batch), _errors("gemm32", batch)
    with _switches(tf32=False):
        plain32, ours32 = _errors("reference", batch), _errors("gemm32", batch)
    _exact.cache_clear()
    tf32 = "conv2d, TF32", f"{TF32_IMAGES} at a time", "gemm", "", "gemm32, TF32", ""
    table = _table(
        f"Relative error against float64, batch {batch}, {ERROR_DRAWS} draws",
        (*tf32, "conv2d, float32", "gemm32", ""),
    )
    for name in whole:
        cells = [f"{whole[name]:.1e}", f"{few[name]:.1e}"]
        for errors, base in ((ours, few), (wide, few)):
            cells += [f"{errors[name]:.1e}", f"{errors[name] / base[name]:.2f} x"]
        cells += [f"{plain32[name]:.1e}", f"{ours32[name]:.1e}"]
        table.add_row(name, *cells, f"{ours32[name] / plain32[name]:.2f} x")
    return table


def _errors(backend: Backend, batch: int, at_a_time: int | None = None) -> dict[str, float]:
    """Give the relative error of each outcome, the root of its mean square over several draws."""
    squares: dict[str, list[float]] = {}
    for draw in range(ERROR_DRAWS):
        exact, places = _exact(batch, draw)
        images = _images(batch, draw)
        found, _ = _outcomes(_network(backend), images, places, at_a_time or batch)
        for name, got in found.items():
            error = (got.double() - exact[name]).norm() / exact[name].norm()
            squares.setdefault(name, []).append(float(error) ** 2)
    return {name: math.sqrt(statistics.mean(each)) for name, each in squares.items()}


@functools.cache
def _exact(batch: int, draw: int) -> tuple[dict[str, Tensor], Tensor]:
    # By `fft`: cuDNN's convolution of float64 takes a hundred times as long.
    return _outcomes(_network("fft").double(), _images(batch, draw).double(), None, batch)


def _outcomes(
    network: Any, images: Tensor, places: Tensor | None, at_a_time: int
) -> tuple[dict[str, Tensor], Tensor]:
    """Logits, last state, gradients of the drive and of all parameters; and where maxima lie.

    The readout takes the largest number of each map, at `places` (B, 2, 1) if they are given:
    which of two that differ in their last digits is the larger is no matter of accuracy, and
    where it changes, so do all gradients.
    """
    drive = network.input(images)
    state = torch.cat([network.features(each) for each in drive.split(at_a_time)])
    readout = network.readout
    maps = readout.normalise(readout.maps(state)).flatten(2)
    places = maps.argmax(2, keepdim=True) if places is None else places
    logits = readout.decide(maps.gather(2, places).squeeze(2))
    loss = F.cross_entropy(logits, torch.arange(len(images), device="cuda") % 2)
    named = {"drive": drive, **dict(network.named_parameters())}
    gradients = torch.autograd.grad(loss, list(named.values()))
    outputs = {"logits": logits.detach(), "H2": state.detach()}
    return {**outputs, **dict(zip(named, gradients, strict=True))}, places


def _time(
    network: nn.Module,
    loss: Callable[[nn.Module], Tensor],
    images: Tensor,
    *,
    graph: bool = False,
    repeats: int = REPEATS,
) -> Timing:
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
    data = torch.rand(2**28, device="cuda")
    copied = 2 * data.nbytes / _seconds(lambda: data.clone().resize_(0), 5)
    square = torch.rand(8192, 8192, device="cuda").half()
    multiplied = 2 * 8192**3 / _seconds(lambda: (square @ square).resize_(0), 5)
    return copied, multiplied


def _floor(batch: int, ceilings: tuple[float, float]) -> float:
    """Seconds of a training step if every kernel of ours were at its ceiling.

    README.md of `ops` counts: at the pixels of a step 9 images forward and 26 back; around a
    convolution, there and back, 4 images and 18 spectra. The matrix products hide behind their own
    bytes as far as those reach.
    """
    domain = dft.circle(CANVAS, CANVAS, KERNEL_SIZE)
    width = batch * 32  # channels with their padding
    image = 2 * CANVAS * domain.stored_width * width
    spectrum = 2 * 2 * domain.frequencies * width
    uses = 2 * TIMESTEPS - 1
    moved = 35 * TIMESTEPS * image + uses * (4 * image + 18 * spectrum)
    along_x = 2 * CANVAS * (2 * domain.columns) * domain.stored_width * width
    along_y = 2 * (2 * domain.rows) * (2 * CANVAS) * domain.columns * width
    bandwidth, rate = ceilings
    products = uses * 4 * (along_x + along_y) / rate
    behind = uses * (4 * image + 12 * spectrum) / bandwidth
    return moved / bandwidth + max(0.0, products - behind)


def _network(backend: Backend) -> nn.Module:
    network: Any = create_model("hgru").cuda()
    network.features.backend = backend
    nn.init.eye_(network.readout.decide.weight)  # it starts at 0, which would stop every gradient
    return network


def _images(batch: int, draw: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(draw)
    return (torch.rand(batch, 1, CANVAS, CANVAS, generator=generator) < 0.1).float().cuda()


@contextmanager
def _switches(*, tf32: bool = True) -> Iterator[None]:
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


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _cells(each: Timing, plain: Timing, batch: int) -> tuple[str, ...]:
    return (
        f"{batch / each.train:,.0f}",
        f"{plain.train / each.train:.2f} x",
        f"{batch / each.infer:,.0f}",
        f"{plain.infer / each.infer:.2f} x",
        f"{each.memory / 2**30:.2f}",
        f"{each.memory / plain.memory:.2f} x",
    )
