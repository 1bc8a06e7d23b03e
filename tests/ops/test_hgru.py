import math

import pytest
import torch

from hgru_vision.circuits import HGRU, HGRUReleased
from hgru_vision.circuits.lesions import HGRUNoLinear, HGRUNoTimeGain


def layer_and_tensors(device, *, kind=HGRU, channels=3, kernel_size=3, timesteps=2, size=(2, 3, 4)):
    batch, height, width = size
    generator = torch.Generator().manual_seed(0)
    layer = kind(channels, kernel_size, timesteps, generator=generator)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
    shape = batch, channels, height, width
    x, state, gradient = (torch.randn(shape, generator=generator) for _ in range(3))
    return layer.to(device), x.to(device), state.to(device), gradient.to(device)


def outcomes(run, layer, x, state, gradient):
    """The last state and the gradients of drive, first state and parameters."""
    x = x.clone().requires_grad_()
    state = None if state is None else state.clone().requires_grad_()
    out = run(x, state)
    learnt = [each for each in layer.parameters() if each.requires_grad]
    wrt = [x, *([] if state is None else [state]), *learnt]
    return [out, *torch.autograd.grad(out, wrt, gradient)]


def errors(gpu_forms, layer, x, state, gradient, *, steps, storage):
    def at_once(x, state):
        names = gpu_forms.hgru.Parameters._fields[1:]
        parameters = gpu_forms.hgru.Parameters(layer.w(), *(getattr(layer, n) for n in names))
        return gpu_forms.hgru.run(x, state, parameters, steps, storage)

    got = outcomes(at_once, layer, x, state, gradient)
    layer.double()
    layer.backend = "reference"
    doubled = [None if each is None else each.double() for each in (x, state, gradient)]
    expected = outcomes(lambda x, s: layer(x, s, timesteps=steps), layer, *doubled)
    layer.float()
    return [
        float(((g.double() - e).norm() / e.norm().clamp(min=1e-30)).detach())
        for g, e in zip(got, expected, strict=True)
    ]


def test_it_is_the_circuit_from_zero(gpu_forms, poisoned):
    layer, x, _, gradient = layer_and_tensors(gpu_forms.device)
    found = errors(gpu_forms, layer, x, None, gradient, steps=2, storage=torch.float32)
    assert max(found) < 5e-6


def test_it_is_the_circuit_from_a_state_and_beyond_its_steps(gpu_forms, poisoned):
    layer, x, state, gradient = layer_and_tensors(gpu_forms.device, channels=17, size=(1, 2, 3))
    found = errors(gpu_forms, layer, x, state, gradient, steps=3, storage=torch.float32)
    assert max(found) < 5e-6


@pytest.mark.parametrize("kind", [HGRUNoLinear, HGRUNoTimeGain])
def test_lesions(gpu_forms, kind):
    layer, x, _, gradient = layer_and_tensors(gpu_forms.device, kind=kind, channels=2)
    found = errors(gpu_forms, layer, x, None, gradient, steps=2, storage=torch.float32)
    assert max(found) < 5e-6


def test_the_circuit_gives_its_parameters_by_their_names(gpu_forms, monkeypatch):
    layer, x, _, _ = layer_and_tensors("cpu")
    monkeypatch.setattr("hgru_vision.circuits.hgru.storage_at_once", lambda *a: torch.float32)
    monkeypatch.setattr(gpu_forms.hgru, "run", lambda x, state, parameters, *a: parameters)
    (w, *others), names = layer.run_at_once(x, None, 2), gpu_forms.hgru.Parameters._fields
    assert torch.equal(w, layer.w())
    assert all(map(torch.equal, others, (layer.get_parameter(name) for name in names[1:])))


