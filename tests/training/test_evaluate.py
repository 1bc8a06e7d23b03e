import numpy as np
import pytest
import torch
from torch import nn

from hgru_vision.circuits import HGRU, HGRUBatchNorm, HGRUSharedBatchNorm
from hgru_vision.data.bsds_stream import IGNORED
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.data.readers import ImageDataset
from hgru_vision.intervals import wilson_interval
from hgru_vision.models import create_model
from hgru_vision.training.evaluate import (
    Evaluation,
    as_input,
    evaluate,
    override_timesteps,
    reestimate_statistics,
)


class Numbers(ImageDataset):
    """Image i holds the number i; the label is its parity, the mask its lit half."""

    def __init__(self, count: int = 10, target: str = "label") -> None:
        self.count, self.target = count, target

    def __len__(self) -> int:
        return self.count

    def batch(self, indices):
        return np.broadcast_to(np.uint8(indices)[:, None, None], (len(indices), 4, 4)).copy()

    def labels(self, indices):
        return np.asarray(indices) % 2

    def segmentations(self, indices):
        masks = np.zeros((len(indices), 4, 4), np.uint8)
        masks[:, :2] = 1
        return masks

    def describe(self):
        return {"target": self.target}


class Says(nn.Module):
    """Logits as a function of the numbers in the images."""

    def __init__(self, logits) -> None:
        super().__init__()
        self.logits, self.modes = logits, []
        self.drop = nn.Dropout()

    def forward(self, images):
        self.modes.append(self.training)
        return self.logits((images[:, 0, 0, 0] * 255).round())


def two(ones):
    """Logits that say 1 where `ones` is true."""
    return torch.stack([~ones, ones], dim=1).float()


def test_right_decisions_are_counted_and_kept_in_order():
    network = Says(lambda number: two(number >= 7))  # of 0 to 9: right on 0 2 4 6 7 9
    found = evaluate(network, Numbers(), batch=4)
    assert (found.correct, found.count, found.accuracy) == (6, 10, 0.6)
    assert np.flatnonzero(found.right).tolist() == [0, 2, 4, 6, 7, 9]
    assert found.interval == wilson_interval(6, 10)
    assert found.overlap is None and found.mean_overlap is None


def test_some_items_in_their_own_order():
    network = Says(lambda number: two(number >= 7))
    found = evaluate(network, Numbers(), indices=[9, 8, 0], batch=2)
    assert found.right.tolist() == [True, False, True]


def test_the_network_runs_in_evaluation_mode_and_gets_its_modes_back():
    network = Says(lambda number: two(number > 0))
    network.drop.eval()
    evaluate(network, Numbers())
    assert network.modes == [False]
    assert network.training and not network.drop.training


def test_modes_come_back_after_an_error():
    network = Says(lambda number: number)
    with pytest.raises(ValueError, match=r"two logits an image, a tensor of shape \(10, 2\), got"):
        evaluate(network, Numbers())
    assert network.training


def test_a_network_that_fails_is_told_with_the_images():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(9, 2))
    told = r"the network fails on images of shape \(\d+, 1, \d+, \d+\): mat1 and mat2 shapes cannot"
    with pytest.raises(ValueError, match=told) as error:
        evaluate(network, Numbers())
    assert isinstance(error.value.__cause__, RuntimeError)  # its lines are there to look at


def test_memory_that_runs_out_is_no_fault_of_the_images():
    def fill(number):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        evaluate(Says(fill), Numbers())


def test_logits_that_are_not_finite_are_wrong():
    network = Says(
        lambda number: two(number % 2 == 1) * torch.where(number < 4, 1, torch.nan)[:, None]
    )
    assert evaluate(network, Numbers()).correct == 4


