import math

import pytest
import torch
import torch.nn.functional as F

from hgru_vision.circuits import HGRU
from hgru_vision.models import create_model
from hgru_vision.models.beyond import (
    CORnetBlock,
    TransformerBlock,
    UntiedHGRU,
    ViT,
    cornet_block,
    ff_unrolled,
    wave_positions,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# -- Vision transformer ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transformer():
    return ViT(generator=seeded()).eval()


def test_attention_is_that_of_the_definition():
    block = TransformerBlock(seeded()).double()
    tokens = torch.randn(2, 5, 192, generator=seeded(), dtype=torch.float64)
    normal = F.layer_norm(tokens, (192,))
    query, key, value = block.query_key_value(normal).split(192, dim=2)
    seen = []
    for head in range(3):
        own = slice(64 * head, 64 * head + 64)
        weight = (query[..., own] @ key[..., own].mT / math.sqrt(64)).softmax(-1)
        seen.append(weight @ value[..., own])
    attended = tokens + block.project(torch.cat(seen, dim=2))
    widen, _, narrow = block.perceptron
    expected = attended + narrow(F.gelu(widen(F.layer_norm(attended, (192,)))))
    torch.testing.assert_close(block(tokens), expected)


def test_every_place_has_its_own_code_whatever_the_grid():
    small = wave_positions(3, 4, like=torch.zeros(1)).view(3, 4, 192)
    large = wave_positions(16, 15, like=torch.zeros(1))
    assert torch.equal(large.view(16, 15, 192)[:3, :4], small)
    assert torch.cdist(large, large).fill_diagonal_(math.inf).min() > 0.5


def test_the_code_of_a_place_is_sines_and_cosines_of_y_and_x():
    code = wave_positions(4, 6, like=torch.zeros(1)).view(4, 6, 4, 48)[2, 5]
    frequency = torch.tensor([10_000 ** -(i / 48) for i in range(48)])
    angles = torch.stack([2 * frequency, 5 * frequency])
    torch.testing.assert_close(code, torch.cat([angles.sin(), angles.cos()]))


@torch.no_grad()
def test_any_size_is_filled_up_with_zeros(transformer):
    images = torch.rand(2, 1, 32, 45, generator=seeded())
    padded = F.pad(images, (0, 5, 0, 8))
    assert torch.equal(transformer(images), transformer(padded))
    pixels = ViT(head="pixels", generator=seeded()).eval()
    assert torch.equal(pixels(images), pixels(padded)[..., :32, :45])


@torch.no_grad()
def test_the_transformer_knows_where_a_patch_is(transformer):
    images = torch.rand(1, 1, 40, 40, generator=seeded())
    assert not torch.allclose(transformer(images), transformer(images.roll(10, dims=3)), atol=1e-4)


@torch.no_grad()
def test_pixel_logits_of_one_token_are_those_of_the_image(transformer):
    pixels = ViT(head="pixels", patch=10, generator=seeded()).eval()
    images = torch.rand(2, 1, 9, 10, generator=seeded())
    expected = transformer(images)[:, :, None, None].expand(2, 2, 9, 10)
    torch.testing.assert_close(pixels(images), expected)


@torch.no_grad()
def test_pixel_logits_lie_over_their_patch(transformer):
    pixels = ViT(head="pixels", patch=15, generator=seeded()).eval()
    seen = []
    pixels.classify.register_forward_hook(lambda *call: seen.append(call[-1]))
    output = pixels(torch.rand(1, 1, 45, 60, generator=seeded()))
    centres = output[..., 7::15, 7::15]
    torch.testing.assert_close(centres, seen[0].mT.unflatten(2, (3, 4)))


@torch.no_grad()
def test_the_transformer_averages_normalised_tokens(transformer):
    images = torch.rand(2, 1, 20, 30, generator=seeded())
    patches = F.conv2d(images, transformer.embed.weight, transformer.embed.bias, stride=10)
    tokens = patches.flatten(2).mT + wave_positions(2, 3, like=patches)
    normal = F.layer_norm(transformer.blocks(tokens), (192,))
    torch.testing.assert_close(transformer(images), transformer.classify(normal.mean(1)))


def test_the_transformer_starts_with_patches_of_unit_variance_and_xaviers_values(transformer):
    assert transformer.embed.weight.std().item() == pytest.approx(1 / 10, rel=0.03)  # 10x10 inputs
    for name, layer in transformer.named_modules():
        if isinstance(layer, torch.nn.Linear):
            bound = math.sqrt(6 / (layer.in_features + layer.out_features))
            assert 0.97 * bound < layer.weight.abs().max() <= bound, name
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d):
            assert not layer.bias.any(), name


def test_impossible_patch_is_refused():
    with pytest.raises(ValueError, match="patch is 0; it must be 1 pixel or more"):
        ViT(patch=0, generator=seeded())


# -- CORnet-S -------------------------------------------------------------------------------------


