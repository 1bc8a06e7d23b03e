import pytest
import torch
import torch.nn.functional as F

from hgru_vision.ops.spectral import FourierKernel, MatrixKernel

FORMS = [FourierKernel, MatrixKernel]

# (B, K_in, K_out, H, W, S): one, odd, prime and full-size; one tile, many, and a kernel larger
# than the image.
SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 2, 1, 7, 3),
    (1, 2, 3, 9, 11, 15),
    (3, 2, 2, 31, 37, 7),
    (2, 3, 3, 150, 97, 15),
    (1, 2, 1, 65, 200, 33),
]


def case(shape, dtype=torch.float64, seed=0):
    batch, k_in, k_out, height, width, size = shape
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, k_in, height, width, generator=generator, dtype=torch.float64)
    weight = torch.randn(k_out, k_in, size, size, generator=generator, dtype=torch.float64)
    return x.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_()


def outputs(form, x, weight):
    """The result and its gradients for x and weight."""
    conv = F.conv2d(x, weight, padding=weight.shape[-1] // 2)
    out = conv if form is None else form.prepare(weight, x)(x)
    generator = torch.Generator().manual_seed(1)
    seen = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out.dtype)
    return out, *torch.autograd.grad(out, (x, weight), seen)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_equal_to_the_direct_form_in_double_precision(form, shape):
    x, weight = case(shape)
    for ours, theirs in zip(outputs(form, x, weight), outputs(None, x, weight), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.fixture
def one_thread():
    """Several threads sum in several parts, which makes conv2d's gradients more accurate."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(2, 25, 25, 40, 53, 15), (1, 3, 3, 150, 150, 15)])
def test_error_in_single_precision_is_at_most_twice_that_of_conv2d(form, shape):
    exact = outputs(None, *case(shape))
    plain = outputs(None, *case(shape, torch.float32))
    ours = outputs(form, *case(shape, torch.float32))
    for truth, theirs, mine in zip(exact, plain, ours, strict=True):
        allowed = 2 * (theirs - truth).square().mean().sqrt()
        assert (mine - truth).square().mean().sqrt() <= allowed


@pytest.mark.parametrize("form", FORMS)
def test_first_and_second_derivatives(form):
    x, weight = case((1, 2, 2, 4, 3, 3))
    assert torch.autograd.gradcheck(lambda x, w: form.prepare(w, x)(x), (x, weight))
    assert torch.autograd.gradgradcheck(lambda x, w: form.prepare(w, x)(x), (x, weight))


# In these two torch itself does what it has deprecated.
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("form", FORMS)
def test_forward_mode_derivatives(form):
    x, weight = (each.detach() for each in case((2, 2, 3, 9, 7, 3)))
    inputs = x, weight

    def convolve(x, weight):
        return form.prepare(weight, x)(x)

    _, change = torch.func.jvp(convolve, inputs, (x.cos(), weight.cos()))
    expected = convolve(x.cos(), weight) + convolve(x, weight.cos())
    torch.testing.assert_close(change, expected, rtol=1e-11, atol=1e-11)
    forward = torch.func.jacfwd(convolve, argnums=1)(*inputs)
    torch.testing.assert_close(forward, torch.func.jacrev(convolve, argnums=1)(*inputs))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("form", FORMS)
def test_a_compiler_traces_training_in_one_graph(form):
    x, weight = case((2, 2, 3, 9, 7, 3))
    torch.compiler.reset()
    compiled = torch.compile(
        lambda x, weight: form.prepare(weight, x)(x), backend="eager", fullgraph=True
    )
    expected = form.prepare(weight, x)(x)
    torch.testing.assert_close(compiled(x, weight), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(form, dtype):
    x, weight = case((2, 3, 3, 33, 20, 7), dtype)
    out = form.prepare(weight, x)(x)
    expected = form.prepare(weight.float(), x.float())(x.float()).to(dtype)
    assert out.dtype == dtype
    assert torch.equal(out, expected)


def test_autocast_leaves_the_transforms_in_single_precision():
    x, weight = case((1, 3, 3, 33, 20, 7), torch.float32)
    expected = MatrixKernel.prepare(weight, x)(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(MatrixKernel.prepare(weight, x)(x), expected)


@pytest.mark.parametrize("form", FORMS)
def test_no_memory_is_read_before_it_is_written(form):
    x, weight = case((2, 3, 2, 70, 41, 15))
    conv = form.prepare(weight, x)
    clean = conv(x)
    torch.use_deterministic_algorithms(True)  # fills new memory with NaN
    try:
        assert torch.equal(conv(x), clean)
        assert torch.equal(form.prepare(weight, x).spectrum, conv.spectrum)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("form", FORMS)
def test_an_image_does_not_depend_on_its_batch(form):
    x, weight = case((20, 4, 4, 64, 64, 15))
    conv = form.prepare(weight, x)
    torch.testing.assert_close(conv(x)[7:8], conv(x[7:8]), rtol=0, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_nan_stays_in_its_image(form):
    x, weight = case((3, 2, 2, 40, 40, 15), torch.float32)
    with torch.no_grad():
        x[1, 0, 20, 20] = torch.nan
        out = form.prepare(weight, x)(x)
    assert out[1].isnan()[:, 13:28, 13:28].all()
    assert out[[0, 2]].isfinite().all()
