import pytest
import torch

from hgru_vision.circuits import SymmetricKernel


@pytest.mark.parametrize("channels", [1, 2, 5, 25])
def test_symmetric_to_the_bit_with_each_pair_stored_once(channels):
    kernel = SymmetricKernel(channels, 3)
    weight = kernel()
    assert torch.equal(weight, weight.transpose(0, 1))
    assert kernel.pairs.shape == (channels * (channels + 1) // 2, 3, 3)
    assert len(weight.detach().unique()) == kernel.pairs.numel()


def test_offsets_are_not_flipped():
    kernel = SymmetricKernel(2, 3)
    with torch.no_grad():
        kernel.pairs.zero_()
        kernel.pairs[1, 0, 2] = 1
    assert kernel()[0, 1, 0, 2] == kernel()[1, 0, 0, 2] == 1
    assert kernel().sum() == 2


def test_a_pair_gets_the_gradients_of_both_its_places():
    kernel = SymmetricKernel(2, 1)
    kernel().sum().backward()
    assert kernel.pairs.grad.flatten().tolist() == [1, 2, 1]


def test_set_whole():
    ours, theirs = SymmetricKernel(3, 3), SymmetricKernel(3, 3, generator=torch.Generator())
    theirs.pairs.data += 1
    ours.set_whole(theirs())
    assert torch.equal(ours(), theirs())


def test_set_whole_refuses():
    kernel = SymmetricKernel(2, 3)
    with pytest.raises(ValueError, match=r"weight has shape \(3, 3, 3, 3\).*is \(2, 2, 3, 3\)"):
        kernel.set_whole(torch.zeros(3, 3, 3, 3))
    weight = torch.zeros(2, 2, 3, 3)
    weight[0, 1, 0, 0] = 0.5
    with pytest.raises(ValueError, match=r"not symmetric between channels .*up to 0.5"):
        kernel.set_whole(weight)
