import io
import itertools
from types import SimpleNamespace

import pytest
import torch
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


def test_ratios_are_over_the_spectral_form(monkeypatch):
    times = {hgru.infer: [2.0, 3.0, 5.0], hgru.train: [4.0, 8.0]}
    monkeypatch.setattr(hgru, "compare", lambda task, batch: times[task])
    rows = zip(*(column.cells for column in hgru.measure().columns), strict=True)
    infer, train = ("infer", "1", "2", "1.50 x", "2.50 x"), ("train", "1", "4", "2.00 x", "")
    assert list(rows) == [infer, train]


def test_times_are_those_of_an_image(monkeypatch):
    clock = SimpleNamespace(perf_counter=itertools.count().__next__)  # a second between two looks
    monkeypatch.setattr(hgru, "time", clock)
    monkeypatch.setattr(hgru, "make", lambda backend: torch.nn.Conv2d(1, 2, 3))
    assert hgru.compare(hgru.infer, 2) == [500.0, 500.0, 500.0]
    assert hgru.compare(hgru.train, 4) == [250.0, 250.0]


def test_the_network_is_made_with_the_way_to_compute():
    for backend in ("auto", "reference"):
        assert hgru.make(backend, timesteps=2).features.backend == backend


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
