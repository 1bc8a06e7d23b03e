import pytest
import torch
import torch.nn.functional as F

from hgru_vision.ops import squared_responses


def given(size, filters, taps, device):
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(size, generator=generator).unsqueeze(1)
    weight = torch.randn(filters, 1, taps, taps, generator=generator) / taps
    gradient = torch.randn(size[0], filters, *size[1:], generator=generator)
    return [each.to(device) for each in (images, weight, gradient)]


def expected_of(images, weight, gradient):
    weight = weight.double().requires_grad_()
    squares = F.conv2d(images.double(), weight, padding="same").square()
    return squares, torch.autograd.grad(squares, weight, gradient.double())[0]


def compare(got, got_gradient, squares, to_weight):
    assert (got - squares).norm() < 1e-6 * squares.norm()
    assert (got_gradient - to_weight).norm() < 2e-6 * to_weight.norm()


@pytest.mark.parametrize(
    ("size", "filters", "taps"),
    [((2, 13, 11), 25, 7), ((1, 1, 1), 1, 1), ((3, 2, 40), 17, 3), ((1, 31, 5), 33, 15)],
)
def test_the_kernels_are_the_square_of_conv2d(gpu_forms, poisoned, size, filters, taps):
    from hgru_vision.ops.response_kernels import SquaredResponses

    images, weight, gradient = given(size, filters, taps, gpu_forms.device)
    weight.requires_grad_()
    got = SquaredResponses.apply(images, weight)
    (to_weight,) = torch.autograd.grad(got, weight, gradient)
    compare(got, to_weight, *expected_of(images, weight.detach(), gradient))


def test_they_take_any_strides(gpu_forms):
    from hgru_vision.ops.response_kernels import SquaredResponses

    images, weight, gradient = given((2, 6, 7), 4, 3, gpu_forms.device)
    turned = images.mT.contiguous().mT
    got = SquaredResponses.apply(turned, weight.requires_grad_())
    last = gradient.contiguous(memory_format=torch.channels_last)
    (to_weight,) = torch.autograd.grad(got, weight, last)
    compare(got, to_weight, *expected_of(images, weight.detach(), gradient))


def test_more_blocks_than_programs(gpu_forms, monkeypatch):
    from hgru_vision.ops import response_kernels

    monkeypatch.setattr(response_kernels, "_PROGRAMS", 2)
    images, weight, gradient = given((3, 20, 19), 5, 3, gpu_forms.device)
    got = response_kernels.SquaredResponses.apply(images, weight.requires_grad_())
    (to_weight,) = torch.autograd.grad(got, weight, gradient)
    compare(got, to_weight, *expected_of(images, weight.detach(), gradient))


def test_elsewhere_they_are_those_of_conv2d_to_the_bit():
    images, weight, _ = given((2, 9, 8), 4, 3, "cpu")
    expected = F.conv2d(images, weight, padding="same").square()
    assert torch.equal(squared_responses(images, weight), expected)


def test_images_have_a_gradient():
    images, weight, gradient = given((1, 5, 5), 2, 3, "cpu")
    images.requires_grad_()
    (got,) = torch.autograd.grad(squared_responses(images, weight), images, gradient)
    assert got.norm() > 0


@pytest.mark.gpu
def test_at_full_size_on_a_gpu():
    images, weight, gradient = given((8, 150, 150), 25, 7, "cuda")
    weight.requires_grad_()
    got = squared_responses(images, weight)
    (to_weight,) = torch.autograd.grad(got, weight, gradient)
    compare(got, to_weight, *expected_of(images, weight.detach(), gradient))
    images.requires_grad_()
    (to_images,) = torch.autograd.grad(squared_responses(images, weight), images, gradient)
    assert to_images.norm() > 0
