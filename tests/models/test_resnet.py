import math

import pytest
import torch
from torch import nn

from hgru_vision.models import resnet
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.models.resnet import BasicBlock, Bottleneck, ResNet
from hgru_vision.papers.linsley2018 import FRACTIONS


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def resnet18():
    return ResNet(18, generator=seeded()).eval()


@pytest.mark.parametrize(
    ("depth", "classes", "parameters"),
    [
        # torchvision's networks; with its 1000 classes, the counts that its pages state
        (18, 2, 11_177_538),
        (50, 2, 23_512_130),
        (152, 2, 58_147_906),
        (18, 1000, 11_689_512),
        (50, 1000, 25_557_032),
    ],
)
def test_parameters_are_those_of_torchvision(depth, classes, parameters):
    network = ResNet(depth, in_channels=3, classes=classes, generator=seeded())
    assert sum(p.numel() for p in network.parameters()) == parameters


def batch_norm_names(prefix):
    values = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    return [f"{prefix}.{value}" for value in values]


@pytest.mark.parametrize(
    ("depth", "blocks", "convolutions", "shortcuts"),
    [(18, (2, 2, 2, 2), 2, (2, 3, 4)), (50, (3, 4, 6, 3), 3, (1, 2, 3, 4))],
)
def test_names_are_those_of_torchvision(depth, blocks, convolutions, shortcuts):
    names = ["conv1.weight", *batch_norm_names("bn1"), "fc.weight", "fc.bias"]
    for stage, count in enumerate(blocks, start=1):
        for block in range(count):
            for layer in range(1, convolutions + 1):
                names.append(f"layer{stage}.{block}.conv{layer}.weight")
                names += batch_norm_names(f"layer{stage}.{block}.bn{layer}")
    for stage in shortcuts:
        names.append(f"layer{stage}.0.downsample.0.weight")
        names += batch_norm_names(f"layer{stage}.0.downsample.1")
    assert set(ResNet(depth, generator=seeded()).state_dict()) == set(names)


@pytest.mark.parametrize("depth", [18, 50, 152])
def test_output_is_that_of_torchvision(depth):
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:  # RuntimeError: made for another torch
        pytest.skip(f"torchvision cannot be imported: {error}")
    with torch.random.fork_rng(devices=[]):
        theirs = getattr(models, f"resnet{depth}")().eval()
    ours = ResNet(depth, in_channels=3, classes=1000, generator=seeded()).eval()
    ours.load_state_dict(theirs.state_dict())
    images = torch.rand(2, 3, 75, 64, generator=seeded())
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def fill_with_waves(network):
    """Give a network values that need no random numbers."""
    for place, value in enumerate(network.state_dict().values()):
        if value.is_floating_point():
            wave = torch.sin(torch.arange(value.numel(), dtype=torch.float64) + place).view(
                value.shape
            )
            value.copy_(1 + wave / 4 if value.ndim == 1 else wave * 2 / value[0].numel() ** 0.5)


@pytest.mark.parametrize(
    ("depth", "logits"), [(18, [0.1460625655, 2.4156476499]), (50, [-4.0423346376, -5.8946166682])]
)
def test_output_is_the_recorded_one_of_torchvision(depth, logits):
    # torchvision 0.29.2, num_classes=2, filled and run in the same way
    network = ResNet(depth, in_channels=3, generator=seeded()).double().eval()
    fill_with_waves(network)
    images = torch.linspace(0, 1, 3 * 75 * 64, dtype=torch.float64).view(1, 3, 75, 64)
    with torch.no_grad():
        output = network(images)
    assert output.flatten().tolist() == pytest.approx(logits, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "depth", "parts"),
    [
        ("resnet18", 18, 1),
        ("resnet50", 50, 1),
        ("resnet152", 152, 1),
        ("resnet152_half", 152, 2),
        ("resnet152_fifth", 152, 5),
        ("resnet152_tenth", 152, 10),
    ],
)
def test_each_function_passes_on_what_it_is_given(monkeypatch, name, depth, parts):
    made = []
    monkeypatch.setattr(resnet, "ResNet", lambda *given, **named: made.append((given, named)))
    given = {"generator": seeded(), "head": "pixels", "in_channels": 3}
    getattr(resnet, name)(**given)
    ((place, named),) = made
    assert place == (depth,)
    assert {"fraction": 1} | named == {"fraction": 1 / parts} | given


