import io

import pytest
from rich.console import Console

from hgru_vision.benchmarks import WrongResultError, hgru, run


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(hgru, "SIZE", 32)
    monkeypatch.setattr(hgru, "BATCHES", (1,))
    monkeypatch.setattr(hgru, "REPEATS", 1)


def test_it_prints_ratios():
    out = io.StringIO()
    run("hgru", Console(file=out, width=120))
    assert out.getvalue().count(" x") == 3


@pytest.mark.parametrize("error", [1.0, float("nan")])
def test_no_speed_is_printed_for_a_wrong_network(monkeypatch, error):
    right = hgru.make

    def wrong(backend, **keywords):
        network = right(backend, **keywords)
        network.features.alpha.data += error if backend == "auto" else 0
        return network

    monkeypatch.setattr(hgru, "make", wrong)
    out = io.StringIO()
    with pytest.raises(WrongResultError, match="the spectral hGRU differs from the direct one by"):
        run("hgru", Console(file=out))
    assert out.getvalue() == ""