def test_the_released_circuit_is_a_case_of_it(gpu_forms, poisoned, monkeypatch):
    layer, x, state, gradient = layer_and_tensors(gpu_forms.device, kind=HGRUReleased)
    monkeypatch.setattr("hgru_vision.circuits.hgru.storage_at_once", lambda *a: torch.float32)
    layer.norm.requires_grad_(False)  # which follows the steps
    got = outcomes(lambda x, s: layer.run_at_once(x, s, 3), layer, x, state, gradient)
    layer.double().backend = "reference"
    doubled = [each.double() for each in (x, state, gradient)]

    def step_by_step(x, state):
        return layer(x, state, timesteps=3, return_trajectory=True).h2[-1]

    expected = outcomes(step_by_step, layer, *doubled)
    for ours, exact in zip(got, expected, strict=True):
        assert (ours.double() - exact).norm() < 5e-6 * exact.norm()


# The released W is free: its sums over what comes out are not those over what goes in.
def test_float16_holds_gradients_through_a_kernel_that_is_not_symmetric(gpu_forms, monkeypatch):
    layer, x, _, _ = layer_and_tensors(
        gpu_forms.device, kind=HGRUReleased, channels=8, kernel_size=1, size=(1, 2, 2)
    )
    with torch.no_grad():
        layer.w[:, 0] += 100  # sums of 100 and 800
        for each in (layer.gamma, layer.kappa, layer.eta):
            each.fill_(1)
        layer.b2.fill_(-9)  # the new state alone
    monkeypatch.setattr("hgru_vision.circuits.hgru.storage_at_once", lambda *a: torch.float16)
    x = (1e-4 * x).requires_grad_()
    (got,) = torch.autograd.grad(layer.run_at_once(x, None, 1).sum(), x)
    layer.backend = "reference"
    out = layer(x, timesteps=1, return_trajectory=True).h2
    (expected,) = torch.autograd.grad(out.sum(), x)
    assert (got - expected).norm() < 1e-2 * expected.norm()


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_without_gradients_little_is_kept(gpu_forms, monkeypatch, context):
    layer, x, _, _ = layer_and_tensors(gpu_forms.device, channels=1, size=(1, 1, 1))
    spectra, counts = gpu_forms.hgru.Layer.spectra, []
    monkeypatch.setattr(
        gpu_forms.hgru.Layer, "spectra", lambda self, n: counts.append(n) or spectra(self, n)
    )
    names = gpu_forms.hgru.Parameters._fields[1:]
    with context():
        parameters = gpu_forms.hgru.Parameters(layer.w(), *(getattr(layer, n) for n in names))
        gpu_forms.hgru.run(x, None, parameters, 2, torch.float16)
    assert set(counts) == {1}


# Uses of the kernel whose gradients are added together, from the last to the first.
@pytest.mark.parametrize(
    ("images", "from_zero", "groups"),
    [(1, True, [1, 2, 2]), (1, False, [1, 2, 2, 1]), (3, False, [1, 2, 3])],
)
def test_the_kernels_gradient_is_summed_in_groups(
    gpu_forms, poisoned, monkeypatch, images, from_zero, groups
):
    monkeypatch.setattr(gpu_forms.hgru, "_IMAGES_A_SUM", images)
    added, rooms = [], []
    mix_gradient, spectra = gpu_forms.hgru.mix_gradient, gpu_forms.hgru.Layer.spectra

    def count(forward, backward, *args, **keywords):
        assert len(forward) == len(backward)
        added.append(len(forward))
        return mix_gradient(forward, backward, *args, **keywords)

    def make(self, number):
        rooms.append(number)
        return spectra(self, number)

    monkeypatch.setattr(gpu_forms.hgru, "mix_gradient", count)
    monkeypatch.setattr(gpu_forms.hgru.Layer, "spectra", make)
    layer, x, state, gradient = layer_and_tensors(gpu_forms.device, channels=2, size=(1, 2, 2))
    given = layer, x, None if from_zero else state, gradient
    assert max(errors(gpu_forms, *given, steps=3, storage=torch.float32)) < 5e-6
    assert added == groups
    assert rooms == [1, sum(groups) + 1]  # to work in, and no more than one besides those kept


def test_more_channels_than_a_warp_holds(gpu_forms, poisoned):
    layer, x, state, gradient = layer_and_tensors(gpu_forms.device, channels=33, size=(1, 3, 2))
    found = errors(gpu_forms, layer, x, state, gradient, steps=2, storage=torch.float32)
    assert max(found) < 2e-5


