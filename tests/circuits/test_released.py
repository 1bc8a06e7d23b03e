import pytest
import torch

from hgru_vision.circuits import HGRUReleased


def test_parameters():
    # W stored whole; the batch norm after the layer has 2 x 25.
    assert sum(p.numel() for p in HGRUReleased().parameters()) == 142_058 + 50


def test_the_authors_start():
    layer = HGRUReleased()
    assert torch.equal(layer.b2, -layer.b1)
    assert (layer.b1 <= 0).all()
    assert torch.equal(layer.w, layer.w.transpose(0, 1))
    assert ((layer.eta >= 0) & (layer.eta < 1)).all()
    for kernel in (layer.w, layer.u1, layer.u2):
        assert 0.9 < kernel.abs().max() / (3 / kernel[0].numel()) ** 0.5 <= 1
    for name in ("alpha", "mu", "gamma", "kappa", "omega"):
        assert 0.8 < layer.get_parameter(name).abs().max() / (6 / 26) ** 0.5 <= 1, name
    assert layer.norm.momentum == 0.01  # TensorFlow's default is 0.99 of what was


def test_training_may_leave_the_symmetry():
    layer = HGRUReleased(3, 3, 2)
    x = torch.rand(1, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    layer(x).square().sum().backward()
    assert not torch.allclose(layer.w.grad, layer.w.grad.transpose(0, 1))


def test_the_mix_is_inverted():
    layer = HGRUReleased(3, 3, 2)
    generator = torch.Generator().manual_seed(0)
    x, state = torch.rand(2, 1, 3, 6, 6, generator=generator)
    with torch.no_grad():
        layer.b2.fill_(100)
        layer.eta.fill_(1)
    torch.testing.assert_close(layer(x, state=state, return_trajectory=True).h2[-1], state)


def test_a_foreign_checkpoint_is_refused():
    checkpoint = {"w.weight": torch.zeros(2, 2, 3, 3), "conv0.weight": torch.zeros(1)}
    text = r"not a checkpoint of the released hGRU: missing \['alpha'.*unknown \['conv0.weight'\]"
    with pytest.raises(ValueError, match=text):
        HGRUReleased.from_checkpoint(checkpoint)


def test_other_equations_are_not_run_by_the_kernels_of_these(monkeypatch):
    class Doubled(HGRUReleased):
        def step(self, x, h2, t, horizontal=None):
            return super().step(2 * x, h2, t, horizontal)

    asked = []
    monkeypatch.setattr("hgru_vision.circuits.hgru.storage_at_once", lambda *a: asked.append(a))
    x = torch.rand(1, 3, 6, 6)
    assert Doubled(3, 3, 2).run_at_once(x, None, 2) is None and not asked
    assert HGRUReleased(3, 3, 2).run_at_once(x, None, 2) is None and asked
