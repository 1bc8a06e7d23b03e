"""The circuits on an NVIDIA GPU give what they give on the CPU."""

import copy

import pytest
import torch

from hgru_vision import ops
from hgru_vision.circuits import HGRU, ConvGRU, HGRUBatchNorm, HGRUNonnegative, HGRUReleased

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


@pytest.mark.parametrize(
    ("cls", "backend", "error"),
    [
        *((cls, "gemm", 1e-2) for cls in (HGRU, HGRUReleased, ConvGRU)),
        # A unit near the threshold of its rectification falls to the other side. An exact
        # convolution of numbers rounded to 16 bits is off by 0.4 to 2.3 % in twelve draws.
        (HGRUNonnegative, "gemm", 4e-2),
        *((cls, "gemm32", 1e-4) for cls in (HGRU, HGRUNonnegative, HGRUReleased, ConvGRU)),
    ],
)
def test_the_gpu_forms_give_what_the_reference_gives(cls, backend, error):
    layer = cls(channels=25, kernel_size=15, timesteps=3, backend=backend).cuda()
    exact = cls(channels=25, kernel_size=15, timesteps=3, backend="reference").cuda().double()
    x, ahead = torch.rand(2, 2, 25, 40, 37, generator=torch.Generator().manual_seed(0)).cuda()
    results = []
    for each, drive in ((layer, x), (exact, x.double())):
        with torch.backends.cudnn.flags(allow_tf32=False):  # for the gates' 1x1 convolutions
            out = each(drive)
            gradients = torch.autograd.grad(out, list(each.parameters()), ahead.to(out.dtype))
        results.append([out.detach().double(), *(gradient.double() for gradient in gradients)])
    for got, expected in zip(*results, strict=True):
        assert (got - expected).norm() <= error * expected.norm()


def test_auto_takes_the_gpu_form_and_a_trajectory_goes_step_by_step():
    layer = HGRU(timesteps=2).cuda()
    x = torch.rand(1, 25, 60, 60, device="cuda")
    assert ops.storage_at_once(x, 25, 15, "auto") == torch.float16
    steps = layer(x, return_trajectory=True).h2
    torch.testing.assert_close(layer(x), steps[-1], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(("cls", "whole"), [(HGRU, False), (HGRUBatchNorm, True), (ConvGRU, True)])
@pytest.mark.parametrize(("backend", "error"), [("gemm", 1e-2), ("gemm32", 1e-4)])
def test_compiled_they_give_the_same(cls, whole, backend, error):
    torch.compiler.reset()
    layer = cls(channels=25, kernel_size=15, timesteps=3, backend=backend).cuda()
    x = torch.rand(2, 25, 40, 37, generator=torch.Generator().manual_seed(0)).cuda()
    results = []
    for each in (torch.compile(layer, fullgraph=whole), layer):
        drive = x.clone().requires_grad_()
        with torch.backends.cudnn.flags(allow_tf32=False):  # for the gates' 1x1 convolutions
            out = each(drive)
            gradients = torch.autograd.grad(out.square().sum(), [drive, *layer.parameters()])
        results.append([out.detach(), *gradients])
    for got, expected in zip(*results, strict=True):
        assert (got - expected).norm() <= error * expected.norm()


def test_a_compiler_keeps_the_gpu_form_as_one_operation():
    torch.compiler.reset()
    targets = []

    def see(graph, inputs):
        targets.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    layer = HGRUBatchNorm(timesteps=2, backend="gemm").cuda()
    x = torch.rand(1, 25, 60, 60, device="cuda")
    torch.compile(layer, backend=see, fullgraph=True)(x)
    assert sum("hgru_vision" in target and "convolve" in target for target in targets) == 4
