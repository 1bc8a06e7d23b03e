import importlib.util

import pytest
import torch

from hgru_vision.circuits import HGRU
from hgru_vision.papers.linsley2018 import HGRU_PARAMETERS


def drive(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def test_parameters_are_those_of_the_paper():
    assert sum(p.numel() for p in HGRU().parameters()) == HGRU_PARAMETERS
    layer = HGRU(channels=6, kernel_size=5, timesteps=3)
    assert sum(p.numel() for p in layer.parameters()) == 25 * 21 + 2 * (36 + 6) + 5 * 6 + 3


def test_the_kernel_stays_symmetric_in_training():
    layer = HGRU(channels=4, kernel_size=5, timesteps=3)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    start = layer.w().detach()
    for _ in range(3):
        optimizer.zero_grad()
        layer(drive(1, 4, 9, 9)).square().sum().backward()
        optimizer.step()
        assert torch.equal(layer.w(), layer.w().transpose(0, 1))
    assert not torch.equal(layer.w(), start)


def test_starting_values():
    layer = HGRU(generator=torch.Generator().manual_seed(3))
    for bias in (layer.b1, layer.b2):
        assert (-bias.exp().log() >= 0).all()
        assert (torch.exp(-bias) <= 7).all()
        assert torch.exp(-bias).max() > 5
    assert not torch.equal(layer.b1, layer.b2)
    assert (layer.eta == 1).all()
    bound = (3 / (25 * 225)) ** 0.5
    assert 0.99 * bound < layer.w().abs().max() <= bound
    for gate in (layer.u1, layer.u2):
        assert 0.9 < gate.abs().max() / (3 / 25) ** 0.5 <= 1
    vectors = [layer.get_parameter(name) for name in ("alpha", "mu", "kappa", "beta", "omega")]
    for vector in vectors:
        assert 0.8 < vector.abs().max() / (6 / 26) ** 0.5 <= 1
    assert len(torch.cat(vectors).unique()) == 5 * 25


@pytest.mark.parametrize("timesteps", [1, 2])
def test_chronos_biases_without_a_range_are_zero(timesteps):
    layer = HGRU(2, 3, timesteps)
    assert (layer.b1 == 0).all()
    assert (layer.b2 == 0).all()


@pytest.mark.parametrize("size", [(1, 1), (3, 20), (13, 13), (150, 150)])
def test_the_backends_agree(size):
    layer, x = HGRU(3, 7, 2).double(), drive(1, 3, *size, dtype=torch.float64)
    results = []
    for layer.backend in ("auto", "reference", "fft", "matmul"):
        out = layer(x)
        results.append((out, *torch.autograd.grad(out.square().sum(), list(layer.parameters()))))
    for other in results[1:]:
        for ours, theirs in zip(other, results[0], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_second_derivatives():
    layer, x = HGRU(2, 3, 2).double(), drive(1, 2, 3, 3, dtype=torch.float64)
    for layer.backend in ("reference", "fft", "matmul"):
        assert torch.autograd.gradgradcheck(layer, (x.requires_grad_(),), fast_mode=True)


def test_vmap_over_parameters():
    layers = [HGRU(3, 7, 2, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    x = drive(2, 3, 40, 40)
    for backend in ("reference", "fft", "matmul"):
        parameters, buffers = torch.func.stack_module_state(layers)
        model = HGRU(3, 7, 2, backend=backend)

        def run(p, b, x, model=model):
            return torch.func.functional_call(model, (p, b), (x,))

        together = torch.vmap(run, in_dims=(0, 0, None))(parameters, buffers, x)
        for layer, out in zip(layers, together, strict=True):
            torch.testing.assert_close(out, layer(x), rtol=1e-4, atol=1e-5)


def test_gradients_of_single_examples():
    layer, x = HGRU(2, 7, 2).double(), drive(3, 2, 32, 32, dtype=torch.float64)
    layer.backend = "fft"
    parameters = dict(layer.named_parameters())

    def loss(p, image):
        return torch.func.functional_call(layer, p, (image[None],)).square().sum()

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    layer(x[1:2]).square().sum().backward()
    for name, p in layer.named_parameters():
        torch.testing.assert_close(each[name][1], p.grad)


def test_autocast():
    layer, x = HGRU(4, 7, 3), drive(1, 4, 40, 40)
    expected = layer(x)
    for layer.backend in ("reference", "fft", "matmul"):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = layer(x)
        out.float().sum().backward()
        torch.testing.assert_close(out.float(), expected, rtol=0, atol=0.05)
        # The convolution's output of another layer arrives in bfloat16.
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert layer(x.bfloat16()).isfinite().all()
            assert layer(x.bfloat16(), state=x).isfinite().all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Inductor's own
@pytest.mark.parametrize("kernel_size", [3, 15])
@pytest.mark.parametrize(
    "compiler", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)
def test_compile(kernel_size, compiler):
    torch.compiler.reset()
    layer, x = HGRU(8, kernel_size, 2), drive(1, 8, 20, 25)
    compiled = torch.compile(layer, fullgraph=True, backend=compiler)
    expected, out = layer(x), compiled(x)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    parameters = list(layer.parameters())
    ours = torch.autograd.grad(out.square().sum(), parameters)
    theirs = torch.autograd.grad(expected.square().sum(), parameters)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(
    any(importlib.util.find_spec(m) is None for m in ("onnx", "onnxscript", "onnxruntime")),
    reason="needs the extra hgru-vision[export]",
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("kernel_size", [3, 15])
def test_onnx(tmp_path, kernel_size):
    import onnx
    import onnxruntime

    layer, x = HGRU(8, kernel_size, 2).eval(), drive(2, 8, 20, 25)
    path = tmp_path / "hgru.onnx"
    free = ({0: torch.export.Dim("batch")},)
    torch.onnx.export(layer, (x,), path, dynamo=True, verbose=False, dynamic_shapes=free)
    session = onnxruntime.InferenceSession(path)
    x = drive(3, 8, 20, 25)
    (out,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(out), layer(x).detach(), rtol=1e-4, atol=1e-5)
    # The two gates of a step are convolutions; small kernels are too, large ones matrix products.
    convolutions = sum(node.op_type == "Conv" for node in onnx.load(path).graph.node)
    assert (convolutions > 4) == (kernel_size == 3)
