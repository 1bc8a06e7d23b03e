import pytest
import torch

from hgru_vision.circuits import (
    HGRU,
    HGRUBatchNorm,
    HGRUGatesWithDrive,
    HGRUNonnegative,
    HGRUSeparateKernels,
    HGRUSharedBatchNorm,
)


def count(layer):
    return sum(p.numel() for p in layer.parameters())


def drive():
    return torch.rand(2, 3, 6, 5, generator=torch.Generator().manual_seed(0))


def test_parameters():
    base = count(HGRU(3, 3, 4))
    kernel, vector = 6 * 9, 3
    assert count(HGRUSeparateKernels(3, 3, 4)) == base + kernel
    assert count(HGRUGatesWithDrive(3, 3, 4)) == base
    without = base - 2 * vector - 4  # gate biases and time-gain
    assert count(HGRUBatchNorm(3, 3, 4)) == without + 4 * 2 * 4 * vector
    assert count(HGRUSharedBatchNorm(3, 3, 4)) == without + 4 * 2 * vector
    assert count(HGRUNonnegative(3, 3, 4)) == count(HGRUBatchNorm(3, 3, 4)) + kernel


def test_separate_kernels_that_are_equal_give_the_hgru():
    layer = HGRUSeparateKernels(3, 3, 4)
    assert not torch.equal(layer.w.pairs, layer.w_e.pairs)
    layer.w_e.load_state_dict(layer.w.state_dict())
    plain = HGRU(3, 3, 4)
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if k != "w_e.pairs"})
    torch.testing.assert_close(layer(drive()), plain(drive()))


def test_gates_see_the_drive():
    layer, plain = HGRUGatesWithDrive(3, 3, 1), HGRU(3, 3, 1)
    layer.load_state_dict(plain.state_dict())
    x = drive()
    gain = layer(x, return_trajectory=True).g1[0]
    torch.testing.assert_close(gain, torch.sigmoid(x + layer.b1.reshape(3, 1, 1)))


class Rectified(HGRU):
    zeta = staticmethod(torch.relu)


@pytest.mark.parametrize(
    "cls", [HGRUSeparateKernels, HGRUGatesWithDrive, HGRUBatchNorm, HGRUNonnegative, Rectified]
)
def test_other_equations_are_not_run_by_the_kernels_of_the_hgru(cls, monkeypatch):
    asked = []
    monkeypatch.setattr("hgru_vision.circuits.hgru.storage_at_once", lambda *a: asked.append(a))
    assert cls(3, 3, 2).run_at_once(drive(), None, 2) is None and not asked
    assert HGRU(3, 3, 2).run_at_once(drive(), None, 2) is None and asked


def test_batch_norm_shifts_start_as_the_gate_biases_do():
    layer, plain = HGRUBatchNorm(3, 3, 4), HGRU(3, 3, 4)
    assert torch.equal(layer.norm_g1.nu, plain.b1.expand(4, 3))
    assert torch.equal(layer.norm_g2.nu, plain.b2.expand(4, 3))
    assert (layer.norm_c1.nu == 0).all()


def test_shared_statistics_are_one_set():
    layer = HGRUSharedBatchNorm(3, 3, 4)
    layer(drive())
    assert layer.norm_c2.running_mean.shape == (1, 3)
    assert (layer.norm_c2.running_mean != 0).all()


def test_evaluation_uses_the_statistics_of_training():
    layer = HGRUBatchNorm(3, 3, 4)
    for _ in range(300):
        trained = layer(drive())
    torch.testing.assert_close(layer.eval()(drive()), trained, rtol=0, atol=1e-2)


def test_nonnegative():
    trajectory = HGRUNonnegative(3, 3, 4)(drive(), return_trajectory=True)
    assert (trajectory.h1 >= 0).all()
    assert (trajectory.h2 >= 0).all()
