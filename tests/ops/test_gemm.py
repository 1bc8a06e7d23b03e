import pytest
import torch
import torch.nn.functional as F

CASES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 5, 7, 4, 3),
    (3, 17, 2, 3, 5, 5),
]


def case_tensors(case, device, scale=1.0):
    batch, k_in, k_out, height, width, size = case
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, k_in, height, width, generator=generator) * scale
    weight = torch.randn(k_out, k_in, size, size, generator=generator)
    gradient = torch.randn(batch, k_out, height, width, generator=generator) / scale
    return [each.to(device) for each in (x, weight, gradient)]


def relative(got, expected):
    return float(((got.double() - expected).norm() / expected.norm()).detach())


def against_float64(prepare, case, device, scale=1.0):
    """Relative errors of the result and of both gradients, of a kernel that is used twice."""
    x, weight, gradient = case_tensors(case, device, scale)
    outcomes = []
    for dtype, convolve in [
        (torch.float64, lambda w, x: lambda image: F.conv2d(image, w, padding=w.shape[-1] // 2)),
        (torch.float32, prepare),
    ]:
        a, w = (each.to(dtype).requires_grad_() for each in (x, weight))
        kernel = convolve(w, a)
        out = kernel(a) + kernel(2 * a)
        outcomes.append([out, *torch.autograd.grad(out, [a, w], gradient.to(dtype))])
    expected, got = outcomes
    return [relative(g, e) for g, e in zip(got, expected, strict=True)]


@pytest.mark.parametrize("case", CASES)
def test_float32_is_conv2d(gpu_forms, poisoned, case):
    def prepare(weight, x):
        return gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float32)

    assert max(against_float64(prepare, case, gpu_forms.device)) < 2e-6


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_float16_holds_large_and_small_numbers(gpu_forms, poisoned, scale):
    def prepare(weight, x):
        return gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float16)

    assert max(against_float64(prepare, CASES[1], gpu_forms.device, scale)) < 1.5e-3


def test_zeros_stay_zeros(gpu_forms):
    x = torch.zeros(1, 2, 3, 3, device=gpu_forms.device)
    kernel = gpu_forms.gemm.GemmKernel.prepare(torch.ones(2, 2, 3, 3).to(x), x, torch.float16)
    assert (kernel(x) == 0).all()


def test_a_bad_pixel_stays_in_its_image(gpu_forms):
    x, weight, _ = case_tensors(CASES[1], gpu_forms.device)
    x[0, 0, 3, 2] = torch.nan
    kernel = gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float16)
    out = kernel(x)
    assert not out[0].isfinite().all()
    expected = F.conv2d(x[1:], weight, padding=1)
    torch.testing.assert_close(out[1:], expected, rtol=1e-2, atol=1e-2)


def test_only_what_is_asked_for_is_differentiated(gpu_forms):
    x, weight, _ = case_tensors(CASES[1], gpu_forms.device)
    x.requires_grad_()
    kernel = gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float32)
    kernel(x).sum().backward()
    assert x.grad is not None
    assert weight.grad is None


def test_second_derivatives_are_refused(gpu_forms):
    x, weight, _ = case_tensors(CASES[1], gpu_forms.device)
    x.requires_grad_()
    kernel = gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float32)
    (first,) = torch.autograd.grad(kernel(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case",
    [(3, 25, 25, 150, 150, 15), (2, 36, 25, 150, 97, 11), (2, 130, 70, 31, 64, 7)],
)
def test_errors_at_full_size(gpu_forms, poisoned, case):
    exact = against_float64(
        lambda w, x: gpu_forms.gemm.GemmKernel.prepare(w, x, torch.float32), case, gpu_forms.device
    )
    half = against_float64(
        lambda w, x: gpu_forms.gemm.GemmKernel.prepare(w, x, torch.float16), case, gpu_forms.device
    )
    assert max(exact) < 1e-5
    assert max(half) < 2e-3
