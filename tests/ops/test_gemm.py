import copy

import pytest
import torch
import torch.nn.functional as F

from hgru_vision.circuits import ConvGRU, HGRUBatchNorm
from hgru_vision.ops import dispatch

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


@pytest.mark.parametrize("gain", [1e-8, 1e3])
def test_float16_holds_large_and_small_kernels(gpu_forms, poisoned, gain):
    def prepare(weight, x):
        return gpu_forms.gemm.GemmKernel.prepare(gain * weight, x, torch.float16)

    def exact(weight, x):
        return lambda image: F.conv2d(image, gain * weight, padding=1)

    x, weight, _ = case_tensors(CASES[1], gpu_forms.device)
    expected = exact(weight.double(), x)(x.double())
    assert relative(prepare(weight, x)(x), expected) < 1.5e-3


def test_images_of_nearly_nothing_are_no_nan(gpu_forms):
    x, weight, _ = case_tensors(CASES[1], gpu_forms.device, scale=1e-40)
    out = gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float16)(x)
    assert out.isfinite().all()


def test_images_of_another_size_are_refused(gpu_forms):
    x, weight, _ = case_tensors(CASES[1], gpu_forms.device)
    kernel = gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float16)
    message = "images are 7 x 5 pixels; this kernel was prepared for 7 x 4"
    with pytest.raises(ValueError, match=message):
        kernel(F.pad(x, (0, 1)))


def test_large_images_have_few_enough_programs_in_all_but_the_first_dimension(
    gpu_forms, monkeypatch
):
    grids = []

    class Spy:
        def __getitem__(self, grid):
            grids.append(grid)
            return lambda *given, **keywords: None

    for name in ("_to_planes_kernel", "_from_planes_kernel"):
        monkeypatch.setattr(gpu_forms.mix_kernels, name, Spy())
    image, planes = (
        torch.empty(1, 8, 2048, 2048, device="meta"),
        torch.empty(2048, 2048, 1, 8, device="meta"),
    )
    gpu_forms.mix_kernels.to_planes(image, planes)
    gpu_forms.mix_kernels.from_planes(planes[None], image, image)
    assert [grid[1:] for grid in grids] == [(1,), (1,)]


def test_the_order_of_memory_is_kept(gpu_forms, poisoned):
    x, weight, gradient = case_tensors(CASES[1], gpu_forms.device)
    outcomes = []
    for order in (torch.contiguous_format, torch.channels_last):
        a = x.contiguous(memory_format=order).requires_grad_()
        out = gpu_forms.gemm.GemmKernel.prepare(weight, a, torch.float32)(a)
        (to_x,) = torch.autograd.grad(out, a, gradient.contiguous(memory_format=order))
        assert out.is_contiguous(memory_format=order)
        assert to_x.is_contiguous(memory_format=order)
        outcomes.append((out, to_x))
    for plain, side_by_side in zip(*outcomes, strict=True):
        assert torch.equal(plain, side_by_side)


@pytest.mark.parametrize("cls", [HGRUBatchNorm, ConvGRU])
def test_circuits_go_step_by_step_with_channels_side_by_side(gpu_forms, monkeypatch, cls):
    monkeypatch.setattr(dispatch, "_gpu_form_lacks", lambda x: None)
    layer, exact = (
        cls(channels=3, kernel_size=3, timesteps=2, backend=backend).to(gpu_forms.device)
        for backend in ("gemm32", "reference")
    )
    x = torch.rand(2, 3, 6, 5, device=gpu_forms.device, requires_grad=True)
    outcomes = []
    for each in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True), exact):
        out = each(x)
        outcomes.append([out, *torch.autograd.grad(out.sum(), [x, *each.parameters()])])
    plain, compiled, expected = outcomes
    assert plain[0].is_contiguous(memory_format=torch.channels_last)
    assert compiled[0].stride() == plain[0].stride()
    for a, b, c in zip(plain, compiled, expected, strict=True):
        torch.testing.assert_close(a, b)
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-5)


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


def test_autocast_rounds_the_image_and_nothing_else(gpu_forms):
    x, weight, _ = case_tensors(CASES[1], gpu_forms.device)
    expected = F.conv2d(x.bfloat16().double(), weight.double(), padding=1)
    with torch.autocast(x.device.type, torch.bfloat16):
        kernel = gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float32)
        exact, rounded = kernel(x.bfloat16().float()), kernel(x.bfloat16())
    assert relative(exact, expected) < 2e-6
    assert rounded.dtype == torch.bfloat16
    assert relative(rounded, expected) < 1e-2


