import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgru_vision.models import create_model
from hgru_vision.models.catalogue.contour import feedforward_channels
from hgru_vision.models.contour import BLOCKS, load_vgg16
from hgru_vision.models.large_conv import LargeConv2d

TINY = {
    "contour_hgru": {"channels": 4, "kernel_size": 3, "timesteps": 2},
    "contour_vgg": {"channels": 4},
    "contour_feedforward": {"channels": 4, "kernel_size": 3},
}


def tiny(name="contour_hgru", **changes):
    return create_model(name, **({"head": "pixels"} | TINY[name] | changes))


def colours(*size, seed=0):
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed))


def layers(seed=0):
    random = np.random.default_rng(seed)
    made = {}
    for name, (inputs, outputs) in BLOCKS.items():
        made[f"{name}.weight"] = random.normal(0, 0.1, (outputs, inputs, 3, 3)).astype(np.float32)
        made[f"{name}.bias"] = random.normal(0, 0.1, outputs).astype(np.float32)
    return made


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("size", [(32, 48), (33, 47)])
def test_two_logits_for_each_pixel_of_any_image(name, size):
    network = tiny(name).eval()
    with torch.no_grad():
        assert network(colours(2, 3, *size)).shape == (2, 2, *size)


def test_grey_is_a_colour():
    network = tiny().eval()
    grey = colours(2, 1, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(network(grey), network(grey.expand(2, 3, 32, 32)))


def test_other_images_are_refused():
    message = r"images have shape \(1, 2, 8, 8\); this network takes \(B, 1, H, W\) or \(B, 3, H,"
    with pytest.raises(ValueError, match=message):
        tiny()(torch.zeros(1, 2, 8, 8))
    with pytest.raises(ValueError, match=r"images have shape \(0, 3, 8, 8\)"):
        tiny()(torch.zeros(0, 3, 8, 8))
    for colours in (1, 3):
        with pytest.raises(TypeError, match=r"images are torch.uint8; .* images.float\(\) / 255"):
            tiny()(torch.zeros(1, colours, 8, 8, dtype=torch.uint8))


def test_a_pixel_of_the_output_lies_where_it_does_in_the_image():
    # Without an hGRU what a pixel says depends on its neighbourhood alone, at odd sizes too.
    network = tiny("contour_vgg").eval()
    image = torch.zeros(1, 3, 81, 61)
    with torch.no_grad():
        before = network(image)
        image[:, :, 70, 50] = 5
        moved = (network(image) - before).abs().sum(dim=1)[0]
    rows, columns = np.nonzero(moved.numpy() > 1e-5)
    assert abs(rows.mean() - 70) < 1.5 and abs(columns.mean() - 50) < 1.5


def test_logits_are_enlarged_by_exactly_two_at_odd_sizes_too():
    network = tiny("contour_vgg").eval()
    images = colours(1, 3, 33, 47)
    coarse = network.readout(network.features(network.drive(images)))
    assert coarse.shape == (1, 2, 17, 24)
    fine = F.interpolate(coarse, scale_factor=2, mode="bilinear")
    torch.testing.assert_close(network(images), fine[..., :33, :47])


def test_the_blocks_are_those_of_vgg16(tmp_path):
    np.savez(tmp_path / "vgg.npz", **layers())
    network = tiny("contour_vgg")
    load_vgg16(network, tmp_path / "vgg.npz")
    image = colours(1, 3, 16, 16)
    weights = {name: torch.from_numpy(value) for name, value in layers().items()}
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = (image - mean.view(3, 1, 1)) / deviation.view(3, 1, 1)
    for name in ("conv1_1", "conv1_2", "pool", "conv2_1", "conv2_2"):
        if name == "pool":
            x = F.max_pool2d(x, 2)
        else:
            x = F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1).relu()
    torch.testing.assert_close(network.input(image), x)


def test_the_drive_is_normalised_and_its_statistics_go_slowly():
    network = tiny()
    images = colours(2, 3, 16, 16)
    features = network.project(network.input(images))
    torch.testing.assert_close(network.drive(images).mean((0, 2, 3)), torch.zeros(4))
    torch.testing.assert_close(network.normalise.running_mean, 0.02 * features.mean((0, 2, 3)))


def test_the_hgru_and_its_control_are_what_was_asked_for():
    circuit = tiny().features
    assert (circuit.channels, circuit.kernel_size, circuit.timesteps) == (4, 3, 2)
    assert create_model("contour_hgru", channels=4, kernel_size=3).features.timesteps == 8
    control = tiny("contour_feedforward").features
    assert [type(layer) for layer in control] == [LargeConv2d, torch.nn.ReLU]
    assert control[0].weight.shape[1:] == (4, 3, 3)