def test_the_block_is_that_of_the_publication():
    block = CORnetBlock(3, 2, generator=seeded())
    generator = seeded(1)
    for norm in (block.norm_skip, *block.norm1, *block.norm2, *block.norm3):
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5, generator=generator)
    x = torch.randn(2, 3, 9, 8, generator=seeded())

    x0 = block.conv_input(x)
    first = F.relu(block.norm1[0](F.conv2d(x0, block.conv1.weight)))
    first = F.relu(block.norm2[0](F.conv2d(first, block.conv2.weight, stride=2, padding=1)))
    first = block.norm3[0](F.conv2d(first, block.conv3.weight))
    x1 = F.relu(first + block.norm_skip(F.conv2d(x0, block.skip.weight, stride=2)))
    second = F.relu(block.norm1[1](F.conv2d(x1, block.conv1.weight)))
    second = F.relu(block.norm2[1](F.conv2d(second, block.conv2.weight, padding=1)))
    second = block.norm3[1](F.conv2d(second, block.conv3.weight))
    expected = F.relu(second + x1)

    torch.testing.assert_close(block(x), expected)
    assert expected.shape == (2, 3, 5, 4)


@pytest.mark.parametrize("timesteps", [1, 4])
def test_an_output_sees_so_many_pixels(timesteps):
    block = CORnetBlock(4, timesteps, generator=seeded()).eval()
    x = torch.rand(1, 4, 48, 48, generator=seeded(), requires_grad=True)
    block(x)[..., 12, 12].sum().backward()
    rows = x.grad.abs().amax((0, 1, 3)).nonzero().flatten()
    assert rows.max() - rows.min() + 1 == 4 * timesteps - 1


def test_a_coarse_network_gives_logits_at_every_pixel():
    network = cornet_block(generator=seeded(), head="pixels").eval()
    images = torch.rand(2, 1, 33, 40, generator=seeded())
    coarse = network.readout(network.features(network.input(images)))
    assert coarse.shape == (2, 2, 17, 20)
    fine = F.interpolate(coarse, (33, 40), mode="bilinear")
    torch.testing.assert_close(network(images), fine)


def test_the_kernels_of_the_block_start_he_normal():
    block = CORnetBlock(25, 1, generator=seeded())
    for conv in (block.conv_input, block.skip, block.conv1, block.conv2, block.conv3):
        expected = math.sqrt(2 / (conv.out_channels * conv.kernel_size[0] ** 2))
        assert conv.weight.std().item() == pytest.approx(expected, rel=0.06)


def test_no_steps_of_the_cornet_block_are_refused():
    with pytest.raises(ValueError, match="timesteps is 0; it must be 1 or more"):
        CORnetBlock(4, 0, generator=seeded())


# -- The hGRU unrolled ----------------------------------------------------------------------------


def test_with_equal_steps_it_is_the_hgru():
    recurrent = HGRU(4, 5, 3, generator=seeded(1)).double()
    with torch.no_grad():
        recurrent.eta.copy_(torch.tensor([0.8, 1.2, 0.9]))
    unrolled = UntiedHGRU(4, 5, 3, generator=seeded(2)).double()
    for t, step in enumerate(unrolled.steps):
        step.load_state_dict({**recurrent.state_dict(), "eta": recurrent.eta[t : t + 1]})
    x = torch.randn(2, 4, 12, 9, generator=seeded(), dtype=torch.float64)
    torch.testing.assert_close(unrolled(x), recurrent(x))


def test_each_step_starts_as_the_hgru_does_with_values_of_its_own():
    first, second, _ = UntiedHGRU(25, 5, 3, generator=seeded()).steps
    for name, value in first.named_parameters():
        assert name == "eta" or not torch.equal(value, second.get_parameter(name)), name
    for bias in (first.b1, first.b2, second.b1, second.b2):
        assert -math.log(2) <= bias.min() < bias.max() <= 0  # chronos for T = 3


def test_the_network_is_as_deep_as_the_unrolled_hgru():
    network = ff_unrolled(generator=seeded(), head="classify")
    assert len(network.features.steps) == 8
    assert all(step.w().shape == (25, 25, 15, 15) for step in network.features.steps)


def test_no_steps_of_the_unrolled_hgru_are_refused():
    with pytest.raises(ValueError, match="timesteps is 0; it must be 1 or more"):
        UntiedHGRU(4, 5, 0, generator=seeded())


# -- Keywords -------------------------------------------------------------------------------------


def test_keywords_reach_the_networks():
    assert create_model("vit", patch=8).patch == 8
    assert create_model("cornet_block", timesteps=2).features.timesteps == 2
    assert create_model("ff_unrolled").input.gain == 0.5
    assert create_model("ff_unrolled", drive_gain=2.0).input.gain == 2.0


# -- The small hGRU -------------------------------------------------------------------------------


def test_the_small_network_is_the_standard_one_made_small():
    from hgru_vision.models.beyond import hgru_small
    from hgru_vision.models.filters import gabor_bank

    network = hgru_small(generator=seeded(), head="classify")
    kernels, bank = network.input.weight, gabor_bank()
    orientations = (0, 3, 6, 9)  # of twelve: 0, 45, 90 and 135 degrees
    expected = torch.cat([bank[2 * i : 2 * i + 2] for i in orientations])
    assert torch.equal(kernels.detach(), expected)
    circuit = network.features
    assert (circuit.channels, circuit.kernel_size, circuit.timesteps) == (8, 7, 4)
    other = hgru_small(generator=seeded(), head="classify", timesteps=6, drive_gain=2.0)
    assert (other.features.timesteps, other.input.gain) == (6, 2.0)
