import pytest
import torch
from torch import nn

from hgru_vision.training.checkpoint import build
from hgru_vision.training.distributed import Group
from hgru_vision.training.recorded import Recorded, _recording, _unchanged
from hgru_vision.training.step import Step


def make():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    return network, torch.optim.Adam(network.parameters(), lr=0.1)


def step_of(network, optimiser):
    def step(images, target):
        loss = nn.functional.cross_entropy(network(images), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step


def state(network, optimiser):
    moments = [value.clone() for each in optimiser.state.values() for value in each.values()]
    return [value.clone() for value in network.state_dict().values()], moments


BATCH = torch.rand(8, 4, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2


@pytest.mark.parametrize("before", [0, 2])
def test_trials_leave_weights_statistics_and_moments_as_they_were(before):
    network, optimiser = make()
    step = step_of(network, optimiser)
    for _ in range(before):
        step(*BATCH)
    weights, moments = state(network, optimiser)
    places = [parameter.data_ptr() for parameter in network.parameters()]
    with _unchanged(network, optimiser):
        step(*BATCH)
        moved, _ = state(network, optimiser)
    assert not torch.equal(moved[0], weights[0])
    after, later = state(network, optimiser)
    torch.testing.assert_close(after, weights, rtol=0, atol=0)
    # Before the first step an optimiser has none; zeros are what it would begin with.
    expected = moments if before else [torch.zeros_like(value) for value in later]
    torch.testing.assert_close(later, expected, rtol=0, atol=0)
    assert [parameter.data_ptr() for parameter in network.parameters()] == places


class FakeGraph:
    """A graph that remembers how often it was replayed, on a machine without a GPU."""

    def __init__(self):
        self.replays = 0

    def replay(self):
        self.replays += 1


class Nothing:
    """Stands for a stream and for what is done within one."""

    def __init__(self, *_, **__):
        pass

    def wait_stream(self, other):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


@pytest.fixture
def without_gpu(monkeypatch):
    for name in ("Stream", "stream", "current_stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, Nothing)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)


def record(step, network, optimiser, batch=BATCH, mask_weight=1.0):
    return Recorded(
        step,
        batch,
        network=network,
        optimiser=optimiser,
        mask_weight=mask_weight,
        name="own",
    )


def test_a_batch_is_put_where_the_graph_reads_it(without_gpu):
    network, optimiser = make()
    given = []

    def step(*batch):
        given.append(batch)
        return step_of(network, optimiser)(*batch)

    recorded = record(step, network, optimiser)
    assert len(given) == 4  # three trials, and the one that is recorded
    other = torch.ones(8, 4), torch.zeros(8, dtype=torch.int64)
    assert recorded(other) is recorded.loss
    assert recorded.graph.replays == 1
    assert all(torch.equal(there, part) for there, part in zip(given[-1], other, strict=True))
    assert not torch.equal(BATCH[0], other[0])  # whose own memory is left alone


def test_another_size_or_weight_of_masks_is_not_what_was_recorded(without_gpu):
    network, optimiser = make()
    recorded = record(step_of(network, optimiser), network, optimiser)
    assert recorded.takes(BATCH, 1.0) and recorded.takes(BATCH, 0.5)  # there are no masks
    assert not recorded.takes(tuple(part[:4] for part in BATCH), 1.0)
    masked = (*BATCH, torch.zeros(8, 4))
    assert not recorded.takes(masked, 1.0)
    recorded = record(lambda *_: torch.zeros(()), network, optimiser, masked, mask_weight=0.5)
    assert recorded.takes(masked, 0.5) and not recorded.takes(masked, 1.0)


def test_a_step_of_training_is_recorded_again_for_a_batch_of_another_size(
    without_gpu, tiny, decisive
):
    group = Group(rank=0, size=1, device=torch.device("cpu"))
    step = Step(decisive(build(tiny())), tiny(), group)
    step.config = tiny(cuda_graph=True)  # as on a GPU
    images = torch.randint(0, 256, (8, 32, 32), dtype=torch.uint8)
    labels = torch.arange(8) % 2
    loss = step(images, labels)
    assert loss.shape == () and loss > 0
    first = step._recorded
    assert step(images.flip(0), labels) is loss and step._recorded is first
    assert first.graph.replays == 2
    assert torch.equal(first.batch[0], images.flip(0))
    step(images[:4], labels[:4])
    assert step._recorded is not first and step._recorded.graph.replays == 1


def test_what_cannot_be_recorded_is_told(without_gpu):
    said = "cuda_graph could not record a step of own: nothing in it may wait for the GPU"
    network, optimiser = make()
    calls = []

    def step(*batch):
        calls.append(batch)
        if len(calls) > 3:  # the trials pass
            raise RuntimeError("operation not permitted when stream is capturing")
        return torch.zeros(())

    with pytest.raises(RuntimeError, match=said):
        record(step, network, optimiser)
    with pytest.raises(torch.OutOfMemoryError, match=r"^full$"), _recording("hgru"):
        raise torch.OutOfMemoryError("full")