def test_a_segmentation_is_judged_by_pixels_and_overlap():
    def top_row(number):
        ones = torch.zeros(len(number), 4, 4, dtype=torch.bool)
        ones[:, 0] = True
        ones[number == 1, 1] = True  # exactly the mask
        return two(ones)

    found = evaluate(Says(top_row), Numbers(2, target="segmentation"))
    assert (found.correct, found.count) == (12 + 16, 32)
    assert found.right.tolist() == [0.75, 1.0]
    assert found.overlap.tolist() == [0.5, 1.0]
    assert found.mean_overlap == 0.75
    # Mean 0.875, deviation 0.1768, two images: 0.875 +- 1.96 * 0.125, cut at 1.
    assert found.interval == (pytest.approx(0.875 - 1.959964 * 0.125), 1.0)
    with pytest.raises(ValueError, match="two logits a pixel"):
        evaluate(Says(lambda number: two(number > 0)), Numbers(target="segmentation"))


def test_pixels_that_are_not_finite_are_wrong_for_the_overlap_too():
    def nothing(number):
        return torch.full((len(number), 2, 4, 4), torch.nan)

    found = evaluate(Says(nothing), Numbers(2, target="segmentation"))
    assert found.correct == 0 and found.overlap.tolist() == [0, 0]


def test_one_segmentation_says_nothing_of_others():
    found = Evaluation(correct=12, count=16, right=np.array([0.75]), overlap=np.array([0.5]))
    assert found.interval == (0.0, 1.0)


def test_progress_is_told():
    done = []
    evaluate(Says(lambda number: two(number > 0)), Numbers(), batch=4, progress=done.append)
    assert done == [4, 8, 10]


def test_batches_make_no_difference_to_a_network_of_the_study(decisive):
    data = Pathfinder(
        length=3,
        count=12,
        split="test",
        canvas=32,
        edge_margin=3,
        seed_radius=5,
        marker_radius=1.5,
        distractor_length=2,
        distractor_paddles=8,
    )
    images = as_input(torch.from_numpy(data.batch(range(12))))
    network = decisive(create_model("hgru", timesteps=2), images)
    one, many = evaluate(network, data, batch=5), evaluate(network, data, batch=12)
    assert np.array_equal(one.right, many.right)


def test_what_cannot_be_evaluated_is_refused():
    network = Says(lambda number: two(number > 0))
    with pytest.raises(ValueError, match="batch is 0; it must be 1 or more"):
        evaluate(network, Numbers(), batch=0)
    with pytest.raises(ValueError, match="no image to evaluate on: indices is empty"):
        evaluate(network, Numbers(), indices=[])
    foreign = torch.utils.data.TensorDataset(torch.zeros(2, 1, 4, 4), torch.zeros(2))
    with pytest.raises(TypeError, match="data is TensorDataset; give a dataset of this package"):
        evaluate(network, foreign)


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_a_circuit_runs_for_the_steps_asked_for(steps, decisive):
    network = decisive(create_model("hgru", timesteps=3)).eval()
    images = torch.rand(2, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        drive = network.input(images)
        expected = network.readout(network.features(drive, timesteps=steps))
        usual = network(images)
        with override_timesteps(network, steps):
            found = network(images)
        assert torch.equal(found, expected)
        assert torch.equal(network(images), usual)
        assert torch.equal(found, usual) == (steps == 3)


def test_evaluation_takes_the_steps():
    class Steps(nn.Module):
        """Says 1 if the circuit ran for more than two steps."""

        def __init__(self) -> None:
            super().__init__()
            self.circuit = HGRU(channels=1, kernel_size=1, timesteps=2)
            self.circuit.step = self.count
            self.ran = 0

        def count(self, x, h2, t, horizontal):
            self.ran = t + 1
            return HGRU.step(self.circuit, x, h2, t, horizontal)

        def forward(self, images):
            self.circuit(images)
            return two(torch.full((len(images),), self.ran > 2))

    assert evaluate(Steps(), Numbers(), timesteps=3).right.tolist() == [False, True] * 5
    assert evaluate(Steps(), Numbers()).right.tolist() == [True, False] * 5


def test_networks_without_one_circuit_have_no_steps():
    with pytest.raises(ValueError, match="Linear has no recurrent circuit; a number of steps can"):
        evaluate(nn.Linear(1, 1), Numbers(), timesteps=3)
    pair = nn.Sequential(HGRU(1, 1, 1), HGRU(1, 1, 1))
    with (
        pytest.raises(ValueError, match="Sequential has 2 recurrent circuits"),
        override_timesteps(pair, 3),
    ):
        pass
    with (
        pytest.raises(ValueError, match="timesteps is 0; it must be 1 or more"),
        override_timesteps(pair, 0),
    ):
        pass


def some_batches(count, *shape):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator) * (i + 1) + i for i in range(count)]


