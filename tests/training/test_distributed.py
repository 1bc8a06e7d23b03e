"""Two real processes: the same weights on both, and the curve of a single one."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from hgru_vision.circuits.normalization import NotTracking, StepBatchNorm
from hgru_vision.training.distributed import (
    Group,
    SharedNorm,
    SharedStepBatchNorm,
    process_group,
    synchronise,
)
from hgru_vision.training.loop import train

CHILD = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
import hgru_vision.training.outcome as outcome
outcome._shortcut = lambda _: None
finish = outcome.conclude
def conclude(step, group, *rest):
    torch.save(step.network.state_dict(), Path(sys.argv[2]) / f"rank{group.rank}.pt")
    return finish(step, group, *rest)
import hgru_vision.training.session as session
session.conclude = conclude
from hgru_vision.training.config import RunConfig
from hgru_vision.training.loop import train
config = RunConfig.from_json(json.loads(Path(sys.argv[1]).read_text()))
budget = float(sys.argv[3]) if sys.argv[3:] else None
result = train(config, Path(sys.argv[2]), resume=True, budget=budget, progress=False, device="cpu")
assert result is None if sys.argv[3:] else result.outcome == "finished"
"""


# The second process fails in its third batch, as a circuit that finds itself diverging does.
POISON = """
import os
from hgru_vision.training.step import Step
step = Step.__call__
def poisoned(self, *batch, **keywords):
    if os.environ["RANK"] == "1" and self.batches == 2:
        raise FloatingPointError("the state is not finite")
    return step(self, *batch, **keywords)
Step.__call__ = poisoned
"""


def torchrun(config, folder: Path, *budget: str, first: str = "") -> None:
    folder.mkdir(exist_ok=True)
    plan, script = folder.with_suffix(".json"), folder.with_suffix(".py")
    plan.write_text(json.dumps(config.to_json()))
    script.write_text(first + CHILD)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    alone = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, *alone, str(script), str(plan), str(folder), *budget],
        env=environment, check=True, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "more", "masks"),
    [
        ("hgru_small", {}, False),
        ("hgru_small", {"pool_first": True}, False),
        ("hgru_bn", {}, False),
        ("hgru_small", {}, True),
    ],
)
def test_two_processes_train_as_one(tiny, tmp_path, model, more, masks):
    options = {"timesteps": 2, **more}
    config = tiny(model=model, options=options, learning_rate=1e-3, evaluation_images=33)
    if masks:
        (stage,) = config.stages
        config = replace(config, stages=(replace(stage, mask_weight=1.0), stage))
    torchrun(config, tmp_path / "two")
    one = train(config, tmp_path / "one", progress=False, device="cpu")
    first, second = (torch.load(tmp_path / "two" / f"rank{rank}.pt") for rank in (0, 1))
    assert all(torch.equal(first[key], second[key]) for key in first)
    alone = load_file(tmp_path / "one" / "weights.safetensors")
    for key in alone:
        torch.testing.assert_close(first[key], alone[key], rtol=0, atol=1e-5)
    lines = (tmp_path / "two" / "curve.jsonl").read_text().splitlines()
    curve = [json.loads(line) for line in lines]
    assert [point["loss"] for point in curve] == pytest.approx(
        [point.loss for point in one.curve], abs=1e-5
    )
    assert [point["accuracy"] for point in curve] == [point.accuracy for point in one.curve]


@pytest.mark.slow
def test_two_processes_that_were_stopped_end_the_same(tiny, tmp_path):
    """Stopped between two evaluations, they keep the losses of both."""
    (stage,) = tiny().stages
    config = tiny(stages=(replace(stage, images=192),), evaluate_every=20)
    torchrun(config, tmp_path / "whole")
    torchrun(config, tmp_path / "stopped", "0")
    torchrun(config, tmp_path / "stopped")
    (whole,), (stopped,) = (
        [json.loads(line) for line in (tmp_path / name / "curve.jsonl").read_text().splitlines()]
        for name in ("whole", "stopped")
    )
    assert stopped["loss"] == pytest.approx(whole["loss"], abs=1e-7)
    first, second = (torch.load(tmp_path / name / "rank0.pt") for name in ("whole", "stopped"))
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.slow
def test_a_process_that_diverges_alone_ends_the_run(tiny, tmp_path):
    """The other would wait for its gradients for half an hour."""
    with pytest.raises(subprocess.CalledProcessError):
        torchrun(tiny(), tmp_path / "poisoned", first=POISON)
    assert not (tmp_path / "poisoned" / "result.json").exists()


@pytest.fixture
def lonely_process(tmp_path):
    """Give torch a group of one process, in which a sum over all is one's own."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("kind", "size", "settings"),
    [
        (nn.BatchNorm2d, (4, 3, 5, 5), {}),
        (nn.BatchNorm2d, (4, 3, 5, 5), {"momentum": None}),
        (nn.BatchNorm2d, (4, 3, 5, 5), {"affine": False}),
        (nn.BatchNorm2d, (4, 3, 5, 5), {"track_running_stats": False}),
        (nn.BatchNorm1d, (40, 3), {}),
        (nn.BatchNorm1d, (4, 3, 5), {}),
        (nn.BatchNorm3d, (4, 3, 2, 5, 5), {}),
    ],
)
def test_the_shared_batch_norm_is_torchs_own(lonely_process, kind, size, settings):
    own, shared = (kind(3, **settings) for _ in range(2))
    synchronise(nn.Sequential(shared))
    assert isinstance(shared, SharedNorm)
    generator = torch.Generator().manual_seed(0)
    inputs = []
    for norm in (own, shared):
        generator.manual_seed(0)
        for _ in range(2):
            x = torch.randn(size, generator=generator).mul_(3).add_(100).requires_grad_()
            (norm(x) * torch.arange(size[-1])).square().sum().backward()
        inputs.append(x)
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-3, atol=1e-3)
    for name, value in own.state_dict().items():
        torch.testing.assert_close(shared.state_dict()[name], value, rtol=1e-4, atol=1e-4)
    if own.affine:
        torch.testing.assert_close(own.weight.grad, shared.weight.grad, rtol=1e-4, atol=1e-2)
    torch.testing.assert_close(own.eval()(x), shared.eval()(x), rtol=1e-3, atol=1e-3)


def test_the_shared_norm_of_each_step_is_the_plain_one(lonely_process):
    plain, shared = (StepBatchNorm(torch.zeros(3), 2) for _ in range(2))
    synchronise(nn.Sequential(shared))
    assert isinstance(shared, SharedStepBatchNorm)
    x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    for t in (0, 1, 5):
        torch.testing.assert_close(plain(x * (t + 1), t), shared(x * (t + 1), t))
    with NotTracking([shared, plain]):
        shared(x * 9, 0)
        plain(x * 9, 0)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(shared.state_dict()[name], value)
    torch.testing.assert_close(plain.eval()(x, 0), shared.eval()(x, 0))


def test_a_batch_that_cannot_be_shared_is_refused():
    group = Group(rank=0, size=3, device=torch.device("cpu"))
    message = "a batch of 32 cannot be shared by 3 processes; make it a multiple of 3"
    with pytest.raises(ValueError, match=message):
        group.share(32)


def test_one_process_needs_no_group():
    with process_group("cpu") as group:
        assert (group.rank, group.size, group.leads) == (0, 1, True)
        assert group.any(True) and not group.any(False)
        assert group.sum(torch.tensor(3)).item() == 3
    assert not torch.distributed.is_initialized()
