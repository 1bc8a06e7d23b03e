import warnings
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import nn

from hgru_vision.circuits import EquilibriumWarning, contractor_penalty
from hgru_vision.data.bsds_stream import IGNORED
from hgru_vision.training.checkpoint import build
from hgru_vision.training.distributed import Group
from hgru_vision.training.step import (
    Step,
    arithmetic,
    balanced_loss,
    parameter_groups,
)

CPU = torch.device("cpu")
ALONE = Group(rank=0, size=1, device=CPU)


@pytest.fixture(scope="session")
def built(decisive):
    """Give a function that builds a network whose parameters learn from the first batch."""
    return lambda config: decisive(build(config))


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (8, 32, 32), generator=generator, dtype=torch.uint8)
    return images, torch.arange(8) % 2


def test_a_step_is_adam_on_the_clipped_gradient_of_the_cross_entropy(tiny, built, batch):
    config = tiny(clip=0.01)
    step, network = Step(built(config), config, ALONE), built(config)
    adam = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    for _ in range(3):
        loss = step(*batch)
        expected = nn.functional.cross_entropy(network(batch[0][:, None] / 255), batch[1])
        adam.zero_grad()
        expected.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.01)
        adam.step()
        assert torch.equal(loss, expected.detach())
        assert not loss.requires_grad
    for key, value in network.state_dict().items():
        assert torch.equal(step.network.state_dict()[key], value)


def test_without_a_clip_the_gradient_stays(tiny, built, batch, monkeypatch):
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", None)
    Step(built(tiny()), tiny(clip=None), ALONE)(*batch)


def test_a_step_goes_on_from_its_state(tiny, built, batch):
    one, other = (Step(built(tiny(seed=seed)), tiny(), ALONE) for seed in (0, 1))
    one(*batch)
    other.load(deepcopy(one.state()), batches=1)
    assert torch.equal(one(*batch), other(*batch))
    assert torch.equal(one(*batch), other(*batch))


def test_the_learning_rate_rises_to_its_value(tiny, built, batch):
    config = tiny(warm_up=4, learning_rate=0.3)
    step = Step(built(config), config, ALONE)
    rates = []
    for _ in range(6):
        step(*batch)
        rates += [group["lr"] for group in step.optimiser.param_groups]
    assert rates == pytest.approx([0.075, 0.15, 0.225, 0.3, 0.3, 0.3])
    assert rates[-1] == 0.3


