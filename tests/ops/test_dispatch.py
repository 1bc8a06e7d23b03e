import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from hgru_vision import ops
from hgru_vision.ops import dispatch
from hgru_vision.ops.reference import DirectKernel
from hgru_vision.ops.spectral import FourierKernel, MatrixKernel

PAPER = torch.empty(1, 25, 150, 150), torch.empty(25, 25, 15, 15)
SMALL = torch.empty(1, 2, 8, 8), torch.empty(2, 2, 3, 3)


@pytest.mark.parametrize(("case", "expected"), [(PAPER, "fft"), (SMALL, "reference")])
def test_auto(case, expected):
    choice = ops.explain(*case)
    assert choice.backend == expected
    assert set(choice.reasons) == {"reference", "fft", "matmul", "gemm", "gemm32"}
    assert str(choice).startswith(f"{expected} (taken): ")
    assert len(str(choice).splitlines()) == 5
    assert choice.reasons["gemm"] == "x is on the cpu; the GPU forms need CUDA"


@pytest.mark.parametrize("case", [PAPER, SMALL])
def test_auto_knows_shape_and_device_only(case):
    x, weight = case
    expected = ops.explain(x, weight)
    assert ops.explain(torch.zeros_like(x), torch.ones_like(weight)) == expected
    assert ops.explain(x.double(), weight.double()) == expected


class OnGPU(torch.Tensor):
    """Stands for a tensor on a GPU, as far as the choice looks at it."""

    @property
    def device(self):
        return torch.device("cuda")


@pytest.mark.parametrize(
    ("channels", "size", "expected"),
    [(25, 15, "gemm"), (36, 11, "gemm"), (25, 3, "reference"), (1, 15, "reference")],
)
def test_auto_on_a_gpu(monkeypatch, channels, size, expected):
    monkeypatch.setattr("hgru_vision.ops.dispatch.has_triton", lambda: True)
    x = torch.empty(32, channels, 150, 150).as_subclass(OnGPU)
    choice = ops.explain(x, torch.empty(channels, channels, size, size))
    assert choice.backend == expected
    assert "million operations an image" in choice.reasons[expected]
    # All steps of an hGRU in one piece gain more than the convolution does.
    assert ops.storage_at_once(x, channels, size, "auto") == torch.float16


def test_auto_on_a_gpu_counts_what_launching_takes(monkeypatch):
    monkeypatch.setattr("hgru_vision.ops.dispatch.has_triton", lambda: True)
    weight = torch.empty(25, 25, 15, 15)
    few, many = (torch.empty(n, 25, 150, 150).as_subclass(OnGPU) for n in (10, 11))
    assert ops.explain(many, weight).backend == "gemm"
    choice = ops.explain(few, weight)
    assert choice.backend == "reference"
    of_all = "31,640.6 million operations of all images are "
    assert choice.reasons["reference"] == of_all + "done before the GPU form is launched"
    assert choice.reasons["gemm"] == of_all + "few for its launches"


def test_what_the_gpu_forms_lack_is_said(monkeypatch):
    x, weight = (each.as_subclass(OnGPU) for each in PAPER)
    monkeypatch.setattr("hgru_vision.ops.dispatch.has_triton", lambda: False)
    assert ops.explain(x, weight).reasons["gemm"] == "Triton is not installed"
    for dtype in (torch.float16, torch.bfloat16):
        reasons = ops.explain(x.to(dtype), weight.to(dtype)).reasons
        assert reasons["gemm"] == "Triton is not installed"
    double = ops.explain(x.double(), weight.double())
    assert double.reasons["gemm32"] == (
        "x is torch.float64; the GPU forms compute in float16 or float32"
    )
    monkeypatch.setattr("torch.compiler._is_exporting_flag", True)
    assert ops.explain(x, weight).reasons["gemm"] == (
        "an exporter or torch.func is tracing; the GPU forms are opaque to both"
    )


class Chooser(torch.nn.Module):
    """Computes what tells the choice: the negative for "gemm", the size for "matmul"."""

    def forward(self, x):
        ways = {"gemm": torch.neg, "gemm32": torch.sign, "matmul": torch.abs}
        return ways[dispatch._choose(x, PAPER[1].shape, "auto")](x)


