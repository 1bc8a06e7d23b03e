import pytest
import torch
import torch.nn.functional as F

from hgru_vision.ops import dft

# Batch, channels in and out, height, width, kernel size: 1, odd, prime, even, not square.
CASES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 4, 20, 23, 7),
    (1, 2, 1, 1, 17, 5),
    (2, 2, 3, 13, 6, 15),
    (1, 1, 2, 31, 8, 31),
]


def planes(image, domain):
    stored = image.new_zeros(*image.shape[2:3], domain.stored_width, *image.shape[:2])
    stored[:, : domain.width] = image.permute(2, 3, 0, 1)
    return stored


def images(stored, domain):
    return stored[:, : domain.width].permute(2, 3, 0, 1)


def mix(spectrum, kernel):
    real, imaginary = spectrum.unbind(1)
    a, b = kernel.unbind(1)
    return torch.stack([real @ a - imaginary @ b, real @ b + imaginary @ a], 1)


@pytest.mark.parametrize("case", CASES)
def test_convolution_and_its_gradients_are_those_of_conv2d(case):
    batch, k_in, k_out, height, width, size = case
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, k_in, height, width, dtype=torch.float64, generator=generator)
    weight = torch.randn(k_out, k_in, size, size, dtype=torch.float64, generator=generator)
    gradient = torch.randn(batch, k_out, height, width, dtype=torch.float64, generator=generator)
    x.requires_grad_()
    weight.requires_grad_()
    expected = F.conv2d(x, weight, padding=size // 2)
    to_x, to_weight = torch.autograd.grad(expected, [x, weight], gradient)

    domain = dft.circle(height, width, size)
    kernel = dft.multiplier(weight.detach(), domain)
    spectrum = dft.analyse(planes(x.detach(), domain), domain)
    result = dft.synthesise(mix(spectrum, kernel), domain)
    torch.testing.assert_close(images(result, domain), expected.detach())
    assert (result[:, width:] == 0).all()

    spectral = dft.analyse(planes(gradient, domain), domain)
    adjoint = kernel.mT * torch.tensor([1.0, -1.0], dtype=torch.float64).view(2, 1, 1, 1)
    back = dft.synthesise(mix(spectral, adjoint), domain)
    torch.testing.assert_close(images(back, domain), to_x)
    (x_r, x_i), (g_r, g_i) = spectrum.unbind(1), spectral.unbind(1)
    summed = torch.stack([x_r.mT @ g_r + x_i.mT @ g_i, x_r.mT @ g_i - x_i.mT @ g_r], 1)
    torch.testing.assert_close(dft.multiplier_gradient(summed, domain, size), to_weight)


def test_results_are_written_where_asked():
    domain = dft.circle(6, 9, 3)
    image = planes(torch.randn(2, 3, 6, 9), domain)
    spectrum = torch.full((domain.rows, 2, domain.columns, 2, 3), torch.nan)
    assert dft.analyse(image, domain, out=spectrum).data_ptr() == spectrum.data_ptr()
    back = torch.full_like(image, torch.nan)
    dft.synthesise(spectrum, domain, out=back)
    scale = domain.rows * domain.x_size / (dft._root(domain.rows) * dft._root(domain.x_size)) ** 2
    torch.testing.assert_close(back, image * scale)


def test_waves_of_ones_are_exact_in_float16():
    domain = dft.circle(150, 150, 15)
    exact = dft._matrices(domain, torch.float64, torch.device("cpu"), False)
    stored = dft._matrices(domain, torch.float16, torch.device("cpu"), False)
    for a, b in zip(exact, stored, strict=True):
        largest = a.abs().max()
        assert torch.equal(b.double()[a.abs() == largest], a[a.abs() == largest])


def test_matrices_of_tf32_are_the_nearest():
    domain = dft.circle(150, 150, 15)
    exact = dft._matrices(domain, torch.float64, torch.device("cpu"), False)
    rounded = dft._matrices(domain, torch.float32, torch.device("cpu"), True)
    for a, b in zip(exact, rounded, strict=True):
        assert (b.view(torch.int32) & 0x1FFF == 0).all()
        assert ((b - a).abs() <= a.abs() * 2.0**-11).all()


@pytest.mark.parametrize("size", [8, 80, 158, 160, 320])
def test_the_root_is_a_power_of_two_near_it(size):
    root = dft._root(size)
    assert root & (root - 1) == 0
    assert 0.7 < root / size**0.5 < 1.42


def test_the_domain_is_large_enough_and_fits_matrix_units():
    for height in (1, 7, 64, 150, 300):
        for size in (1, 3, 15, 31):
            domain = dft.circle(height, height + 1, size)
            assert min(domain.rows - 1, domain.x_size - 1) >= height - 1 + size // 2
            assert domain.rows % 16 == domain.columns % 8 == domain.stored_width % 8 == 0


def test_the_multiplier_does_not_take_the_short_way_and_leaves_the_switch():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        dft.multiplier(torch.ones(1, 1, 3, 3), dft.circle(5, 5, 3))
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("way", ["allow_tf32", "fp32_precision"])
def test_the_multiplier_minds_no_way_of_setting_the_switch(way):
    matmul = torch.backends.cuda.matmul
    values = {"allow_tf32": (True, False), "fp32_precision": ("tf32", "ieee")}[way]
    before = torch.get_float32_matmul_precision()
    try:
        for value in values:  # torch would not tell its precision after the second
            setattr(matmul, way, value)
            dft.multiplier(torch.ones(1, 1, 3, 3), dft.circle(5, 5, 3))
            assert getattr(matmul, way) == value
    finally:
        torch.set_float32_matmul_precision(before)