def test_the_learning_rate_falls_at_the_end(tiny, built, batch):
    config = tiny(cool_down=4, learning_rate=0.4)
    step = Step(built(config), config, ALONE)
    rates = []
    for left in (None, 5, 4, 3, 2, 1):
        step(*batch, left=left)
        rates.append(step.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([0.4, 0.4, 0.4, 0.3, 0.2, 0.1])


def test_a_warm_up_is_adam_with_that_learning_rate(tiny, built, batch):
    config = tiny(warm_up=2, clip=None)
    step, network = Step(built(config), config, ALONE), built(config)
    adam = torch.optim.Adam(network.parameters())
    for share in (0.5, 1.0, 1.0):
        adam.param_groups[0]["lr"] = share * config.learning_rate
        adam.zero_grad()
        nn.functional.cross_entropy(network(batch[0][:, None] / 255), batch[1]).backward()
        adam.step()
        step(*batch)
    for key, value in network.state_dict().items():
        assert torch.equal(step.network.state_dict()[key], value)


def test_a_warm_up_goes_on_from_a_state(tiny, built, batch):
    config = tiny(warm_up=5)
    one, other = (Step(built(config), config, ALONE) for _ in range(2))
    for _ in range(2):
        one(*batch)
    other.load(deepcopy(one.state()), batches=2)
    for _ in range(3):
        assert torch.equal(one(*batch), other(*batch))


def test_a_learning_rate_that_a_graph_reads_is_changed_in_place(tiny, built, batch):
    config = tiny(warm_up=4)
    step, plain = (Step(built(config), config, ALONE) for _ in range(2))
    group = step.optimiser.param_groups[0]
    rate = group["lr"] = torch.tensor(0.0)
    for number in range(1, 5):
        torch.testing.assert_close(step(*batch), plain(*batch))
        assert group["lr"] is rate
        assert rate.item() == pytest.approx(config.learning_rate * number / 4)
    plain.load(deepcopy(step.state()), batches=4)
    assert plain.optimiser.param_groups[0]["lr"].device == CPU


def test_a_graph_needs_one_process_with_a_gpu(tiny, built):
    config = tiny(cuda_graph=True)
    with pytest.raises(
        ValueError, match="cuda_graph needs a GPU; this run is on the cpu: give cuda_g"
    ):
        Step(built(config), config, ALONE)
    two = Group(rank=0, size=2, device=torch.device("cuda"))
    with pytest.raises(ValueError, match="cuda_graph is for a single process; this run has 2"):
        Step(built(config), config, two)


def test_compiled_it_is_the_same_step(tiny, built, batch, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda module: compiled.append(module) or module)
    step = Step(built(tiny()), tiny(compile=True), ALONE)
    step(*batch)
    assert compiled == [step.network]
    assert not any("_orig_mod" in key for key in step.state()["network"])


def test_precision_is_a_matter_of_the_forward_pass(tiny, built, batch):
    losses = {
        precision: Step(built(tiny()), tiny(precision=precision), ALONE)(*batch)
        for precision in ("float32", "tf32", "bfloat16")
    }
    assert torch.equal(losses["float32"], losses["tf32"])  # on a CPU
    assert losses["bfloat16"] != losses["float32"]
    torch.testing.assert_close(losses["bfloat16"], losses["float32"], rtol=0.1, atol=0.1)


def test_random_numbers_of_a_run_are_its_own(tiny):
    before = torch.get_rng_state()
    drawn = []
    for _ in range(2):
        with arithmetic(tiny(), CPU):
            drawn.append(torch.rand(3))
    assert torch.equal(*drawn)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_two_classes_of_an_image_weigh_the_same():
    logits = torch.randn(3, 2, 5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    target = torch.zeros(3, 5, 7, dtype=torch.uint8)
    target[0, 2] = 1
    target[0, 3] = target[2, 3] = IGNORED
    target[1, 0, 0] = 1
    each = torch.nn.functional.cross_entropy(logits, target.long().clamp(max=1), reduction="none")
    halves = [
        (each[image][target[image] == 1].mean() + each[image][target[image] == 0].mean()) / 2
        for image in (0, 1)
    ]
    alone = each[2][target[2] == 0].mean()  # an image without a boundary
    torch.testing.assert_close(balanced_loss(logits, target), (halves[0] + halves[1] + alone) / 3)


@pytest.mark.parametrize("balance", [False, True])
def test_pixels_that_are_ignored_change_nothing(tiny, balance):
    config = tiny(target="segmentation", balance=balance)
    images = torch.randint(0, 256, (2, 32, 32), dtype=torch.uint8)
    target = torch.zeros(2, 32, 32, dtype=torch.uint8)
    target[:, 10], target[:, 11] = 1, IGNORED
    losses = []
    for shift in (0, 50):
        network = torch.nn.Conv2d(1, 2, 1)
        torch.nn.init.constant_(network.weight, 0.3)
        torch.nn.init.zeros_(network.bias)
        moved = images.clone()
        moved[:, 11] = shift
        losses.append(Step(network, config, ALONE)(moved, target))
    assert torch.equal(losses[0], losses[1])


def test_processes_weigh_pixels_not_themselves(tiny, monkeypatch):
    class Pair(Group):
        def sum(self, values):
            return values + 96  # pixels of the other process

    monkeypatch.setattr(nn.parallel, "DistributedDataParallel", lambda network, **_: network)
    config = tiny(target="segmentation")
    images = torch.randint(0, 256, (1, 8, 8), dtype=torch.uint8)
    target = torch.zeros(1, 8, 8, dtype=torch.uint8)
    target[:, 4:] = IGNORED  # half of 64 count here
    losses = []
    for group in (ALONE, Pair(rank=0, size=2, device=CPU)):
        network = torch.nn.Conv2d(1, 2, 1)
        torch.nn.init.constant_(network.weight, 0.3)
        torch.nn.init.zeros_(network.bias)
        losses.append(float(Step(network, config, group)(images, target)))
    assert losses[1] == pytest.approx(losses[0] * 32 * 2 / 128)


def test_weights_with_many_inputs_learn_more_slowly(tiny, built, batch):
    config = tiny(full_rate_inputs=100, learning_rate=0.1, warm_up=2)
    step = Step(built(config), config, ALONE)
    kernel = step.network.features.w  # of Adam's first step every weight moves by its rate
    share = 100 / (len(kernel.index) * kernel.pairs[0].numel())
    assert share < 1
    for rate in (0.05, 0.1):
        before = kernel.pairs.detach().clone(), step.network.readout.decide.bias.detach().clone()
        step(*batch)
        assert {group["lr"] for group in step.optimiser.param_groups} >= {rate, rate * share}
        moved = (kernel.pairs - before[0]).abs().max().item()
        assert moved == pytest.approx(rate * share, rel=0.1)
        assert (step.network.readout.decide.bias - before[1]).abs().max() > rate / 2


def test_inputs_of_a_transposed_convolution():
    network = torch.nn.Sequential(torch.nn.ConvTranspose2d(64, 16, 4, stride=2, padding=1))
    groups = parameter_groups(network, 128)  # 64 channels times a quarter of 4 x 4
    assert sorted(group["share"] for group in groups) == [0.5, 1.0]


def test_every_parameter_is_in_one_group(tiny, built):
    network = built(tiny())
    for inputs, groups in ((None, 1), (1_000_000, 1), (100, 2)):
        found = parameter_groups(network, inputs)
        assert len(found) == groups
        listed = [id(each) for group in found for each in group["params"]]
        assert sorted(listed) == sorted(map(id, network.parameters()))


def test_what_two_modules_share_is_trained_once(tiny):
    first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    second.weight = first.weight
    network = torch.nn.Sequential(first, second)
    for inputs, share in ((None, 1.0), (4, 0.5)):
        found = parameter_groups(network, inputs)
        assert sum(len(group["params"]) for group in found) == 3
        (shares,) = [g["share"] for g in found if any(p is first.weight for p in g["params"])]
        assert shares == share


def test_what_is_shared_gets_the_smallest_share_of_the_modules_that_have_it():
    wide, across = torch.nn.Conv2d(16, 16, 1, bias=False), torch.nn.ConvTranspose2d(16, 16, 1)
    across.weight = (
        wide.weight
    )  # read as (outputs, inputs) by one, as (inputs, outputs) by the other
    stride = torch.nn.ConvTranspose2d(16, 16, 1, stride=2, bias=False)
    stride.weight = wide.weight
    for modules in ((wide, stride), (stride, wide)):
        (group,) = parameter_groups(torch.nn.Sequential(*modules), 8)
        assert group["share"] == 0.5


def test_masks_are_judged_by_the_maps_of_the_readout_beside_labels(tiny, built, batch):
    masks = torch.zeros(8, 32, 32, dtype=torch.uint8)
    masks[:, 4:9, 7] = 1
    (stage,) = tiny().stages
    config = tiny(stages=(replace(stage, mask_weight=1.0), stage))
    step, network = Step(built(config), config, ALONE), built(config)
    with torch.no_grad():  # at zero, as it starts, every image costs the same
        for each in (step.network, network):
            each.readout.decide.weight.fill_(0.1)
            each.readout.decide.weight[1].neg_()
    loss = step(*batch, masks)
    images = batch[0][:, None] / 255
    maps = network.readout.maps(network.features(network.input(images)))
    labels = torch.nn.functional.cross_entropy(network(images), batch[1])
    torch.testing.assert_close(loss, (labels + balanced_loss(maps, masks)).detach())
    assert step(*batch).isfinite()
    decided = step.network.eval()(images)
    assert decided.shape == (8, 2)


def test_masks_are_of_the_images_size_where_maps_are_smaller(tiny):
    stage = tiny().stages[0]
    options = {"channels": 2, "timesteps": 1}
    config = tiny(
        model="contour_hgru", options=options, stages=(replace(stage, mask_weight=1.0), stage)
    )
    step = Step(build(config), config, ALONE)
    images, masks = torch.zeros(2, 9, 8, dtype=torch.uint8), torch.ones(2, 9, 8, dtype=torch.uint8)
    assert step(images, torch.tensor([0, 1]), masks).isfinite()


def test_masks_weigh_what_the_stage_says_and_are_as_large_as_images(tiny, built, batch):
    masks = torch.zeros(8, 32, 32, dtype=torch.uint8)
    masks[:, 4:9, 7] = 1
    (stage,) = tiny().stages
    config = tiny(stages=(replace(stage, mask_weight=0.5),))
    losses = [
        Step(built(config), config, ALONE)(*batch, masks, mask_weight=weight)
        for weight in (0.0, 0.5, 1.0)
    ]
    assert losses[1] - losses[0] > 0.1
    torch.testing.assert_close(losses[2] - losses[1], losses[1] - losses[0])
    step = Step(built(config), config, ALONE)
    with pytest.raises(ValueError, match=r"masks are \(16, 16\); they must be as large as the im"):
        step(*batch, masks[:, :16, :16])
    step(*batch, masks)
    assert step.network(batch[0][:, None] / 255).shape == (8, 2)  # in training, too


def test_every_network_with_the_papers_readout_is_taught_masks(tiny):
    (stage,) = tiny().stages
    config = tiny(model="cornet_block", options={}, stages=(replace(stage, mask_weight=1.0),))
    images, masks = (torch.ones(2, 33, 34, dtype=torch.uint8) for _ in range(2))
    assert Step(build(config), config, ALONE)(images, torch.tensor([0, 1]), masks).isfinite()


def test_masks_in_the_place_of_labels_are_not_taught_any_more(tiny, built):
    (stage,) = tiny().stages
    config = tiny(stages=(replace(stage, masks=True), stage))
    with pytest.raises(ValueError, match="not taught any more: mask_weight=1 teaches them beside"):
        Step(built(config), config, ALONE)


def test_a_contractor_is_added_to_the_loss(tiny, batch):
    options = {"steps": 3}
    plain = tiny(model="hgru_crbp", options=options)
    config = replace(plain, contractor=10.0)
    network = build(config)
    with torch.no_grad():
        network.features.w.pairs.mul_(40)  # until a step is no contraction
    images = batch[0][:2, None, :16, :16] / 255
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EquilibriumWarning)
        drive = network.input(images)
        state = network.features(drive)
        penalty = contractor_penalty(network.features.recurrence(drive), state)
        assert penalty > 1e-4
        given = batch[0][:2, :16, :16], batch[1][:2]
        losses = [Step(deepcopy(network), each, ALONE)(*given) for each in (plain, config)]
        step = Step(network, config, ALONE)
        for _ in range(20):
            last = step(*given)
        with torch.no_grad():
            network.eval()(images)
    torch.testing.assert_close(losses[1] - losses[0], 10 * penalty.detach())
    assert last < losses[1] / 2
    assert not hasattr(step._contractor, "_state")  # nothing is kept


def test_a_contractor_needs_a_fixed_point_and_no_compiler(tiny, built):
    config = tiny(contractor=1.0)
    with pytest.raises(ValueError, match="such as hgru_crbp; hgru_small does not"):
        Step(built(config), config, ALONE)
    config = tiny(model="hgru_crbp", options={}, contractor=1.0, compile=True)
    with pytest.raises(ValueError, match="contractor cannot be compiled; give compile=false"):
        Step(build(config), config, ALONE)


def test_masks_need_the_papers_readout(tiny):
    stage = tiny().stages[0]
    config = tiny(stages=(replace(stage, mask_weight=1.0), stage))
    with pytest.raises(ValueError, match="two maps of the paper's readout; hgru_small has none"):
        Step(nn.Linear(4, 2), config, ALONE)
