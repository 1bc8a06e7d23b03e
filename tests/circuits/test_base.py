"""What every circuit promises, checked on every circuit."""

import copy
import sys

import pytest
import torch

from hgru_vision import circuits
from hgru_vision.circuits import HGRU, Circuit, EquilibriumHGRU, HGRUBatchNorm, Trajectory

# The gradient of an equilibrium is not that of its steps: `test_equilibrium.py` has its promises.
NOT_UNROLLED = (Circuit, EquilibriumHGRU)
CONCRETE = [
    cls
    for cls in (getattr(circuits, name) for name in circuits.__all__)
    if isinstance(cls, type) and issubclass(cls, Circuit) and cls not in NOT_UNROLLED
]
every_circuit = pytest.mark.parametrize("cls", CONCRETE)


def drive(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@every_circuit
def test_gradients(cls):
    layer = cls(channels=2, kernel_size=3, timesteps=2, start="learned").double().eval()
    x = drive(1, 2, 3, 2, dtype=torch.float64).requires_grad_()
    names = [name for name, _ in layer.named_parameters()]
    # Zeros are kinks of the ReLU; every value is moved off its start.
    values = [p.detach() + 0.1 for p in layer.parameters()]

    def run(x, *values):
        parameters = dict(zip(names, values, strict=True))
        return torch.func.functional_call(layer, parameters, (x,))

    inputs = x, *(v.requires_grad_() for v in values)
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@every_circuit
def test_trajectory_ends_in_the_output_and_every_step_follows_from_the_last(cls):
    layer = cls(channels=2, kernel_size=3, timesteps=3).eval()
    x = drive(2, 2, 6, 5)
    trajectory = layer(x, return_trajectory=True)
    assert isinstance(trajectory, Trajectory)
    assert all(each.shape == (3, 2, 2, 6, 5) for each in trajectory)
    for ours, theirs in zip(layer.step(x, trajectory.h2[1], 2), trajectory, strict=True):
        torch.testing.assert_close(ours, theirs[2])
    again = layer(x, state=trajectory.h2[0], timesteps=1, return_trajectory=True)
    assert again.h2.shape == (1, 2, 2, 6, 5)


@every_circuit
@pytest.mark.parametrize("timesteps", [1, 2])
def test_few_steps(cls, timesteps):
    layer = cls(channels=2, kernel_size=3, timesteps=timesteps)
    assert layer(drive(2, 2, 4, 4)).isfinite().all()


@every_circuit
def test_more_steps_than_trained_go_on_with_the_last_values(cls):
    layer = cls(channels=2, kernel_size=3, timesteps=2).double().eval()
    for p in layer.parameters():
        p.data += 0.1 * torch.arange(len(p)).reshape(-1, *[1] * (p.ndim - 1))
    x = drive(1, 2, 4, 4, dtype=torch.float64)
    states = layer(x, timesteps=5, return_trajectory=True).h2
    torch.testing.assert_close(states[:2], layer(x, return_trajectory=True).h2)
    torch.testing.assert_close(layer.step(x, states[3], 1).h2, states[4])


@every_circuit
@pytest.mark.parametrize("training", [True, False])
def test_checkpoint_changes_nothing_but_memory(cls, training):
    plain = cls(channels=2, kernel_size=3, timesteps=3).double().train(training)
    saving = copy.deepcopy(plain)
    saving.checkpoint = True
    x = drive(2, 2, 6, 5, dtype=torch.float64)
    for layer in (plain, saving):
        layer(x).square().sum().backward()
    for ours, theirs in zip(saving.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for ours, theirs in zip(saving.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("cls", [HGRU, HGRUBatchNorm])
def test_a_checkpoint_gives_gradients_twice(cls):
    layer = cls(channels=2, kernel_size=3, timesteps=2, checkpoint=True)
    loss = layer(drive(2, 2, 6, 5)).square().sum()
    statistics = [buffer.clone() for buffer in layer.buffers()]
    loss.backward(retain_graph=True)
    once = [parameter.grad.clone() for parameter in layer.parameters()]
    loss.backward()
    for parameter, gradient in zip(layer.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * gradient)
    assert all(torch.equal(a, b) for a, b in zip(layer.buffers(), statistics, strict=True))


def test_without_gradients_a_checkpoint_is_in_no_ones_way(monkeypatch):
    asked = []
    monkeypatch.setattr(HGRU, "run_at_once", lambda *a: asked.append(a))
    layer = HGRU(channels=2, kernel_size=3, timesteps=2, checkpoint=True)
    layer(drive(1, 2, 6, 5))
    assert not asked
    with torch.no_grad():
        layer(drive(1, 2, 6, 5))
    assert asked


def test_a_trajectory_is_never_run_at_once(monkeypatch):
    monkeypatch.setattr(HGRU, "run_at_once", lambda self, x, *_: x)
    layer, x = HGRU(channels=2, kernel_size=3, timesteps=2), drive(1, 2, 6, 5)
    assert layer(x) is x
    assert isinstance(layer(x, return_trajectory=True), Trajectory)


@pytest.mark.parametrize("cls", [HGRU, EquilibriumHGRU])
def test_the_steps_work_on_the_drive_in_the_order_of_its_convolution(monkeypatch, cls):
    asked, module = [], sys.modules[cls.forward.__module__]
    monkeypatch.setattr(module, "in_order", lambda x, *case: asked.append(case) or 2 * x)
    layer, x = cls(channels=2, kernel_size=3, timesteps=2, backend="fft"), drive(1, 2, 6, 5)
    ordered = layer(x)
    assert asked == [(2, 3, "fft")]
    monkeypatch.undo()
    torch.testing.assert_close(ordered, layer(2 * x))


@pytest.mark.parametrize("cls", [HGRU, HGRUBatchNorm])
def test_a_checkpoint_is_compiled(cls):
    plain = cls(channels=2, kernel_size=3, timesteps=2)
    saving = copy.deepcopy(plain)
    saving.checkpoint = True
    x = drive(2, 2, 6, 5)
    plain(x).square().sum().backward()
    torch.compile(saving, backend="aot_eager")(x).square().sum().backward()
    for ours, theirs in zip(saving.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for ours, theirs in zip(saving.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)


def saved_numbers(layer, x):
    """How many numbers a forward pass keeps for the backward pass."""
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = layer(x)
    del out
    return sum(kept.values()) / x.element_size()


def test_checkpoint_stores_one_state_a_step():
    x = drive(1, 4, 32, 32)
    saved = {
        (steps, checkpoint): saved_numbers(HGRU(4, 3, steps, checkpoint=checkpoint), x)
        for steps in (4, 8)
        for checkpoint in (True, False)
    }
    # The non-reentrant form keeps its inputs outside the hooks: nothing is left for them to see.
    assert saved[8, True] - saved[4, True] <= 4 * x.numel()
    assert saved[8, False] - saved[4, False] > 4 * 8 * x.numel()


@every_circuit
def test_state_dict_and_deepcopy(cls):
    layer = cls(channels=2, kernel_size=3, generator=torch.Generator().manual_seed(1)).eval()
    x = drive(1, 2, 5, 5)
    other = cls(channels=2, kernel_size=3).eval()
    assert not torch.equal(other(x), layer(x))
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))
    assert torch.equal(copy.deepcopy(layer)(x), layer(x))


@every_circuit
def test_no_global_random_state_is_read_or_moved(cls):
    before = torch.get_rng_state()
    layer = cls(channels=2, kernel_size=3, start="random").eval()
    first = layer(drive(1, 2, 5, 5))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(12345)
    again = cls(channels=2, kernel_size=3, start="random").eval()
    assert torch.equal(again(drive(1, 2, 5, 5)), first)
    torch.set_rng_state(before)


@every_circuit
def test_a_layer_is_on_the_default_device_as_those_of_torch_are(cls):
    with torch.device("meta"):
        layer = cls(3, 3, 2, start="learned")
    assert {value.device.type for value in (*layer.parameters(), *layer.buffers())} == {"meta"}


@every_circuit
@pytest.mark.parametrize("training", [True, False])
def test_a_cpu_takes_a_few_images_at_a_time_and_gives_the_same(cls, training, monkeypatch):
    layer = cls(channels=2, kernel_size=3, timesteps=2).double().train(training)
    x = drive(5, 2, 6, 5, dtype=torch.float64)
    state = copy.deepcopy(layer.state_dict())
    together = layer(x), layer(x, return_trajectory=True).h1
    monkeypatch.setattr(circuits.base, "_CPU_PART", 2 * x[0].numel())
    layer.load_state_dict(state)
    torch.testing.assert_close((layer(x), layer(x, return_trajectory=True).h1), together)


@every_circuit
def test_an_exporter_keeps_the_number_of_images_free(cls):
    layer = cls(channels=2, kernel_size=3, timesteps=2).eval()
    free = {"x": {0: torch.export.Dim("batch")}}
    exported = torch.export.export(layer, (drive(2, 2, 6, 5),), dynamic_shapes=free).module()
    for images in (1, 5):
        x = drive(images, 2, 6, 5)
        torch.testing.assert_close(exported(x), layer(x))


def test_zero_start_is_the_default():
    layer, x = HGRU(2, 3, 2), drive(2, 2, 5, 5)
    assert torch.equal(layer(x), layer(x, state=torch.zeros_like(x)))


def test_random_start_is_fixed_without_a_generator_and_the_same_for_every_image():
    layer, x = HGRU(2, 3, 2, start="random"), drive(2, 2, 5, 5)
    assert torch.equal(layer(x), layer(x))
    torch.testing.assert_close(layer(x)[1:], layer(x[1:]))
    assert not torch.allclose(layer(x), layer(x, state=torch.zeros_like(x)))
    start = layer._first_state(x, None, None)[0]
    assert len(start.unique()) == start.numel()  # a draw for every unit


@pytest.mark.parametrize("strict", [False, True])
def test_an_exporter_does_not_get_a_random_start(strict):
    layer, x = HGRU(2, 3, 2, start="random"), drive(2, 2, 5, 5)
    text = "start is 'random', which an exported network would draw anew in every call; pass state"
    with pytest.raises(Exception, match=text):
        torch.export.export(layer, (x,), strict=strict)
    exported = torch.export.export(layer, (x, x), strict=strict).module()
    torch.testing.assert_close(exported(x, x), layer(x, state=x))


def test_random_start_has_the_dtype_of_the_drive():
    layer, x = HGRU(2, 3, 2, start="random").double(), drive(1, 2, 5, 5, dtype=torch.float64)
    assert layer(x).dtype == layer._first_state(x, None, None).dtype == torch.float64


def test_random_start_under_vmap():
    layer, x = HGRU(2, 3, 2, start="random"), drive(2, 2, 5, 5)
    each = torch.vmap(lambda image: layer(image[None])[0], randomness="same")
    torch.testing.assert_close(each(x), layer(x))


def test_random_start_follows_the_generator():
    layer, x = HGRU(2, 3, 2, start="random"), drive(1, 2, 5, 5).expand(2, -1, -1, -1)

    def run(seed):
        return layer(x, generator=torch.Generator().manual_seed(seed))

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))
    assert not torch.equal(run(1)[0], run(1)[1])
    bound = (3 / (2 * 9)) ** 0.5
    start = layer._first_state(torch.zeros(50, 2, 20, 20), None, torch.Generator().manual_seed(0))
    assert -bound <= start.min() < -0.95 * bound
    assert 0.95 * bound < start.max() <= bound


