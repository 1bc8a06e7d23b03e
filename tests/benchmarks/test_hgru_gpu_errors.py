import pytest
import torch

from hgru_vision.benchmarks import hgru_gpu_errors as errors
from hgru_vision.benchmarks import hgru_gpu_parts as parts

OUTCOMES = {"network": errors.network_outcomes, "wide": errors.wide_outcomes}


@pytest.fixture
def on_a_cpu(monkeypatch):
    """Small, on the CPU, where both spectral forms of torch run."""
    for name, value in {"DEVICE": "cpu", "WIDE": 3, "CANVAS": 16}.items():
        monkeypatch.setattr(parts, name, value)
    monkeypatch.setattr(errors, "DRAWS", 2)
    yield
    errors.forget()


@pytest.mark.parametrize("subject", OUTCOMES)
def test_every_gradient_is_judged_and_float32_is_near_float64(on_a_cpu, subject):
    network = parts.network("auto") if subject == "network" else parts.wide_layer("auto")
    found = errors.relative_errors(OUTCOMES[subject], "reference", batch=3)
    assert found.keys() >= {"H2", "drive", *(name for name, _ in network.named_parameters())}
    assert all(0 < error < 1e-3 for error in found.values()), found


@pytest.mark.parametrize("subject", OUTCOMES)
def test_a_few_images_at_a_time_give_the_same(on_a_cpu, subject):
    outcomes = OUTCOMES[subject]
    whole, places = outcomes(errors.Case("reference", 3, 0, 3, torch.float64))
    parted, _ = outcomes(errors.Case("reference", 3, 0, 2, torch.float64, places))
    for name, value in whole.items():
        torch.testing.assert_close(parted[name], value)


def test_an_error_is_the_root_of_the_mean_square_over_draws(on_a_cpu):
    exact_places = torch.zeros(1)

    def outcomes(case):
        if case.dtype == torch.float64:
            return {"H2": torch.tensor([100.0, 0.0])}, exact_places
        assert case.places is exact_places
        return {"H2": torch.tensor([(103.0, 104.0)[case.draw], 0.0])}, None

    found = errors.relative_errors(outcomes, "reference", batch=2)
    assert found == {"H2": pytest.approx(((0.03**2 + 0.04**2) / 2) ** 0.5)}


def test_the_readout_looks_where_it_is_told(on_a_cpu):
    case = errors.Case("reference", 2, 0, 2)
    largest, places = errors.network_outcomes(case)
    elsewhere, _ = errors.network_outcomes(case._replace(places=(places + 1) % 16**2))
    assert not torch.allclose(largest["logits"], elsewhere["logits"])


def test_ratios_are_over_conv2d_of_the_same_precision(monkeypatch):
    def made_up(outcomes, backend, batch, at_a_time=None):
        if torch.get_float32_matmul_precision() == "highest":
            return {"H2": {"reference": 1e-7, "gemm32": 3e-7}[backend]}
        if at_a_time is not None:
            return {"H2": 2e-4}
        return {"H2": {"reference": 1e-6, "gemm": 3e-4, "gemm32": 1e-4}[backend]}

    monkeypatch.setattr(errors, "relative_errors", made_up)
    with parts.switches():
        table = errors.error_table("layer", errors.wide_outcomes, batch=2)
    (row,) = zip(*(column.cells for column in table.columns), strict=True)
    conv2d, tf32, exact = "1.0e-06", ("3.0e-04", "1.50 x", "1.0e-04", "0.50 x"), "1.0e-07"
    assert row == ("H2", conv2d, "2.0e-04", *tf32, exact, "3.0e-07", "3.00 x")
    assert table.title == "Relative error against float64, layer, batch 2, 8 draws"