def test_all_convolutions_start_by_xavier_without_bias():
    network = tiny()
    for layer in (*network.input.children(), network.project):
        bound = (6 / (layer.weight[0].numel() + layer.weight[:, 0].numel())) ** 0.5
        assert 0.98 * bound < layer.weight.abs().max() <= bound
        assert layer.bias is None or not layer.bias.any()


def test_a_file_of_torchvision_is_read(tmp_path):
    names = {"conv1_1": 0, "conv1_2": 2, "conv2_1": 5, "conv2_2": 7}
    state = {
        f"features.{number}.{kind}": torch.from_numpy(layers()[f"{name}.{kind}"])
        for name, number in names.items()
        for kind in ("weight", "bias")
    }
    torch.save(state | {"classifier.0.weight": torch.zeros(2, 2)}, tmp_path / "vgg16.pth")
    network = tiny()
    load_vgg16(network, tmp_path / "vgg16.pth")
    assert torch.equal(network.input.conv2_2.weight, state["features.7.weight"])


def test_the_real_weights_load(shared_data):
    network = tiny()
    load_vgg16(network, shared_data / "vgg16_block12.npz")
    assert network.input.conv1_1.weight.abs().max() > 0.3


def test_what_else_a_file_holds_is_not_read(tmp_path):
    np.savez(tmp_path / "vgg.npz", **layers(), note=np.array("trained on PASCAL"))
    network = tiny()
    load_vgg16(network, tmp_path / "vgg.npz")
    assert torch.equal(network.input.conv1_1.bias, torch.from_numpy(layers()["conv1_1.bias"]))


def test_bad_files_are_named(tmp_path):
    whole = layers()
    lacking = {name: value for name, value in whole.items() if name != "conv2_1.bias"}
    np.savez(tmp_path / "lacking.npz", **lacking)
    with pytest.raises(ValueError, match=r"lacking.npz lacks conv2_1.bias of VGG16"):
        load_vgg16(tiny(), tmp_path / "lacking.npz")
    np.savez(tmp_path / "wrong.npz", **(whole | {"conv1_1.weight": np.zeros((64, 1, 3, 3))}))
    shape = r"wrong.npz: conv1_1.weight is \(64, 1, 3, 3\), that of VGG16 is \(64, 3, 3, 3\)"
    with pytest.raises(ValueError, match=shape):
        load_vgg16(tiny(), tmp_path / "wrong.npz")
    for name in ("cut.npz", "cut.pth"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 cut short")
        with pytest.raises(ValueError, match=rf"{name} is neither an .npz nor a file of torchvis"):
            load_vgg16(tiny(), tmp_path / name)
    torch.save(torch.zeros(3), tmp_path / "tensor.pth")
    with pytest.raises(ValueError, match=r"tensor.pth is neither an .*: it holds one Tensor"):
        load_vgg16(tiny(), tmp_path / "tensor.pth")
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"array.npz is neither an .npz nor a file of torchvision"):
        load_vgg16(tiny(), tmp_path / "array.npz")
    with pytest.raises(FileNotFoundError):
        load_vgg16(tiny(), tmp_path / "none.npz")
    with pytest.raises(TypeError, match="StandardNetwork has no layers of VGG16 to load"):
        load_vgg16(create_model("hgru"), tmp_path / "lacking.npz")


class MakesFolder:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_code_in_a_file_is_not_run(tmp_path):
    sign = MakesFolder(tmp_path / "it ran")
    np.savez(tmp_path / "code.npz", **{"conv1_1.weight": np.array([sign])})
    torch.save({"features.0.weight": sign}, tmp_path / "code.pth")
    for name in ("code.npz", "code.pth"):
        with pytest.raises(ValueError, match=rf"{name} is neither an .npz nor a file of torchvis"):
            load_vgg16(tiny(), tmp_path / name)
    assert not sign.folder.exists()


def test_vgg_can_be_kept_as_it_is():
    network = tiny(train_vgg=False)
    network(colours(2, 3, 32, 32)).sum().backward()
    assert all(p.grad is None for p in network.input.parameters())
    assert network.features.u1.grad is not None


@pytest.mark.parametrize(("channels", "kernel_size"), [(128, 15), (32, 15), (8, 5)])
def test_the_control_has_as_many_parameters(channels, kernel_size):
    sizes = {"channels": channels, "kernel_size": kernel_size}
    count = {
        name: sum(p.numel() for p in create_model(name, **sizes).features.parameters())
        for name in ("contour_hgru", "contour_feedforward")
    }
    one = channels * kernel_size**2 + 1
    difference = abs(count["contour_hgru"] - count["contour_feedforward"])
    assert difference <= one / 2
    assert count["contour_feedforward"] == one * feedforward_channels(channels, kernel_size)
