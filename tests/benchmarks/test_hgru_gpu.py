import io

import pytest
from rich.console import Console

from hgru_vision.benchmarks import WrongResultError, hgru_gpu, run
from hgru_vision.ops import dft


def test_the_floor_is_what_the_readme_counts():
    # 0.94 GB at a terabyte a second; the products hide behind their bytes at any rate above that.
    seconds = hgru_gpu._floor(1, (1e12, 1e15))
    image, spectrum = 2 * 150 * 152 * 32, 4 * dft.circle(150, 150, 15).frequencies * 32
    assert seconds == pytest.approx((340 * image + 270 * spectrum) / 1e12)
    assert seconds == pytest.approx(0.94e-3, rel=0.01)
    assert hgru_gpu._floor(1, (1e15, 1e12)) > 40e-3  # 43 GFLOP at a teraflop a second


def test_a_wrong_result_is_named(monkeypatch):
    fine = {"H2": 1e-4, "features.b1": 1e-3, "features.eta": 0.05, "readout.bias": 0.5}
    monkeypatch.setattr(hgru_gpu, "_errors", lambda *a, **k: fine)
    hgru_gpu.check()
    for name, error in (("features.b1", 0.03), ("features.eta", 0.2), ("H2", float("nan"))):
        monkeypatch.setattr(hgru_gpu, "_errors", lambda *a, n=name, e=error, **k: fine | {n: e})
        with pytest.raises(WrongResultError, match=f"differs from float64 by {error} in {name}"):
            hgru_gpu.check()


@pytest.mark.gpu
def test_it_prints_all_tables(monkeypatch):
    monkeypatch.setattr(hgru_gpu, "BATCHES", (2,))
    monkeypatch.setattr(hgru_gpu, "WIDE_BATCH", 1)
    monkeypatch.setattr(hgru_gpu, "FEEDFORWARD", ("ff_small_1",))
    monkeypatch.setattr(hgru_gpu, "FEEDFORWARD_BATCH", 2)
    monkeypatch.setattr(hgru_gpu, "REPEATS", 1)
    monkeypatch.setattr(hgru_gpu, "ERROR_BATCHES", (2,))
    monkeypatch.setattr(hgru_gpu, "ERROR_DRAWS", 1)
    out = io.StringIO()
    run("hgru", Console(file=out, width=160))
    for title in ("hGRU network", "hGRU layer", "large kernels", "error against float64"):
        assert title in out.getvalue()