def test_learned_start_is_a_parameter():
    layer, x = HGRU(2, 3, 2, start="learned"), drive(2, 2, 5, 5)
    layer.h0.data += torch.tensor([0.5, -0.2]).reshape(2, 1, 1)
    assert torch.equal(layer(x), layer(x, state=layer.h0.expand_as(x)))
    layer(x).sum().backward()
    assert (layer.h0.grad != 0).all()


def test_nan_spreads_within_its_image_and_to_no_other():
    x = drive(3, 2, 40, 40)
    x[1, 0, 20, 20] = torch.nan
    for backend in ("reference", "fft", "matmul"):
        out = HGRU(2, 7, 3, backend=backend)(x)
        assert out[1, :, 20, 20].isnan().all()
        assert out[[0, 2]].isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"channels": 0}, "channels is 0; it must be 1 or more"),
        ({"kernel_size": 14}, "kernel_size is 14; it must be odd"),
        ({"kernel_size": -1}, "kernel_size is -1; it must be 1 or more"),
        ({"timesteps": 0}, "timesteps is 0; it must be 1 or more"),
        ({"start": "ones"}, "start is 'ones'; choose one of zero, random, learned"),
        ({"backend": "fast"}, "backend is 'fast'; choose one of auto, reference, fft, matmul"),
    ],
)
def test_bad_arguments(arguments, text):
    with pytest.raises(ValueError, match=text):
        HGRU(**arguments)


