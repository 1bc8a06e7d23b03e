"""The circuits on an NVIDIA GPU give what they give on the CPU."""

import copy

import pytest
import torch

from hgru_vision.circuits import HGRU, HGRUNonnegative

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("cls", [HGRU, HGRUNonnegative])
@pytest.mark.parametrize("backend", ["reference", "fft", "matmul"])
@pytest.mark.parametrize("size", [(1, 1), (37, 61), (150, 150)])
def test_output_and_gradients_are_those_of_the_cpu(cls, backend, size):
    layer = cls(channels=5, kernel_size=15, timesteps=3, backend=backend).double()
    x = torch.randn(2, 5, *size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    on_gpu = copy.deepcopy(layer).cuda()
    results = []
    for each, drive in ((layer, x), (on_gpu, x.cuda())):
        out = each(drive)
        gradients = torch.autograd.grad(out.square().sum(), list(each.parameters()))
        results.append([out.cpu(), *(gradient.cpu() for gradient in gradients)])
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(here, there, rtol=1e-7, atol=1e-9)
