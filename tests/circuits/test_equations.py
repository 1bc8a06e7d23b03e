"""Every circuit against a transcription of its equations in loops over scalars.

The transcriptions call no convolution and no tensor function; they were written from the paper (and
from the authors' code for the released form), not from the layers.
"""

from math import exp, sqrt, tanh

import numpy as np
import pytest
import torch

from hgru_vision.circuits import (
    HGRU,
    ConvGRU,
    ConvGRU2L,
    HGRUBatchNorm,
    HGRUGatesWithDrive,
    HGRUNonnegative,
    HGRUReleased,
    HGRUSeparateKernels,
)


def sigmoid(value):
    return 1 / (1 + exp(-value))


def relu(value):
    return max(value, 0.0)


def each(function, *arrays):
    """Apply a function of numbers to every place of arrays of one shape."""
    out = np.empty_like(arrays[0])
    for place in np.ndindex(out.shape):
        out[place] = function(*(array[place] for array in arrays))
    return out


def by_channel(function, *arrays):
    """Like `each`, with the channel as the function's first argument."""
    out = np.empty_like(arrays[0])
    for k, y, x in np.ndindex(out.shape):
        out[k, y, x] = function(k, *(array[k, y, x] for array in arrays))
    return out


def convolve(weight, image):
    """Sum over input channels and offsets; nothing beyond the border."""
    channels, height, width = image.shape
    radius = weight.shape[-1] // 2
    out = np.zeros_like(image)
    for k, y, x in np.ndindex(channels, height, width):
        for j in range(channels):
            for dy in range(-radius, radius + 1):
                for dx in range(-radius, radius + 1):
                    if 0 <= y + dy < height and 0 <= x + dx < width:
                        weight_there = weight[k, j, radius + dy, radius + dx]
                        out[k, y, x] += weight_there * image[j, y + dy, x + dx]
    return out


def values(layer):
    """The layer's parameters and statistics as flat-ish numpy arrays."""
    out = {name: tensor.detach().numpy() for name, tensor in layer.state_dict().items()}
    return {
        k: v.reshape(-1) if v.ndim == 3 and v.shape[1:] == (1, 1) else v for k, v in out.items()
    }


def whole(pairs, channels):
    """The symmetric kernel from the stored pairs i <= j."""
    weight = np.empty((channels, channels, *pairs.shape[1:]))
    number = 0
    for i in range(channels):
        for j in range(i, channels):
            weight[i, j] = weight[j, i] = pairs[number]
            number += 1
    return weight


def hgru(x, h2, p, t, w_i, w_e, zeta=tanh, drive=0.0):
    """Eqs. 3 to 9. `drive` is 1 where the gates see X."""
    a1 = convolve(p["u1"], h2)
    g1 = by_channel(lambda k, a, d: sigmoid(a + p["b1"][k] + drive * d), a1, x)
    c1 = convolve(w_i, each(lambda g, h: g * h, g1, h2))
    h1 = by_channel(lambda k, d, c, h: zeta(d - c * (p["alpha"][k] * h + p["mu"][k])), x, c1, h2)
    a2 = convolve(p["u2"], h1)
    g2 = by_channel(lambda k, a, d: sigmoid(a + p["b2"][k] + drive * d), a2, x)
    c2 = convolve(w_e, h1)
    new = by_channel(
        lambda k, h, c: zeta(p["kappa"][k] * h + p["beta"][k] * c + p["omega"][k] * h * c), h1, c2
    )
    h2 = each(lambda h, n, g: p["eta"][t] * (h * (1 - g) + n * g), h2, new, g2)
    return h1, h2, g1, g2