@pytest.fixture
def pretended(monkeypatch):
    """Give what stands for images on a GPU to whatever traces."""
    monkeypatch.setattr(dispatch, "has_triton", lambda: True)
    torch.compiler.reset()
    with FakeTensorMode():
        yield torch.empty(32, *PAPER[0].shape[1:], device="cuda")


@pytest.mark.parametrize("strict", [False, True])
def test_an_exporter_does_not_get_the_gpu_forms(pretended, strict):
    program = torch.export.export(Chooser(), (pretended,), strict=strict)
    assert torch.ops.aten.abs.default in {node.target for node in program.graph.nodes}


@pytest.mark.parametrize(
    ("function", "taken"), [(Chooser(), torch.neg), (torch.vmap(Chooser()), torch.abs)]
)
def test_a_compiler_gets_the_gpu_forms_but_not_within_torch_func(pretended, function, taken):
    targets = set()

    def see(graph, inputs):
        targets.update(node.target for node in graph.graph.nodes)
        return graph

    torch.compile(function, backend=see, fullgraph=True)(pretended)
    assert targets & {torch.neg, torch.abs} == {taken}


def test_a_compiler_sees_whether_tf32_is_allowed(pretended, monkeypatch):
    targets = []

    def see(graph, inputs):
        targets.append({node.target for node in graph.graph.nodes} & {torch.neg, torch.sign})
        return graph

    compiled = torch.compile(Chooser(), backend=see, fullgraph=True)
    compiled(pretended)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    compiled(pretended)  # which it compiles anew
    assert targets == [{torch.neg}, {torch.sign}]


@pytest.fixture(params=["allow_tf32", "fp32_precision"])
def _no_tf32(request):
    """Turn TF32 off for convolutions by torch's older switch, or by its newer one."""
    older = request.param == "allow_tf32"
    owner = torch.backends.cudnn if older else torch.backends.cudnn.conv
    setattr(owner, request.param, False if older else "ieee")
    yield
    setattr(owner, request.param, True if older else "tf32")


@pytest.mark.usefixtures("_no_tf32")
def test_where_tf32_is_not_allowed_float32_is_stored(monkeypatch):
    monkeypatch.setattr("hgru_vision.ops.dispatch.has_triton", lambda: True)
    x, weight = (each.as_subclass(OnGPU) for each in (torch.empty(32, 25, 150, 150), PAPER[1]))
    choice = ops.explain(x, weight)
    assert choice.backend == "gemm32"
    assert "million operations an image" in choice.reasons["gemm32"]
    assert (
        choice.reasons["gemm"]
        == "about as exact as TF32, which torch.backends.cudnn does not allow"
    )
    assert choice.reasons["fft"] == "slower than the GPU form"
    assert ops.storage_at_once(x, 25, 15, "auto") == torch.float32
    assert ops.explain(x.half(), weight.half()).backend == "gemm"
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    assert ops.storage_at_once(x, 25, 15, "auto") == torch.float16


def test_kernels_that_torch_cannot_look_into_take_float32_alone(monkeypatch):
    monkeypatch.setattr("hgru_vision.ops.dispatch.has_triton", lambda: True)
    x = torch.ones(2).as_subclass(OnGPU)
    assert dispatch.takes_kernels(x, x)
    assert not dispatch.takes_kernels(x, x.half())
    assert not dispatch.takes_kernels(x, torch.ones(2))
    for switch in ("torch.is_autocast_enabled", "torch.compiler.is_compiling"):
        with monkeypatch.context() as switched:
            switched.setattr(switch, lambda *device: True)
            assert not dispatch.takes_kernels(x)


@pytest.mark.parametrize("backend", ["gemm", "gemm32"])
def test_a_gpu_form_is_refused_on_the_cpu(backend):
    with pytest.raises(ValueError, match=f"backend is '{backend}', but x is on the cpu; the GPU"):
        ops.horizontal_conv(*SMALL, backend)


def test_many_channels_are_not_run_at_once():
    assert ops.storage_at_once(PAPER[0], 129, 15, "gemm") is None


@pytest.mark.parametrize("case", [PAPER, SMALL])
def test_auto_does_not_know_whether_gradients_are_wanted(case):
    x, weight = case
    expected = ops.explain(x, weight)
    with torch.no_grad():
        assert ops.explain(x, weight) == expected