def test_float32_holds_small_drives(gpu_forms, poisoned):
    layer, x, _, gradient = layer_and_tensors(gpu_forms.device, channels=1, size=(1, 2, 2))
    found = errors(gpu_forms, layer, 1e-6 * x, None, gradient, steps=2, storage=torch.float32)
    assert max(found) < 1e-5


def test_a_gradient_that_vanishes_stays_finite(gpu_forms, poisoned):
    layer, x, _, gradient = layer_and_tensors(
        gpu_forms.device, channels=1, kernel_size=1, size=(1, 1, 1)
    )
    torch.nn.init.zeros_(layer.eta)  # nothing goes back to the steps before the last
    found = errors(gpu_forms, layer, x, None, 1e-38 * gradient, steps=8, storage=torch.float16)
    assert all(map(math.isfinite, found))


@pytest.mark.parametrize("scale", [1e-8, 1e5])
def test_float16_holds_small_and_large_gradients(gpu_forms, poisoned, scale):
    layer, x, _, gradient = layer_and_tensors(gpu_forms.device)
    found = errors(gpu_forms, layer, x, None, gradient * scale, steps=2, storage=torch.float16)
    assert max(found) < 5e-3


def test_the_result_is_not_rounded(gpu_forms):
    layer, x, state, _ = layer_and_tensors(gpu_forms.device, timesteps=1)
    names = gpu_forms.hgru.Parameters._fields[1:]
    parameters = gpu_forms.hgru.Parameters(layer.w(), *(getattr(layer, n) for n in names))
    with torch.no_grad():
        out = gpu_forms.hgru.run(x, state, parameters, 1, torch.float16)
    assert out.dtype == torch.float32
    assert not torch.equal(out, out.half().float())


def test_a_result_too_large_for_float16_saturates(gpu_forms):
    layer = HGRU(2, 3, timesteps=2).to(gpu_forms.device)
    with torch.no_grad():
        layer.w.pairs.fill_(1.1e3)  # the sum over the image is more than float16 holds
        for each in (layer.kappa, layer.beta, layer.omega):
            each.fill_(0.5)
    x = torch.full((1, 2, 8, 8), 9.0, device=gpu_forms.device)
    _, _, state, gradient = layer_and_tensors(gpu_forms.device, channels=2, size=(1, 8, 8))
    found = errors(gpu_forms, layer, x, 0 * state, gradient, steps=2, storage=torch.float16)
    assert found[0] < 1e-3
    assert all(math.isfinite(each) for each in found)


def test_a_state_has_fifteen_bits_of_each_pixels_largest_channel(gpu_forms, poisoned):
    image = torch.randn(2, 8, 3, 5, generator=torch.Generator().manual_seed(0))
    image *= 10.0 ** torch.arange(-25, 5).view(2, 1, 3, 5)
    image[1, :, 2, 4] = torch.tensor([1, -1, 0.5, 2**-16, 1 - 2**-20, -0.75, 0, 2**-15])
    image[1, :, 2, 3], image[1, 0, 2, 3] = 0, 1 - 2**-20  # rounds up to where integers end
    image[0, :, 0, 0], image[0, 3, 0, 1], image[0, 4, 1, 2] = 0, float("nan"), float("-inf")
    layer = HGRU(8, 3, 1).to(gpu_forms.device)
    names = gpu_forms.hgru.Parameters._fields[1:]
    parameters = gpu_forms.hgru.Parameters(layer.w(), *(getattr(layer, n) for n in names))
    with torch.no_grad():
        made = gpu_forms.hgru.Layer(image.shape, parameters, torch.float16, gpu_forms.device)
    numbers, exponents = made.keep(image.to(gpu_forms.device))
    got = (numbers.cpu().double() - 2**15) * 2.0 ** (exponents.cpu()[..., None].double() - 15)
    assert (got[:, 5:] == 0).all()  # beyond the image
    got, marked = (each[:, :5].movedim((0, 1), (-2, -1)) for each in (got, exponents.cpu() == 127))
    finite = image.isfinite().all(1)
    assert (marked == ~finite).all()
    got, image = got.movedim(1, -1)[finite], image.movedim(1, -1)[finite].double()
    assert ((got - image).abs() <= image.abs().amax(1, keepdim=True) * 2**-15).all()


