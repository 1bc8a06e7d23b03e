import pytest
import torch
import torch.nn.functional as F
from torch import nn

from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.models.dense import (
    FCNDecoder,
    SegNetDecoder,
    UNetDecoder,
    bilinear_kernel,
    fcn,
    segnet,
    unet_tenth,
)
from hgru_vision.models.vgg import Encoding
from hgru_vision.papers.linsley2018 import FRACTIONS, HGRU_PARAMETERS

CHANNELS = (2, 3, 4, 5, 6)  # of five blocks, few and all different, so that no two can be swapped


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def random_encoding(height, width, channels=CHANNELS):
    """Activities without an encoder: positive, and of the sizes that five poolings leave."""
    generator = seeded(3)
    sizes = [(height >> block, width >> block) for block in range(6)]
    activities = [
        torch.rand(2, c, *size, generator=generator)
        for c, size in zip(channels, sizes, strict=False)
    ]
    pooled = torch.rand(2, channels[-1], *sizes[-1], generator=generator)
    return Encoding(tuple(activities), (), pooled)


def pooled_five_times(image):
    """Pool an image five times, without convolutions: what is left is the maximum of 32 x 32."""
    activities, indices = [], []
    for _ in range(5):
        activities.append(image)
        image, places = F.max_pool2d(image, 2, return_indices=True)
        indices.append(places)
    return Encoding(tuple(activities), tuple(indices), image)


# -- Sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fcn", "unet", "segnet"])
def test_multiples_of_the_hgru_are_within_two_percent_of_the_papers(name):
    entry = CATALOGUE[name]
    assert entry.parameters / HGRU_PARAMETERS == pytest.approx(entry.multiple, rel=0.02)


@pytest.mark.parametrize(("name", "parts"), FRACTIONS.items())
def test_fractions_are_within_three_percent(name, parts):
    part = CATALOGUE[f"unet_{name}"].parameters / CATALOGUE["unet"].parameters
    assert part * parts == pytest.approx(1, abs=0.03)
    assert f"{part:.3f}" == {"half": "0.500", "fifth": "0.200", "tenth": "0.100"}[name]


# -- FCN ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2, 4, 8, 16])
def test_the_kernel_interpolates_bilinearly_inside(factor):
    x = torch.randn(1, 1, 6, 5, generator=seeded())
    kernel = bilinear_kernel(factor)[None, None]
    ours = F.conv_transpose2d(x, kernel, stride=factor, padding=factor // 2)
    expected = F.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)
    border = factor // 2  # beyond the centres of the outer units, interpolate repeats them
    inside = (..., slice(border, -border), slice(border, -border))
    torch.testing.assert_close(ours[inside], expected[inside])


def test_the_fcn_starts_as_the_sum_of_the_interpolated_maps_of_all_blocks():
    encoding = random_encoding(64, 96)
    decoder = FCNDecoder(CHANNELS, seeded())
    expected = torch.zeros(2, 2, 64, 96)
    for maps, activity in zip(decoder.maps, encoding.activities, strict=True):
        two = F.conv2d(activity, maps.weight, maps.bias)
        expected += F.interpolate(two, (64, 96), mode="bilinear", align_corners=False)
    inside = (..., slice(8, -8), slice(8, -8))
    torch.testing.assert_close(decoder(encoding)[inside], expected[inside])


def test_the_fcn_upsamplings_are_learnt():
    decoder = FCNDecoder(CHANNELS, seeded())
    assert [tuple(layer.stride) for layer in decoder.upsample] == [(2, 2), (4, 4), (8, 8), (16, 16)]
    assert all(layer.weight.requires_grad and layer.bias is None for layer in decoder.upsample)


def test_the_fcn_leaves_zero_where_no_unit_reaches():
    # 47 = 2 * 16 + 15: two units of the fifth block reach 8 of the 15 pixels that pooling dropped.
    encoding = random_encoding(47, 32)
    decoder = FCNDecoder(CHANNELS, seeded())
    for maps in decoder.maps[:4]:
        nn.init.zeros_(maps.weight)
    output = decoder(encoding)
    assert output.shape == (2, 2, 47, 32)
    rows = output.abs().amax((0, 1, 3))
    assert (rows[:40] > 0).all()
    assert (rows[40:] == 0).all()


# -- U-Net ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(32, 64), (45, 61)])
def test_the_unet_adds_each_block_to_its_upsampling(size):
    encoding = random_encoding(*size)
    decoder = UNetDecoder(CHANNELS, seeded())
    inputs = []
    for upsample in decoder.upsample:
        upsample.register_forward_pre_hook(lambda _, x: inputs.append(x[0]))
    output = decoder(encoding)
    pooled, *sums = [*inputs, output]
    assert pooled is encoding.pooled
    conv1_2, conv2_2, conv3_3, conv4_3, conv5_3 = encoding.activities
    # "conv 4_3 activity was added to the second upsampled activity map"
    for place, activity in enumerate([conv5_3, conv4_3, conv3_3, conv2_2, conv1_2]):
        layer = decoder.upsample[place]
        odd = [side % 2 for side in activity.shape[-2:]]
        upsampled = F.conv_transpose2d(inputs[place], layer.weight, layer.bias, 2, 1, odd)
        torch.testing.assert_close(sums[place], F.relu(upsampled + activity))
    assert output.shape == (2, 2, *size)