@pytest.mark.parametrize(("name", "parts"), FRACTIONS.items())
def test_fractions_are_within_three_percent(name, parts):
    part = CATALOGUE[f"resnet152_{name}"].parameters / CATALOGUE["resnet152"].parameters
    assert part * parts == pytest.approx(1, abs=0.03)
    assert f"{part:.3f}" == {"half": "0.501", "fifth": "0.199", "tenth": "0.101"}[name]


def test_the_start_is_he_normal(resnet18):
    for name, layer in resnet18.named_modules():
        if isinstance(layer, nn.Conv2d):
            expected = math.sqrt(2 / (layer.out_channels * layer.kernel_size[0] ** 2))
            assert layer.weight.std().item() == pytest.approx(expected, rel=0.04), name
            assert layer.bias is None
        if isinstance(layer, nn.BatchNorm2d):
            assert (layer.weight == 1).all()
            assert (layer.bias == 0).all()
            assert (layer.running_mean == 0).all()
            assert (layer.running_var == 1).all()
    assert resnet18.fc.weight.std().item() == pytest.approx(1 / math.sqrt(512), rel=0.1)
    assert (resnet18.fc.bias == 0).all()


@pytest.mark.parametrize("block", [BasicBlock(8, 8, 1, seeded()), Bottleneck(8, 2, 1, seeded())])
def test_the_shortcut_goes_around_the_block(block):
    last = block.bn3 if isinstance(block, Bottleneck) else block.bn2
    nn.init.zeros_(last.weight)
    x = torch.randn(2, 8, 9, 7, generator=seeded())
    assert torch.equal(block(x), x.relu())


def test_a_bottleneck_halves_the_size_in_its_3x3_convolution():
    block = Bottleneck(8, 2, 2, seeded())
    assert (block.conv1.stride, block.conv2.stride) == ((1, 1), (2, 2))
    assert block(torch.ones(2, 8, 9, 6)).shape == (2, 8, 5, 3)


def test_five_halvings_before_the_classifier(resnet18):
    seen = []
    handle = resnet18.layer4.register_forward_hook(lambda *call: seen.append(call[-1].shape))
    with torch.no_grad():
        resnet18(torch.zeros(1, 1, 150, 32))
    handle.remove()
    assert seen == [(1, 512, 5, 1)]


def test_pixel_logits_average_to_those_of_the_image(resnet18):
    pixels = ResNet(18, head="pixels", generator=seeded(1)).eval()
    pixels.load_state_dict(resnet18.state_dict())
    images = torch.rand(2, 1, 64, 64, generator=seeded())
    with torch.no_grad():
        output = pixels(images)
        assert output.shape == (2, 2, 64, 64)
        assert output.std((2, 3)).min() > 0
        torch.testing.assert_close(output.mean((2, 3)), resnet18(images))


def test_unknown_depth_is_refused():
    with pytest.raises(ValueError, match="depth is 34; choose one of 18, 50, 152"):
        ResNet(34, generator=seeded())


@pytest.mark.parametrize("fraction", [0, -0.5, 1.5])
def test_impossible_fraction_is_refused(fraction):
    with pytest.raises(
        ValueError, match=f"fraction is {fraction}; it must be above 0 and at most 1"
    ):
        ResNet(18, fraction=fraction, generator=seeded())


def test_small_image_is_refused(resnet18):
    with pytest.raises(ValueError, match="images are 31 x 40 pixels; this network takes 32 x 32"):
        resnet18(torch.zeros(1, 1, 31, 40))


def test_wrong_channels_are_refused(resnet18):
    with pytest.raises(ValueError, match=r"shape \(1, 3, 32, 32\); .* takes \(B, 1, H, W\)"):
        resnet18(torch.zeros(1, 3, 32, 32))
    colour = ResNet(18, in_channels=3, generator=seeded())
    with pytest.raises(ValueError, match=r"shape \(1, 1, 32, 32\); .* takes \(B, 3, H, W\)"):
        colour(torch.zeros(1, 1, 32, 32))
