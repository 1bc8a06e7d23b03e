import io

import pytest
import torch
from rich.console import Console

from hgru_vision.benchmarks import WrongResultError, hgru_gpu, hgru_gpu_errors, run
from hgru_vision.ops import dft


class Compiled(torch.nn.Sequential):
    """Stands for what torch.compile makes of a network."""


def test_the_floor_is_what_the_readme_counts():
    # 0.94 GB an image, at a terabyte a second, and 1.2 GB a batch; the products hide behind the
    # bytes of images at any rate above that.
    fast = 1e12, 1e15
    waves = dft.circle(150, 150, 15).frequencies
    image, spectrum, kernel = 2 * 150 * 152 * 32, 4 * waves * 32, 4 * waves * 25 * 32
    first, second = (hgru_gpu._floor(batch, 25, fast) for batch in (1, 2))
    assert second - first == pytest.approx((340 * image + 270 * spectrum) / 1e12)
    assert second - first == pytest.approx(0.94e-3, rel=0.01)
    assert 2 * first - second == pytest.approx(30 * kernel / 1e12)
    assert 2 * first - second == pytest.approx(1.2e-3, rel=0.03)
    assert hgru_gpu._floor(1, 25, (1e15, 1e12)) > 40e-3  # 43 GFLOP at a teraflop a second
    assert hgru_gpu._floor(8, 128, fast) == pytest.approx(55.4e-3, rel=0.01)


def test_a_contest_is_against_the_faster_order_of_conv2d(monkeypatch):
    seconds = {"reference": 8.0, "channels last": 4.0, "fft": 2.0, "auto": 1.0}

    def make(backend):
        network = torch.nn.Conv2d(2, 2, 3)
        network.backend = backend
        return network

    def time(network, loss, images, *, graph, repeats):
        if isinstance(network, Compiled):
            return hgru_gpu.Timing(3.0, 3.0, 2**30)
        last = network.weight.is_contiguous(memory_format=torch.channels_last)
        assert images.is_contiguous(memory_format=torch.channels_last) is last
        each = seconds["channels last" if last else network.backend] / (2 if graph else 1)
        return hgru_gpu.Timing(each, each / 2, 2**31 if network.backend == "reference" else 2**30)

    monkeypatch.setattr(hgru_gpu, "_time", time)
    monkeypatch.setattr(torch, "compile", Compiled)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    table = hgru_gpu._contest("layer", make, torch.ones(8, 2, 4, 4), lambda n, x: n(x), 0.25)
    assert table.title.startswith("layer, a GPU, torch ")
    names, train, ratio, infer, faster, memory, smaller, share = (
        [*column.cells] for column in table.columns
    )
    ours = ["ours, launch by launch", "ours, recorded"]
    assert names == ["conv2d", "conv2d, compiled", "torch.fft", *ours]
    assert train == ["2", "3", "4", "8", "16"]
    assert ratio == ["1.00 x", "1.33 x", "2.00 x", "4.00 x", "8.00 x"]
    assert infer == ["4", "3", "8", "16", "32"]
    assert faster == ["1.00 x", "0.67 x", "2.00 x", "4.00 x", "8.00 x"]
    assert memory == ["2.00", "1.00", "1.00", "1.00", "1.00"]
    assert smaller == ["1.00 x", "0.50 x", "0.50 x", "0.50 x", "0.50 x"]
    assert share == ["", "", "", "25%", "50%"]


def test_other_circuits_are_compared_with_their_own_conv2d(monkeypatch):
    def time(network, loss, images, *, graph, repeats):
        assert loss(network).shape == ()
        compiled = isinstance(network, Compiled)
        plain = not compiled and network.features.backend == "reference"
        assert graph is not plain
        return hgru_gpu.Timing(4.0 if plain else 1.0 if compiled else 2.0, 1.0, 2**30)

    monkeypatch.setattr(hgru_gpu, "_time", time)
    monkeypatch.setattr(hgru_gpu, "STEP_BY_STEP_BATCH", 8)
    monkeypatch.setattr(hgru_gpu.parts, "DEVICE", "cpu")
    monkeypatch.setattr(hgru_gpu.parts, "CANVAS", 16)
    monkeypatch.setattr(torch, "compile", Compiled)
    table = hgru_gpu._circuit_table()
    names, *columns = ([*column.cells] for column in table.columns)
    assert names == ["hgru_bn", "hgru_nonnegative", "gru", "gru_2l"]
    assert [each[0] for each in columns] == ["2", "4", "2.00 x", "8", "4.00 x"]


def test_feedforward_networks_are_compared_with_the_faster_conv2d(monkeypatch):
    seconds, outputs = iter([4.0, 3.0, 1.0]), []

    def time(network, loss, images, *, repeats):
        outputs.append(network.features(network.input(images)))
        return hgru_gpu.Timing(next(seconds), 1.0, 2**30)

    monkeypatch.setattr(hgru_gpu, "_time", time)
    monkeypatch.setattr(hgru_gpu, "FEEDFORWARD", ("ff_small_1",))
    monkeypatch.setattr(hgru_gpu, "FEEDFORWARD_BATCH", 12)
    monkeypatch.setattr(hgru_gpu.parts, "DEVICE", "cpu")
    monkeypatch.setattr(hgru_gpu.parts, "CANVAS", 16)
    (row,) = zip(*(column.cells for column in hgru_gpu._feedforward_table().columns), strict=True)
    assert row == ("ff_small_1", "3", "4", "12", "3.00 x")
    direct, half, ours = outputs  # all of the same convolution
    torch.testing.assert_close(direct, ours, rtol=1e-4, atol=1e-5)
    assert torch.equal(direct, half)


def test_a_wrong_result_is_named(monkeypatch):
    fine = {"H2": 1e-4, "features.b1": 1e-3, "features.eta": 0.05, "readout.bias": 0.5}
    monkeypatch.setattr(hgru_gpu, "relative_errors", lambda *a, **k: fine)
    hgru_gpu.check()
    for name, error in (("features.b1", 0.03), ("features.eta", 0.2), ("H2", float("nan"))):
        found = fine | {name: error}
        monkeypatch.setattr(hgru_gpu, "relative_errors", lambda *a, found=found, **k: found)
        with pytest.raises(WrongResultError, match=f"differs from float64 by {error} in {name}"):
            hgru_gpu.check()


@pytest.mark.gpu
def test_it_prints_all_tables(monkeypatch):
    monkeypatch.setattr(hgru_gpu, "BATCHES", (2,))
    monkeypatch.setattr(hgru_gpu, "WIDE_BATCH", 1)
    monkeypatch.setattr(hgru_gpu.parts, "WIDE", 32)  # cuDNN takes minutes to choose for 128
    monkeypatch.setattr(hgru_gpu, "STEP_BY_STEP", ("gru",))
    monkeypatch.setattr(hgru_gpu, "STEP_BY_STEP_BATCH", 2)
    monkeypatch.setattr(hgru_gpu, "FEEDFORWARD", ("ff_small_1",))
    monkeypatch.setattr(hgru_gpu, "FEEDFORWARD_BATCH", 2)
    monkeypatch.setattr(hgru_gpu, "REPEATS", 1)
    monkeypatch.setattr(hgru_gpu, "ERROR_BATCHES", (2,))
    monkeypatch.setattr(hgru_gpu_errors, "DRAWS", 1)
    out = io.StringIO()
    run("hgru", Console(file=out, width=160))
    titles = "hGRU network", "hGRU layer", "step by step", "large kernels", "error against float64"
    for title in titles:
        assert title in out.getvalue()