def hgru_batch_norm(x, h2, p, t, w_i, w_e, zeta=tanh):
    """The supplement's hGRU-BN with given statistics."""

    def norm(name, array):
        mean, variance = p[f"norm_{name}.running_mean"][t], p[f"norm_{name}.running_var"][t]
        delta, nu = p[f"norm_{name}.delta"][t], p[f"norm_{name}.nu"][t]
        return by_channel(
            lambda k, a: nu[k] + delta[k] * (a - mean[k]) / sqrt(variance[k] + 1e-3), array
        )

    g1 = each(sigmoid, norm("g1", convolve(p["u1"], h2)))
    c1 = norm("c1", convolve(w_i, each(lambda g, h: g * h, g1, h2)))
    h1 = by_channel(lambda k, d, c, h: zeta(d - c * (p["alpha"][k] * h + p["mu"][k])), x, c1, h2)
    g2 = each(sigmoid, norm("g2", convolve(p["u2"], h1)))
    c2 = norm("c2", convolve(w_e, h1))
    new = by_channel(
        lambda k, h, c: zeta(p["kappa"][k] * h + p["beta"][k] * c + p["omega"][k] * h * c), h1, c2
    )
    return h1, each(lambda h, n, g: h * (1 - g) + n * g, h2, new, g2), g1, g2


def released(x, h2, p, t):
    """The authors' `circuit_input`, `input_integration`, `circuit_output`, `output_integration`."""
    a1 = convolve(p["u1"], h2)
    g1 = by_channel(lambda k, a: sigmoid(a + p["b1"][k]), a1)
    c1 = convolve(p["w"], each(lambda g, h: g * h, g1, h2))
    h1 = by_channel(lambda k, d, c, h: tanh(d - (p["alpha"][k] * h + p["mu"][k]) * c), x, c1, h2)
    a2 = convolve(p["u2"], h1)
    g2 = by_channel(lambda k, a: sigmoid(a + p["b2"][k]), a2)
    e = by_channel(lambda k, c: p["gamma"][k] * c, convolve(p["w"], h1))
    new = by_channel(lambda k, h, e: tanh(p["kappa"][k] * (h + e) + p["omega"][k] * h * e), h1, e)
    h2 = each(lambda h, n, g: (g * h + (1 - g) * n) * p["eta"][t], h2, new, g2)
    return h1, h2, g1, g2


def gru(x, h, p, layers):
    """The supplement's diagram of the GRU, with one or two layers in the candidate."""
    a1, a2 = convolve(p["u1"], h), convolve(p["u2"], h)
    g1 = by_channel(lambda k, a: sigmoid(a + p["b1"][k]), a1)
    g2 = by_channel(lambda k, a: sigmoid(a + p["b2"][k]), a2)
    c = convolve(p["w"], each(lambda g, h: g * h, g1, h))
    new = by_channel(lambda k, d, c: tanh(d + c + p["b"][k]), x, c)
    if layers == 2:
        new = by_channel(lambda k, c: tanh(c + p["b_2l"][k]), convolve(p["w_2l"], new))
    return new, each(lambda h, n, g: h * (1 - g) + n * g, h, new, g2), g1, g2


def transcribed_step(layer, x, h2, t, p):
    channels = layer.channels
    match layer:
        case HGRUReleased():
            return released(x, h2, p, t)
        case ConvGRU2L():
            return gru(x, h2, p, layers=2)
        case ConvGRU():
            return gru(x, h2, p, layers=1)
    w_i = whole(p["w.pairs"], channels)
    w_e = whole(p["w_e.pairs"], channels) if "w_e.pairs" in p else w_i
    match layer:
        case HGRUNonnegative():
            return hgru_batch_norm(x, h2, p, t, w_i, w_e, zeta=relu)
        case HGRUBatchNorm():
            return hgru_batch_norm(x, h2, p, t, w_i, w_e)
        case HGRUGatesWithDrive():
            return hgru(x, h2, p, t, w_i, w_e, drive=1.0)
        case _:
            return hgru(x, h2, p, t, w_i, w_e)


def scrambled(cls, *args, generator, **kwargs):
    """A float64 layer in evaluation mode, none of whose values is at a special place."""
    layer = cls(*args, **kwargs).double().eval()
    for name, tensor in layer.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand(tensor.shape, generator=generator, dtype=torch.float64) - 0.4)
            if name.endswith("running_var"):
                tensor.abs_().add_(0.1)
    return layer