def test_a_unet_without_upsampling_gives_the_first_block():
    encoding = random_encoding(32, 32)
    decoder = UNetDecoder(CHANNELS, seeded())
    for upsample in decoder.upsample:
        nn.init.zeros_(upsample.weight)
    assert torch.equal(decoder(encoding), encoding.activities[0])


def test_the_unet_upsamplings_start_random_with_kernels_of_four():
    decoder = UNetDecoder(CHANNELS, seeded())
    shapes = [tuple(layer.weight.shape) for layer in decoder.upsample]
    assert shapes == [(6, 6, 4, 4), (6, 5, 4, 4), (5, 4, 4, 4), (4, 3, 4, 4), (3, 2, 4, 4)]
    for layer in decoder.upsample:
        bound = (6 / (16 * sum(layer.weight.shape[:2]))) ** 0.5
        assert 0.9 * bound < layer.weight.abs().max() <= bound
        assert (layer.bias == 0).all()


# -- SegNet ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "width"), [(64, 96), (45, 71)])
def test_the_segnet_routes_each_maximum_back_to_its_place(height, width):
    image = torch.rand(1, 1, height, width, generator=seeded()).repeat(1, 2, 1, 1)
    decoder = SegNetDecoder((2,) * 5, seeded())
    for layer in decoder.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.dirac_(layer.weight)  # the identity: unpooling is all that is left
    output = decoder(pooled_five_times(image))

    expected = torch.zeros_like(image)
    for top in range(0, height - 31, 32):
        for left in range(0, width - 31, 32):
            window = image[0, 0, top : top + 32, left : left + 32]
            y, x = divmod(window.argmax().item(), 32)
            expected[..., top + y, left + x] = window.max()
    assert torch.equal(output, expected)


def test_the_segnet_decoder_mirrors_the_encoder():
    network = segnet(generator=seeded(), head="classify")
    encoder, decoder = (
        [(m.in_channels, m.out_channels) for m in part.modules() if isinstance(m, nn.Conv2d)]
        for part in (network.encoder, network.decoder)
    )
    mirrored = [(outputs, inputs) for inputs, outputs in reversed(decoder)]
    assert mirrored[1:] == encoder[1:]
    assert (mirrored[0], encoder[0]) == ((64, 64), (1, 64))


def test_a_relu_follows_each_convolution_of_the_segnet():
    decoder = SegNetDecoder(CHANNELS, seeded())
    kinds = [[type(layer) for layer in block] for block in decoder.blocks]
    assert kinds == [layers * [nn.Conv2d, nn.ReLU] for layers in (3, 3, 3, 2, 2)]


def test_with_batch_norm_the_segnet_starts_with_an_output_that_can_be_told():
    decoder = SegNetDecoder(CHANNELS, seeded(), batch_norm=True)
    kinds = [[type(layer) for layer in block] for block in decoder.blocks]
    normalised = [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
    assert kinds == [layers * normalised for layers in (3, 3, 3, 2, 2)]
    images = torch.rand(2, 1, 64, 64, generator=seeded())
    spread = {}
    for batch_norm in (False, True):
        network = segnet(generator=seeded(), head="classify", batch_norm=batch_norm)
        with torch.no_grad():
            spread[batch_norm] = network.decoder(network.encoder(images)).std().item()
    assert spread[False] < 1e-5 and spread[True] > 0.1
    normalised = [
        sum(isinstance(each, nn.BatchNorm2d) for each in part.modules())
        for part in (network.encoder, network.decoder)
    ]
    assert normalised == [13, 13]


# -- Networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "channels"), [(fcn, 2), (unet_tenth, 20), (segnet, 64)])
def test_the_decoder_gives_the_size_of_the_image_to_the_readout(make, channels):
    network = make(generator=seeded(), head="classify")
    seen = []
    network.readout.register_forward_pre_hook(lambda _, x: seen.append(x[0].shape))
    with torch.no_grad():
        network(torch.rand(1, 1, 45, 61, generator=seeded()))
    assert seen == [(1, channels, 45, 61)]


@pytest.mark.parametrize("make", [fcn, unet_tenth, segnet])
def test_bad_images_are_refused(make):
    network = make(generator=seeded(), head="classify")
    with pytest.raises(ValueError, match="images are 150 x 31 pixels; this network takes 32 x 32"):
        network(torch.zeros(1, 1, 150, 31))
    with pytest.raises(ValueError, match=r"shape \(1, 3, 32, 32\); .* takes \(B, 1, H, W\)"):
        network(torch.zeros(1, 3, 32, 32))