def test_statistics_are_the_mean_over_batches():
    norm = nn.BatchNorm2d(2, momentum=0.3)
    norm.running_mean.fill_(torch.nan)  # the old ones leave no trace
    batches = some_batches(3, 4, 2, 5, 5)
    reestimate_statistics(norm, batches)
    means = torch.stack([each.mean(dim=(0, 2, 3)) for each in batches])
    variances = torch.stack([each.transpose(0, 1).flatten(1).var(dim=1) for each in batches])
    torch.testing.assert_close(norm.running_mean, means.mean(dim=0))
    torch.testing.assert_close(norm.running_var, variances.mean(dim=0))
    assert norm.momentum == 0.3


def test_batch_norm_alone_trains_meanwhile():
    network = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm2d(1)).eval()
    reestimate_statistics(network, [torch.ones(8, 1, 4, 4)])
    assert network[1].running_mean.item() == 1  # with dropout it would not be
    assert not any(module.training for module in network.modules())


def test_each_step_of_recurrent_batch_norm_has_its_own_mean():
    layer = HGRUBatchNorm(channels=2, kernel_size=3, timesteps=3)
    layer.norm_c1.running_mean.fill_(torch.nan)
    batches = some_batches(3, 4, 2, 6, 6)
    expected = []
    for images in batches:  # one batch alone, by momentum 1
        alone = HGRUBatchNorm(channels=2, kernel_size=3, timesteps=3)
        alone.load_state_dict(layer.state_dict())
        for norm in (alone.norm_g1, alone.norm_c1, alone.norm_g2, alone.norm_c2):
            norm.running_mean.zero_()
            norm.momentum = 1.0
        with torch.no_grad():
            alone(images)
        expected.append(alone.norm_c1.running_mean.clone())
    reestimate_statistics(layer, batches)
    assert layer.norm_c1.momentum == 0.02
    assert layer.norm_c1.running_mean.shape == (3, 2)
    torch.testing.assert_close(layer.norm_c1.running_mean, torch.stack(expected).mean(dim=0))
    assert not layer.norm_c1._forward_pre_hooks


def test_statistics_that_steps_share_are_the_mean_over_steps_too():
    layer = HGRUSharedBatchNorm(channels=1, kernel_size=1, timesteps=4)
    seen = []
    layer.norm_c1.register_forward_pre_hook(lambda norm, given: seen.append(given[0].mean()))
    reestimate_statistics(layer, some_batches(2, 3, 1, 4, 4))
    assert len(seen) == 8
    torch.testing.assert_close(layer.norm_c1.running_mean[0, 0], torch.stack(seen).mean())


def test_a_whole_batch_is_normalised_together_on_a_cpu(monkeypatch):
    # A circuit splits a batch on a CPU unless its images interact.
    monkeypatch.setattr("hgru_vision.circuits.base._CPU_PART", 1)
    layer = HGRUBatchNorm(channels=2, kernel_size=3, timesteps=1)
    sizes = []
    layer.norm_c1.register_forward_pre_hook(lambda norm, given: sizes.append(len(given[0])))
    reestimate_statistics(layer, some_batches(1, 5, 2, 4, 4))
    assert sizes == [5]


