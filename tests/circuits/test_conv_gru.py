import pytest
import torch

from hgru_vision.circuits import ConvGRU, ConvGRU2L


def test_parameters():
    gates, kernel, vector = 2 * (25 * 25 + 25), 25 * 25 * 15 * 15, 25
    assert sum(p.numel() for p in ConvGRU().parameters()) == kernel + vector + gates
    assert sum(p.numel() for p in ConvGRU2L().parameters()) == 2 * (kernel + vector) + gates


def test_gates_start_as_those_of_the_hgru():
    layer = ConvGRU()
    for bias in (layer.b1, layer.b2):
        times = torch.exp(-bias)
        assert times.min() >= 1
        assert 5 < times.max() <= 7


@pytest.mark.parametrize("cls", [ConvGRU, ConvGRU2L])
def test_kernels_start_by_xavier_and_the_other_biases_at_zero(cls):
    for name, value in cls().named_parameters():
        if value.ndim == 4:  # (25, 25, S, S)
            assert 0.99 < value.abs().max() / (3 / value[0].numel()) ** 0.5 <= 1, name
        elif name not in ("b1", "b2"):
            assert not value.any(), name


def test_a_closed_mix_keeps_the_state():
    generator = torch.Generator().manual_seed(0)
    x, state = torch.rand(2, 1, 3, 6, 6, generator=generator)
    for cls in (ConvGRU, ConvGRU2L):
        layer = cls(3, 3, 4)
        with torch.no_grad():
            layer.b2.fill_(-100)
        torch.testing.assert_close(layer(x, state=state), state)


def test_the_two_layers_have_kernels_of_their_own():
    layer = ConvGRU2L(3, 3, 2)
    assert not torch.equal(layer.w, layer.w_2l)
    layer(torch.rand(1, 3, 6, 6, generator=torch.Generator().manual_seed(0))).sum().backward()
    assert (layer.w.grad != 0).any()
    assert (layer.w_2l.grad != 0).any()
