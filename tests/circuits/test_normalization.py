import pytest
import torch

from hgru_vision.circuits.normalization import NotTracking, StepBatchNorm


def activity(seed=0):
    return torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(seed)) * 3 + 2


def test_training_normalises_to_the_given_mean_and_spread():
    nu = torch.tensor([0.0, 1.0, -2.0])
    out = StepBatchNorm(nu, steps=2)(activity(), t=0)
    torch.testing.assert_close(out.mean((0, 2, 3)), nu, rtol=0, atol=1e-5)
    torch.testing.assert_close(out.std((0, 2, 3)), torch.full((3,), 0.1), rtol=0.01, atol=0)


def test_a_batch_has_a_fiftieth_of_the_statistics():
    norm = StepBatchNorm(torch.zeros(3), steps=1)
    norm(activity(), t=0)
    torch.testing.assert_close(norm.running_mean[0], 0.02 * activity().mean((0, 2, 3)))


@pytest.mark.parametrize(("steps", "touched"), [(3, [False, True, False]), (1, [True])])
def test_statistics_belong_to_a_step_or_to_all(steps, touched):
    norm = StepBatchNorm(torch.zeros(3), steps)
    norm(activity(), t=1)
    assert (norm.running_mean != 0).all(1).tolist() == touched


def test_later_steps_use_the_last_set():
    norm = StepBatchNorm(torch.zeros(3), steps=2).eval()
    norm.running_mean[1] = 5
    assert torch.equal(norm(activity(), t=7), norm(activity(), t=1))
    assert not torch.equal(norm(activity(), t=7), norm(activity(), t=0))


def test_a_second_computation_leaves_the_statistics_alone():
    norm = StepBatchNorm(torch.zeros(3), steps=1)
    with NotTracking([norm]):
        norm(activity(), t=0)
    assert (norm.running_mean == 0).all()
    norm(activity(), t=0)
    assert (norm.running_mean != 0).all()