def assert_follows(layer, generator, size):
    x, state = (
        torch.randn(2, layer.channels, *size, generator=generator, dtype=torch.float64)
        for _ in range(2)
    )
    p = values(layer)
    expected = []
    for image in range(2):
        h2 = state[image].numpy()
        for t in range(layer.timesteps):
            expected.append(transcribed_step(layer, x[image].numpy(), h2, t, p))
            h2 = expected[-1][1]
    expected = np.array(expected).reshape(2, layer.timesteps, 4, *x.shape[1:])
    for layer.backend in ("reference", "fft", "matmul"):
        got = torch.stack(layer(x, state=state, return_trajectory=True)).detach()
        np.testing.assert_allclose(got.permute(2, 1, 0, 3, 4, 5), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 4), (5, 7), (9, 9)])
def test_hgru_follows_the_equations(channels, size):
    generator = torch.Generator().manual_seed(channels)
    kernel_size = 3 if channels > 2 else 5
    layer = scrambled(HGRU, channels, kernel_size, 2, generator=generator)
    assert_follows(layer, generator, size)


VARIANTS = [
    HGRUSeparateKernels,
    HGRUGatesWithDrive,
    HGRUBatchNorm,
    HGRUNonnegative,
    HGRUReleased,
    ConvGRU,
    ConvGRU2L,
]


@pytest.mark.parametrize("cls", VARIANTS)
@pytest.mark.parametrize("size", [(1, 1), (6, 5)])
def test_variants_follow_their_equations(cls, size):
    generator = torch.Generator().manual_seed(0)
    assert_follows(scrambled(cls, 3, 3, 3, generator=generator), generator, size)


def test_a_released_checkpoint_gives_the_transcribed_output():
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.rand(shape, generator=generator, dtype=torch.float64) - 0.4

    channels, size, timesteps = 3, 5, 4
    checkpoint = {
        "w.weight": draw(channels, channels, size, size),
        "u_1.weight": draw(channels, channels, 1, 1),
        "u_2.weight": draw(channels, channels, 1, 1),
        "n": draw(timesteps, 1, 1),
        "bn.weight": draw(channels),
        "bn.bias": draw(channels),
        "bn.running_mean": draw(channels),
        "bn.running_var": draw(channels).abs(),
        "bn.num_batches_tracked": torch.tensor(7),
    }
    for name in ("b_1", "b_2", "alpha", "mu", "gamma", "kappa", "omega"):
        checkpoint[name] = draw(1, channels, 1, 1)
    x = draw(1, channels, 6, 7)
    p = {name: tensor.flatten().numpy() for name, tensor in checkpoint.items()}
    p |= {"b1": p["b_1"], "b2": p["b_2"], "eta": p["n"], "w": checkpoint["w.weight"].numpy()}
    p |= {"u1": checkpoint["u_1.weight"].numpy(), "u2": checkpoint["u_2.weight"].numpy()}

    h2 = np.zeros(x.shape[1:])
    for t in range(timesteps):
        _, h2, _, _ = released(x[0].numpy(), h2, p, t)
    expected = by_channel(
        lambda k, h: (
            p["bn.bias"][k]
            + p["bn.weight"][k]
            * (h - p["bn.running_mean"][k])
            / sqrt(p["bn.running_var"][k] + 1e-3)
        ),
        h2,
    )
    theirs = checkpoint["u_1.weight"].permute(2, 3, 0, 1)  # as TensorFlow has it
    with pytest.raises(
        ValueError, match=r"u_1\.weight is \(1, 1, 3, 3\); it must be \(3, 3, 1, 1\)"
    ):
        HGRUReleased.from_checkpoint(checkpoint | {"u_1.weight": theirs})
    with pytest.raises(ValueError, match=r"alpha is \(1, 4, 1, 1\); it must be \(3, 1, 1\)"):
        HGRUReleased.from_checkpoint(checkpoint | {"alpha": draw(1, 4, 1, 1)})
    layer = HGRUReleased.from_checkpoint(checkpoint).eval()
    np.testing.assert_allclose(layer(x)[0].detach(), expected, rtol=0, atol=1e-10)