@pytest.mark.parametrize("name", ["channels", "kernel_size", "timesteps"])
@pytest.mark.parametrize("value", ["9", 9.0])
def test_numbers_that_are_not_whole_are_refused_in_our_words(name, value):
    with pytest.raises(TypeError, match=f"{name} is {value!r}; it must be a whole number"):
        HGRU(**{name: value})


def test_bad_input():
    layer, x = HGRU(2, 3, 2), torch.zeros(1, 2, 4, 4)
    with pytest.raises(TypeError, match="x is ndarray; this layer takes a torch tensor"):
        layer(x.numpy())
    with pytest.raises(TypeError, match=r"timesteps is 2\.5; it must be a whole number"):
        layer(x, timesteps=2.5)
    with pytest.raises(ValueError, match=r"x has shape \(1, 3, 4, 4\); this layer takes \(B, 2, H"):
        layer(torch.zeros(1, 3, 4, 4))
    with pytest.raises(ValueError, match=r"x has shape \(2, 4, 4\); this layer takes"):
        layer(torch.zeros(2, 4, 4))
    with pytest.raises(ValueError, match=r"x has shape \(1, 2, 0, 4\).*none of them 0"):
        layer(torch.zeros(1, 2, 0, 4))
    with pytest.raises(ValueError, match="timesteps is 0; it must be 1 or more"):
        layer(x, timesteps=0)
    with pytest.raises(ValueError, match=r"state has shape \(1, 2, 4, 5\).* x, \(1, 2, 4, 4\)"):
        layer(x, state=torch.zeros(1, 2, 4, 5))
    with pytest.raises(TypeError, match=r"state is torch.float64 and x torch.float32; convert one"):
        layer(x, state=torch.zeros(1, 2, 4, 4, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"x is torch.float16 and the layer torch.float32; convert"):
        layer(x.half())


class WithoutParameters(Circuit):
    """Follows its drive."""

    def build(self, generator):
        pass

    def prepare(self, x):
        return None

    def step(self, x, h2, t, horizontal=None):
        return Trajectory(x, (h2 + x) / 2, x, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_circuit_without_parameters_takes_any_dtype(dtype):
    x = drive(1, 2, 4, 4, dtype=dtype)
    assert torch.equal(WithoutParameters(2, 3, 2)(x), 0.75 * x)


def test_a_half_precision_layer_runs_on_a_cpu():
    x = drive(1, 2, 8, 8)
    expected = HGRU(2, 3, 2)(x)
    for dtype in (torch.float16, torch.bfloat16):
        out = HGRU(2, 3, 2).to(dtype)(x.to(dtype))
        assert out.dtype == dtype
        torch.testing.assert_close(out.float(), expected, rtol=0, atol=0.02)


def test_the_layer_shows_how_it_was_made():
    assert "channels=2, kernel_size=3, timesteps=8, start='zero'" in repr(HGRUBatchNorm(2, 3))