def test_tracing_takes_the_form_without_complex_numbers(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    choice = ops.explain(*PAPER)
    assert choice.backend == "matmul"
    assert "knows no complex numbers" in choice.reasons["fft"]
    assert ops.explain(*SMALL).backend == "reference"


@pytest.mark.parametrize(
    ("backend", "form"),
    [("reference", DirectKernel), ("fft", FourierKernel), ("matmul", MatrixKernel)],
)
def test_the_backend_asked_for_is_taken(backend, form):
    x, weight = SMALL
    assert isinstance(ops.prepare(weight, x, backend), form)
    assert ops.explain(x, weight, backend).reasons["fft"] == f"{backend!r} was asked for"


@pytest.mark.parametrize("backend", ["auto", "reference", "fft", "matmul"])
def test_one_prepared_kernel_serves_many_uses(backend):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 3, 20, 20, generator=generator, dtype=torch.float64)
    weight = torch.randn(3, 3, 7, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    conv = ops.prepare(weight, x, backend)
    (once,) = torch.autograd.grad(conv(conv(x)).sum(), weight)
    twice = ops.horizontal_conv(ops.horizontal_conv(x, weight), weight, "reference").sum()
    torch.testing.assert_close(once, *torch.autograd.grad(twice, weight))


@pytest.mark.parametrize(
    ("x", "weight", "backend", "error", "text"),
    [
        ((1, 2, 4, 4), (2, 2, 3, 3), "cudnn", ValueError, "backend is 'cudnn'; choose one of auto"),
        ((1, 2, 4, 4), (2, 2, 4, 4), "auto", ValueError, r"weight has shape \(2, 2, 4, 4\).*odd"),
        ((1, 2, 4, 4), (2, 2, 3, 5), "auto", ValueError, r"weight has shape \(2, 2, 3, 5\)"),
        ((1, 2, 4, 4), (2, 3, 3), "auto", ValueError, r"weight has shape \(2, 3, 3\)"),
        ((2, 4, 4), (2, 2, 3, 3), "auto", ValueError, r"x has shape \(2, 4, 4\); it must be \(B"),
        ((0, 2, 4, 4), (2, 2, 3, 3), "auto", ValueError, r"x has shape \(0, 2, 4, 4\).*none"),
        ((1, 3, 4, 4), (2, 2, 3, 3), "auto", ValueError, "x has 3 channels, weight takes 2"),
    ],
)
def test_bad_shapes(x, weight, backend, error, text):
    with pytest.raises(error, match=text):
        ops.horizontal_conv(torch.zeros(x), torch.zeros(weight), backend)


def test_bad_dtypes():
    x, weight = torch.zeros(1, 2, 4, 4), torch.zeros(2, 2, 3, 3)
    with pytest.raises(TypeError, match=r"x is torch.int64; convert it to a floating-point dtype"):
        ops.horizontal_conv(x.long(), weight)
    with pytest.raises(TypeError, match=r"x is torch.float16 and weight torch.float32; convert"):
        ops.horizontal_conv(x.half(), weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.horizontal_conv(x.bfloat16(), weight).dtype == torch.bfloat16


def test_importing_the_operations_loads_torch_alone():
    code = (
        "import sys, hgru_vision.ops; "
        "print([m for m in ('triton', 'numba', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_channels_lie_side_by_side_for_the_gpu_form(monkeypatch):
    monkeypatch.setattr("hgru_vision.ops.dispatch.has_triton", lambda: True)
    x = torch.rand(2, 25, 9, 8)
    assert ops.in_order(x, 25, 15, "auto") is x
    on_gpu = x.as_subclass(OnGPU)
    assert ops.in_order(on_gpu, 25, 15, "reference") is on_gpu
    arranged = ops.in_order(on_gpu, 25, 15, "gemm")
    assert arranged.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(arranged, on_gpu)


@pytest.mark.parametrize("backend", ["fft", "matmul"])
def test_a_prepared_kernel_is_for_one_size(backend):
    conv = ops.prepare(torch.ones(2, 2, 3, 3), torch.ones(1, 2, 8, 9), backend)
    message = "images are 8 x 10 pixels; this kernel was prepared for 8 x 9"
    with pytest.raises(ValueError, match=message):
        conv(torch.ones(1, 2, 8, 10))
