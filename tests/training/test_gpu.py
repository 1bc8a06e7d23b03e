"""What needs a GPU: recorded steps, precisions, and a run from its start to its resume."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from hgru_vision.training.checkpoint import build
from hgru_vision.training.distributed import Group
from hgru_vision.training.loop import train
from hgru_vision.training.step import Step, arithmetic

pytestmark = pytest.mark.gpu


@pytest.fixture
def group():
    return Group(rank=0, size=1, device=torch.device("cuda", 0))


@pytest.fixture(scope="session")
def built(decisive):
    """Give a function that builds a network whose parameters learn from the first batch."""
    return lambda config: decisive(build(config))


def batches(count):
    generator = torch.Generator().manual_seed(0)
    for _ in range(count):
        images = torch.randint(0, 256, (8, 32, 32), generator=generator, dtype=torch.uint8)
        yield images.cuda(), (torch.arange(8) % 2).cuda()


def _to_cpu(value):
    """Move what a checkpoint holds to the CPU, at any depth."""
    if isinstance(value, dict):
        return {key: _to_cpu(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_to_cpu(each) for each in value]
    return value.cpu() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("compile", [False, True])
def test_a_recorded_step_is_the_step(tiny, built, group, compile):
    losses = {}
    for graph in (False, True):
        config = tiny(cuda_graph=graph, compile=compile and graph)
        with arithmetic(config, group.device):
            step = Step(built(config), config, group)
            losses[graph] = torch.stack([step(*batch).clone() for batch in batches(6)])
    torch.testing.assert_close(losses[True], losses[False], rtol=1e-3, atol=1e-3)


class Waiting(torch.nn.Linear):
    """A network that looks at a number before it goes on."""

    def forward(self, input):
        return super().forward(input.flatten(1) * float(input.max()))


def test_a_step_that_waits_for_the_gpu_cannot_be_recorded(tiny, group):
    step = Step(Waiting(32 * 32, 2), tiny(cuda_graph=True), group)
    with pytest.raises(RuntimeError, match="cuda_graph could not record a step of hgru_small"):
        step(*next(batches(1)))
    assert torch.ones(2, device="cuda").sum().item() == 2  # the GPU goes on


def test_a_recorded_step_goes_from_masks_to_labels(tiny, built, group):
    (stage,) = tiny().stages
    masks = torch.zeros(8, 32, 32, dtype=torch.uint8, device="cuda")
    masks[:, 4:9, 7] = 1
    losses = {}
    for graph in (False, True):
        config = tiny(cuda_graph=graph, stages=(replace(stage, mask_weight=1.0), stage))
        with arithmetic(config, group.device):
            step = Step(built(config), config, group)
            shown = [step(*batch, masks).clone() for batch in batches(4)]
            asked = [step(*batch).clone() for batch in batches(4)]
            losses[graph] = torch.stack(shown + asked)
    torch.testing.assert_close(losses[True], losses[False], rtol=1e-3, atol=1e-3)


def test_a_recorded_step_reads_the_learning_rate_of_its_batch(tiny, built, group):
    losses = {}
    for graph in (False, True):
        config = tiny(cuda_graph=graph, warm_up=4)
        with arithmetic(config, group.device):
            step = Step(built(config), config, group)
            losses[graph] = torch.stack([step(*batch).clone() for batch in batches(6)])
        rate = step.optimiser.param_groups[0]["lr"]
        assert float(rate) == pytest.approx(config.learning_rate)
    # With the rate of the first batch for ever, the last three losses are 0.3 to 0.5 higher.
    torch.testing.assert_close(losses[True], losses[False], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("warm_up", [0, 5])
def test_a_recorded_step_goes_on_from_its_state(tiny, built, group, warm_up):
    config = tiny(cuda_graph=True, warm_up=warm_up)
    with arithmetic(config, group.device):
        one, other = (Step(built(config), config, group) for _ in range(2))
        for batch in batches(3):
            one(*batch)
        state = {name: _to_cpu(value) for name, value in deepcopy(one.state()).items()}
        other.load(state, batches=3)  # a checkpoint is read to the CPU
        for batch in batches(3):
            torch.testing.assert_close(one(*batch), other(*batch), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_precisions_train_and_the_switches_are_put_back(tiny, tmp_path, precision):
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark
    result = train(tiny(precision=precision), tmp_path, progress=False)
    assert result.outcome == "finished"
    assert result.peak_memory > 0
    assert (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark) == before


@pytest.mark.parametrize("graph", [False, True])
def test_stopped_and_resumed_it_ends_the_same(tiny, tmp_path, graph):
    config = tiny(cuda_graph=graph, warm_up=9)
    train(config, tmp_path / "whole", progress=False)
    for _ in range(12):
        train(config, tmp_path / "parts", resume=True, progress=False, budget=0)
    train(config, tmp_path / "parts", resume=True, progress=False)
    whole, parts = (load_file(tmp_path / n / "weights.safetensors") for n in ("whole", "parts"))
    for key in whole:
        torch.testing.assert_close(whole[key], parts[key], rtol=1e-2, atol=1e-3)
