import pytest
import torch
import torch.nn.functional as F

from hgru_vision.ops import two_maps


@pytest.mark.parametrize("shape", [(2, 25, 5, 7), (1, 3, 1, 1), (3, 130, 4, 3)])
def test_the_kernel_is_conv2d(gpu_forms, poisoned, shape):
    from hgru_vision.ops.map_kernels import TwoMaps

    generator = torch.Generator().manual_seed(0)
    features = torch.randn(shape, generator=generator).to(gpu_forms.device)
    features = features.contiguous(memory_format=torch.channels_last)
    weight = torch.randn(2, shape[1], generator=generator).to(gpu_forms.device)
    gradient = torch.randn(shape[0], 2, *shape[2:], generator=generator).to(gpu_forms.device)
    given = [features.requires_grad_(), weight.requires_grad_()]
    got = TwoMaps.apply(features, weight)
    expected = F.conv2d(features.double(), weight.double()[:, :, None, None])
    torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-5)
    assert got.is_contiguous(memory_format=torch.channels_last)
    for a, b in zip(
        torch.autograd.grad(got, given, gradient),
        torch.autograd.grad(expected, given, gradient.double()),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_elsewhere_it_is_conv2d_to_the_bit():
    features, weight = torch.rand(2, 4, 3, 3), torch.rand(2, 4, 1, 1)
    assert torch.equal(two_maps(features, weight), F.conv2d(features, weight))


@pytest.mark.parametrize("shape", [(3, 4, 1, 1), (2, 4, 3, 3)])
def test_other_weights_are_left_to_conv2d(monkeypatch, shape):
    monkeypatch.setattr("hgru_vision.ops.maps.takes_kernels", lambda *_: True)
    features = torch.rand(2, 4, 3, 3).contiguous(memory_format=torch.channels_last)
    weight = torch.rand(shape)
    assert torch.equal(two_maps(features, weight), F.conv2d(features, weight))


@pytest.mark.gpu
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_both_orders_of_memory_on_a_gpu(order):
    features = torch.rand(4, 25, 150, 150, device="cuda").contiguous(memory_format=order)
    weight = torch.rand(2, 25, 1, 1, device="cuda")
    expected = F.conv2d(features.double(), weight.double()).float()
    torch.testing.assert_close(two_maps(features, weight), expected, rtol=1e-3, atol=1e-3)