@pytest.mark.parametrize(
    ("kind", "steps", "backend", "error"),
    [(ConvGRU, 2, "gemm32", 5e-6), (HGRUBatchNorm, 1, "gemm", 1e-2)],
)
def test_a_compiled_circuit_is_the_circuit(gpu_forms, monkeypatch, kind, steps, backend, error):
    torch.compiler.reset()
    monkeypatch.setattr(dispatch, "_gpu_form_lacks", lambda x: None)
    layer = kind(2, 3, steps, backend=backend).to(gpu_forms.device)
    exact = copy.deepcopy(layer).double()
    exact.backend = "reference"
    x = torch.randn(2, 2, 4, 3, generator=torch.Generator().manual_seed(0)).to(gpu_forms.device)
    outcomes = []
    for run, parameters, dtype in [
        (torch.compile(layer, backend="aot_eager", fullgraph=True), layer.parameters(), x.dtype),
        (exact, exact.parameters(), torch.float64),
    ]:
        drive = x.to(dtype).requires_grad_()
        with torch.backends.cudnn.flags(allow_tf32=False):  # for the gates' 1x1 convolutions
            out = run(drive)
            outcomes.append([out, *torch.autograd.grad(out.square().sum(), [drive, *parameters])])
    for got, expected in zip(*outcomes, strict=True):
        assert (got.double() - expected).norm() <= error * expected.norm()


def compiled_convolution(gpu_forms, x, weight):
    torch.compiler.reset()

    def convolve(x, weight):
        return gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float32)(x)

    return torch.compile(convolve, backend="aot_eager", fullgraph=True)(x, weight)


def test_compiled_only_what_is_asked_for_is_differentiated(gpu_forms, monkeypatch):
    x, weight, _ = case_tensors(CASES[0], gpu_forms.device)
    with monkeypatch.context() as patch:
        patch.delattr(gpu_forms.gemm, "mix_gradient")
        compiled_convolution(gpu_forms, x.requires_grad_(), weight).sum().backward()
    assert x.grad is not None
    convolve, adjoint = gpu_forms.gemm._convolve, []
    monkeypatch.setattr(
        gpu_forms.gemm,
        "_convolve",
        lambda *given, **way: adjoint.append(way) or convolve(*given, **way),
    )
    compiled_convolution(gpu_forms, x.detach(), weight.requires_grad_()).sum().backward()
    assert weight.grad is not None
    assert adjoint == [{}]


def test_compiled_second_derivatives_are_refused(gpu_forms):
    x, weight, _ = case_tensors(CASES[0], gpu_forms.device)
    out = compiled_convolution(gpu_forms, x.requires_grad_(), weight)
    (first,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        first.sum().backward()


def test_what_compilers_see_is_declared_truly(gpu_forms):
    gemm = gpu_forms.gemm
    x, weight, gradient = case_tensors((2, 3, 5, 4, 3, 3), gpu_forms.device)
    kernel = gemm.GemmKernel.prepare(weight, x, torch.float16)
    multiplier, stored, domain = kernel.multiplier.requires_grad_(), kernel.stored, kernel.domain
    unit = kernel.unit
    padded = F.pad(weight, (0, 0, 0, 0, 0, 0, 0, 3)).requires_grad_()
    torch.library.opcheck(gemm._multiplier, (padded, domain))
    torch.library.opcheck(gemm._multiplier_backward, (multiplier.detach(), domain, 3))
    given = x.requires_grad_(), multiplier, stored, unit, domain, 5
    for check in ("test_autograd_registration", "test_aot_dispatch_dynamic"):
        torch.library.opcheck(gemm._convolve_op, given, test_utils=check)
    with torch.no_grad():
        _, *kept = gemm._convolve_op(*given)
    for wanted in [(True, True), (False, True)]:
        back = gradient, *kept, stored, unit, domain, *wanted
        torch.library.opcheck(gemm._convolve_backward_op, back, test_utils="test_faketensor")


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


@pytest.mark.gpu
def test_products_of_tf32_have_no_bias(gpu_forms):
    # Of positive numbers, what matrix units cut off would make every result smaller, by some 1e-3.
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2, 25, 150, 150, generator=generator).cuda()
    weight = torch.rand(25, 25, 15, 15, generator=generator).cuda()
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        got = gpu_forms.gemm.GemmKernel.prepare(weight, x, torch.float32)(x)
    finally:
        torch.set_float32_matmul_precision(before)
    exact = F.conv2d(x.cpu().double(), weight.cpu().double(), padding=7)
    inner = (got.cpu().double() / exact - 1)[..., 7:-7, 7:-7]
    assert inner.mean().abs() < 1e-4
    assert inner.abs().max() > 1e-5  # these were TF32
