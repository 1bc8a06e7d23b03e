import math

import pytest
import torch
import torch.nn.functional as F

from hgru_vision.models.large_conv import LargeConv2d


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("size", [(5, 9), (40, 33)])
@pytest.mark.parametrize(("kernel_size", "dilation"), [(10, 1), (15, 1), (20, 1), (15, 2), (4, 2)])
def test_a_large_convolution_is_conv2d_with_more_zeros_to_the_right_and_below(
    kernel_size, dilation, size
):
    layer = LargeConv2d(3, 2, kernel_size, generator(), dilation=dilation)
    torch.nn.init.uniform_(layer.bias, generator=generator())
    x = torch.rand(2, 3, *size, generator=generator(), requires_grad=True)
    zeros = (kernel_size - 1) * dilation
    padded = F.pad(x, (zeros // 2, zeros - zeros // 2) * 2)
    expected = F.conv2d(padded, layer.weight, layer.bias, dilation=dilation)
    assert expected.shape[2:] == size
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)
    inputs = (x, layer.weight, layer.bias)
    cotangent = torch.rand(expected.shape, generator=generator())
    for ours, theirs in zip(
        torch.autograd.grad(layer(x), inputs, cotangent),
        torch.autograd.grad(expected, inputs, cotangent),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_large_convolution_starts_with_xavier_weights_and_no_bias():
    layer = LargeConv2d(25, 36, 10, generator())
    bound = math.sqrt(6 / ((25 + 36) * 100))
    assert 0.99 * bound < layer.weight.abs().max() <= bound
    assert not layer.bias.any()
    assert "25, 36, kernel_size=10, dilation=1" in repr(layer)