def test_reestimation_cures_lagging_statistics():
    torch.manual_seed(0)
    data = Numbers(8)
    network = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 2))
    images = torch.from_numpy(data.batch(range(8))).float()[:, None] / 255
    logits = network(images)  # as in training
    reestimate_statistics(network, [images])
    with torch.no_grad():
        torch.testing.assert_close(network.eval()(images), logits, atol=1e-3, rtol=0.1)


def test_nothing_to_estimate_and_nothing_to_estimate_from():
    reestimate_statistics(nn.Linear(1, 1), iter(()))  # no batch norm: nothing to do
    norm = nn.BatchNorm2d(1)
    norm.running_mean.fill_(3)
    with pytest.raises(ValueError, match="at least one batch of images, got none"):
        reestimate_statistics(norm, [])
    assert norm.running_mean.item() == 3


@pytest.mark.gpu
def test_a_gpu_decides_as_a_cpu_does(decisive):
    network = decisive(create_model("hgru_small", timesteps=2))
    data = Pathfinder(6, count=100, split="test")
    on_cpu = evaluate(network, data, batch=32)
    on_gpu = evaluate(network.cuda(), data, batch=32)
    assert np.mean(on_cpu.right == on_gpu.right) > 0.97  # where two logits are not all but equal


class Boundaries(ImageDataset):
    """Images in colour whose red says how likely a boundary is, and where boundaries are."""

    def __init__(self, red, targets):
        self.red, self.targets = np.asarray(red, np.uint8), np.asarray(targets, np.uint8)

    def __len__(self):
        return len(self.red)

    def batch(self, indices):
        return np.repeat(self.red[indices][:, None], 3, axis=1)

    def labels(self, indices):
        raise AssertionError

    def segmentations(self, indices):
        return self.targets[indices]

    def describe(self):
        return {"target": "boundaries"}


class Red(nn.Module):
    def forward(self, images):
        return torch.stack([torch.zeros_like(images[:, 0]), images[:, 0] - 0.5], dim=1)


def test_boundaries_are_judged_by_pairs_of_pixels():
    red = [[[9, 5, 7, 1, 200]], [[3, 3, 3, 3, 3]], [[1, 2, 3, 4, 5]]]
    target = [[[1, 0, 0, 1, IGNORED]], [[1, 0, 0, 0, 0]], [[0, 0, 0, 0, IGNORED]]]
    found = evaluate(Red(), Boundaries(red, target))
    # 9 is above 5 and 7, 1 below both; all tie; and there is no boundary to compare with.
    assert found.right.tolist() == [0.5, 0.5, 0.5] and found.accuracy == 0.5
    assert found.count == 4 + 5 + 4  # pixels that someone has an opinion about
    assert found.correct == 2 + 4 + 4  # red below one half says that there is none
    better = evaluate(Red(), Boundaries([[[9, 5, 7, 6, 200]]], target[:1]))
    assert better.right.tolist() == [0.75] and better.interval == (0.0, 1.0)
    low, high = evaluate(Red(), Boundaries(red[:1] * 4, target[:1] * 4)).interval
    assert low == high == 0.5


def test_boundaries_of_no_finite_number_are_wrong():
    class Lost(nn.Module):
        def forward(self, images):
            return torch.full((len(images), 2, *images.shape[2:]), torch.nan)

    assert evaluate(Lost(), Boundaries([[[1, 2]]], [[[1, 0]]])).accuracy == 0


def test_grey_and_colour_become_what_networks_take():
    bytes_ = torch.full((2, 4, 6), 51, dtype=torch.uint8)
    assert as_input(bytes_).shape == (2, 1, 4, 6)
    assert as_input(bytes_).unique().item() == pytest.approx(0.2)
    assert as_input(torch.zeros(2, 3, 4, 6, dtype=torch.uint8), torch.double).shape == (2, 3, 4, 6)
