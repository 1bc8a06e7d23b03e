import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from hgru_vision.models import create_model
from hgru_vision.models.feedforward import NonLocal
from hgru_vision.models.large_conv import LargeConv2d

KERNELS = {
    "small": (10, 36),
    "medium": (15, 16),
    "large": (20, 9),
    "dilated": (15, 16),
    "nonlocal": (15, 16),
}


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("kind", KERNELS)
def test_layers_are_the_papers(kind, depth):
    layers = list(create_model(f"ff_{kind}_{depth}").features)
    size, kernels = KERNELS[kind]
    convolutions = [layer for layer in layers if isinstance(layer, LargeConv2d)]
    shapes = [tuple(layer.weight.shape) for layer in convolutions]
    assert shapes == [(kernels, 25, size, size)] + (depth - 1) * [(kernels, kernels, size, size)]
    dilations = [layer.dilation for layer in convolutions]
    assert dilations == [2 if kind == "dilated" else 1] + (depth - 1) * [1]
    kinds = depth * [LargeConv2d, torch.nn.ReLU]
    if kind == "nonlocal":
        kinds.insert(2, NonLocal)
    assert [type(layer) for layer in layers] == kinds


@pytest.mark.parametrize("size", [(8, 8), (7, 5), (1, 1)])
def test_the_nonlocal_block_is_that_of_wang_et_al(size):
    block = NonLocal(6, generator())
    x = torch.rand(2, 6, *size, generator=generator())
    pool = torch.nn.MaxPool2d(2, ceil_mode=True)
    theta, phi, g = block.theta(x), pool(block.phi(x)), pool(block.g(x))
    pairs = torch.einsum("bcyx,bcvu->byxvu", theta, phi)  # all of them
    weights = pairs.flatten(3).softmax(-1)
    seen = torch.einsum("byxp,bcp->bcyx", weights, g.flatten(2))
    torch.testing.assert_close(block(x), x + block.w(seen))


def test_the_nonlocal_block_starts_with_xavier_weights_and_no_bias():
    block = NonLocal(64, generator())
    for layer in (block.theta, block.phi, block.g, block.w):
        bound = (6 / (64 + 32)) ** 0.5
        assert 0.99 * bound < layer.weight.abs().max() <= bound
        assert not layer.bias.any()


def test_the_nonlocal_block_never_holds_all_pairs():
    # The fused kernel alone is allowed: where it cannot be taken, this is an error.
    block = NonLocal(16, generator())
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        block(torch.rand(1, 16, 32, 32, generator=generator())).sum().backward()


def test_the_nonlocal_block_reaches_the_far_corner():
    block = NonLocal(16, generator())
    x = torch.rand(1, 16, 40, 40, generator=generator(), requires_grad=True)
    block(x)[0, :, 0, 0].sum().backward()
    assert x.grad[0, :, 20:, 20:].any()
