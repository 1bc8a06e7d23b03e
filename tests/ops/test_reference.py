import torch

from hgru_vision.ops.reference import DirectKernel


def test_it_is_a_cross_correlation_with_zeros_beyond_the_border():
    weight = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    weight[0, 0, 1, 2] = 1  # looks one pixel to the right
    x = torch.arange(1.0, 5.0, dtype=torch.float64).reshape(1, 1, 1, 4)
    assert DirectKernel(weight)(x).flatten().tolist() == [2, 3, 4, 0]


def test_second_derivatives():
    generator = torch.Generator().manual_seed(0)
    x, weight = (
        torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((1, 2, 4, 3), (2, 2, 3, 3))
    )
    assert torch.autograd.gradgradcheck(lambda x, w: DirectKernel(w)(x), (x, weight))