def test_a_number_that_is_not_finite_stays_in_its_image(gpu_forms, poisoned):
    layer, x, state, _ = layer_and_tensors(gpu_forms.device)
    names = gpu_forms.hgru.Parameters._fields[1:]
    parameters = gpu_forms.hgru.Parameters(layer.w(), *(getattr(layer, n) for n in names))
    broken = x.clone()
    broken[0, 1, 2, 1] = float("nan")
    for drive, first in ((broken, state), (x, broken)):
        with torch.no_grad():
            out = gpu_forms.hgru.run(drive, first, parameters, 2, torch.float16)
        assert out[0].isnan().any()
        assert out[1].isfinite().all()


@pytest.mark.parametrize(("storage", "error"), [(torch.float32, 5e-6), (torch.float16, 5e-3)])
@pytest.mark.parametrize("from_zero", [True, False])
def test_one_step(gpu_forms, poisoned, from_zero, storage, error):
    layer, x, state, gradient = layer_and_tensors(gpu_forms.device, timesteps=1, size=(1, 1, 1))
    given = layer, x, None if from_zero else state, gradient
    assert max(errors(gpu_forms, *given, steps=1, storage=storage)) < error


def test_a_second_way_back_is_refused(gpu_forms):
    layer, x, _, gradient = layer_and_tensors(gpu_forms.device, timesteps=1, size=(1, 1, 1))
    names = gpu_forms.hgru.Parameters._fields[1:]
    parameters = gpu_forms.hgru.Parameters(layer.w(), *(getattr(layer, n) for n in names))
    out = gpu_forms.hgru.run(x, None, parameters, 1, torch.float32)
    out.backward(gradient, retain_graph=True)
    with pytest.raises(RuntimeError, match="can run only once; for more, run the forward pass"):
        out.backward(gradient)


# Torch's own compiler looks for it where a graph ends.
def test_a_compiler_leaves_it_as_it_is(gpu_forms):
    torch.compiler.reset()
    layer, x, _, gradient = layer_and_tensors(gpu_forms.device, timesteps=1, size=(1, 1, 1))
    names = gpu_forms.hgru.Parameters._fields[1:]

    def network(x, state):
        parameters = gpu_forms.hgru.Parameters(layer.w(), *(getattr(layer, n) for n in names))
        return gpu_forms.hgru.run(2 * x, state, parameters, 1, torch.float32).sigmoid()

    compiled = torch.compile(network, backend="aot_eager")
    expected, got = (outcomes(run, layer, x, None, gradient) for run in (network, compiled))
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    whole = torch.compile(network, backend="aot_eager", fullgraph=True)
    with pytest.raises(RuntimeError, match=r"are not traced, so that fullgraph=True is not for"):
        whole(x, None)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("channels", "kernel_size", "size"),
    [(25, 15, (2, 150, 150)), (64, 7, (1, 97, 31)), (128, 5, (1, 33, 64)), (1, 3, (3, 17, 1))],
)
def test_errors_at_full_size(gpu_forms, poisoned, channels, kernel_size, size):
    layer, x, state, gradient = layer_and_tensors(
        gpu_forms.device, channels=channels, kernel_size=kernel_size, timesteps=3, size=size
    )
    if channels > 1:  # with one, smaller parameters would leave 1e-8 of the first gate's gradient
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(1 / kernel_size)
    given = layer, x, state, gradient
    assert max(errors(gpu_forms, *given, steps=3, storage=torch.float32)) < 2e-5
    assert max(errors(gpu_forms, *given, steps=3, storage=torch.float16)) < 1e-2


@pytest.mark.gpu
def test_it_is_deterministic():
    layer = HGRU().cuda()
    x = torch.rand(4, 25, 150, 150, device="cuda")
    runs = []
    for _ in range(2):
        out = layer(x)
        runs.append([out, *torch.autograd.grad(out.square().sum(), list(layer.parameters()))])
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
