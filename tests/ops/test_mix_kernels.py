import pytest
import torch


@pytest.mark.parametrize(("channels", "pitch"), [(1, 8), (8, 8), (25, 32), (128, 128), (130, 136)])
def test_rows_have_room_for_wide_loads(gpu_forms, channels, pitch):
    assert gpu_forms.mix_kernels.pitch_of(channels) == pitch


def test_blocks_are_powers_of_two_that_matrix_units_take(gpu_forms):
    sizes = [gpu_forms.mix_kernels.block(size, 64) for size in (1, 16, 17, 33, 64, 200)]
    assert sizes == [16, 16, 32, 64, 64, 64]


def test_layouts_change_there_and_back(gpu_forms):
    image = torch.randn(2, 3, 4, 5).to(gpu_forms.device).transpose(2, 3)  # strides of any kind
    stored = torch.full((5, 8, 2, 8), torch.nan, device=image.device)
    gpu_forms.mix_kernels.to_planes(image, stored, torch.tensor(2.0).to(image))
    torch.testing.assert_close(stored[:, :4, :, :3], 2 * image.permute(2, 3, 0, 1))
    assert (stored[:, 4:] == 0).all()
    assert (stored[..., 3:] == 0).all()
    out = torch.full_like(image, torch.nan)
    both = torch.stack([stored, -stored])
    gpu_forms.mix_kernels.from_planes(both, torch.tensor([2.0, 1.0]).to(image), out)
    torch.testing.assert_close(out, 2 * image)


def test_float32_is_exact_only_where_torch_is(gpu_forms):
    before = torch.get_float32_matmul_precision()
    found = {}
    try:
        for setting in ("highest", "high"):
            torch.set_float32_matmul_precision(setting)
            found[setting] = gpu_forms.mix_kernels.precision(torch.float32)
    finally:
        torch.set_float32_matmul_precision(before)
    assert found == {"highest": "ieee", "high": "tf32"}


def test_numbers_are_rounded_to_the_nearest_tf32(gpu_forms):
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randn(5000, generator=generator) * 10.0 ** torch.arange(-30, 20, 0.01)
    exact = numbers.double()
    unit = 2.0 ** (exact.abs().log2().floor() - 10)  # 10 bits behind the first
    expected = ((exact / unit).round() * unit).float()  # no draw lies halfway
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0])
    given = torch.cat([numbers, special]).to(gpu_forms.device)
    got = gpu_forms.mix_kernels.nearest_tf32(given, torch.empty_like(given)).cpu()
    assert torch.equal(got[:5000], expected)
    torch.testing.assert_close(got[5000:], special, equal_nan=True)


def test_a_product_of_tf32_rounds_what_it_multiplies(gpu_forms):
    # A whole spectrum of numbers just above the middle between two of TF32: cut off, each would
    # be smaller, and so would all results.
    above = 1 + 2.0**-11 + 2.0**-13
    spectrum = torch.full((16, 2, 8, 1, 8), above, device=gpu_forms.device)
    kernel = torch.zeros(16, 2, 8, 8, 8, device=gpu_forms.device)
    kernel[:, 0] = torch.eye(8)
    before = torch.get_float32_matmul_precision()
    found = {}
    try:
        for setting in ("highest", "high"):
            torch.set_float32_matmul_precision(setting)
            mixed = torch.empty_like(spectrum)
            found[setting] = set(
                gpu_forms.mix_kernels.mix(spectrum, kernel, mixed).unique().tolist()
            )
    finally:
        torch.set_float32_matmul_precision(before)
    assert found == {"highest": {above}, "high": {1 + 2.0**-10}}


def test_a_gradient_is_added_with_its_unit(gpu_forms):
    spectra = torch.randn(3, 16, 2, 8, 2, 8).to(gpu_forms.device)
    gradients = torch.randn(3, 16, 2, 8, 2, 8).to(gpu_forms.device)
    units = torch.tensor([1.0, 10.0]).to(gpu_forms.device)  # of steps; the uses are 1, 2 and 3
    out = torch.ones(16, 2, 8, 3, 8).to(gpu_forms.device)
    gpu_forms.mix_kernels.mix_gradient(spectra, gradients, units, out, first=1, add=True)
    x = torch.complex(spectra[:, :, 0], spectra[:, :, 1])[..., :3]
    g = torch.complex(gradients[:, :, 0], gradients[:, :, 1])
    worth = torch.tensor([1.0, 10.0, 10.0]).to(x.device).view(3, 1, 1, 1, 1)
    expected = (x.mH @ g * worth).sum(0)
    expected = 1 + torch.stack([expected.real, expected.imag], 1)
    torch.testing.assert_close(out, expected, rtol=1e-3, atol=1e-3)
