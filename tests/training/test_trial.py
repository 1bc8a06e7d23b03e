import pytest
import torch

from hgru_vision.training.checkpoint import build
from hgru_vision.training.trial import try_network

CPU = torch.device("cpu")

# Functions by what is wrong with the network that they return.
WRONG = """

def three():
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.AdaptiveMaxPool2d(1), nn.Flatten())

def tuples():
    class Pair(nn.Module):
        def forward(self, images):
            return images, images
    return Pair()

def bare():
    return nn.Sequential(nn.AdaptiveMaxPool2d((1, 2)), nn.Flatten())

def unfit():
    network = Leaky(4)
    network.decide = nn.Linear(7, 2)
    return network

def outside():
    return nn.Sequential(nn.Conv2d(3, 2, 3))

def backward():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.clone()
        @staticmethod
        def backward(context, grad):
            raise RuntimeError("no way back")
    class Stopped(Leaky):
        def forward(self, images):
            return Once.apply(super().forward(images))
    return Stopped(4)

def restless():
    network = Leaky(4)
    network.decide.bias.data.fill_(next(COUNT))
    return network

def growing():
    network = Leaky(4)
    network.register_buffer(f"buffer{next(COUNT)}", torch.zeros(1))
    return network

def lazy():
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(2))

import os
COUNT = iter([int.from_bytes(os.urandom(3), "big")])
"""


def tried(config):
    network = build(config)
    start = {name: value.clone() for name, value in network.state_dict().items()}
    before = torch.get_rng_state()
    try_network(network, config, CPU)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, start[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize(("name", "target"), [("leaky", "label"), ("pixels", "segmentation")])
def test_what_can_be_trained_passes_and_nothing_is_moved(tiny, nets, name, target):
    tried(tiny(model=f"nets.py:{name}", options={}, target=target))


def test_what_a_forward_pass_draws_moves_nothing(tiny, nets):
    with nets.open("a") as file:
        file.write("\ndef noisy():\n    return nn.Sequential(Leaky(4), nn.Dropout(0.5))\n")
    tried(tiny(model="nets.py:noisy", options={}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "three",
            "for two images, (2, 1, 32, 32), nets.py:three must give two logits an image, a tensor "
            "of shape (2, 2), got (2, 3)",
        ),
        ("tuples", "nets.py:tuples must give two logits an image, a tensor of shape (2, 2), got t"),
        ("bare", "nets.py:bare has nothing to train: its output depends on no parameter"),
        (
            "unfit",
            "nets.py:unfit fails at nets.py:15: RuntimeError: mat1 and mat2 shapes cannot be "
            "multiplied (2x4 and 7x2); for two images, (2, 1, 32, 32), it must give logits, (2, 2)",
        ),
        ("outside", "nets.py:outside fails: RuntimeError: Given groups=1, weight of size [2, 3, 3"),
        (
            "backward",
            "nets.py:backward fails at nets.py:51: RuntimeError: no way back, in the backward pass",
        ),
        (
            "restless",
            "nets.py:restless starts from other values each time it is made, such as decide.bias: "
            "draw them from torch's random numbers, which the run's seed sets",
        ),
        ("growing", "nets.py:growing starts from other values each time it is made, such as buffe"),
        (
            "lazy",
            "nets.py:lazy has layers whose size is not known before they are used, such as "
            "1.weight: take nn.Linear for nn.LazyLinear, and so on",
        ),
    ],
)
def test_what_cannot_be_trained_is_told_in_a_line(tiny, nets, name, text):
    with nets.open("a") as file:
        file.write(WRONG)
    with pytest.raises(ValueError) as refused:
        config = tiny(model=f"nets.py:{name}", options={})
        try_network(build(config), config, CPU)
    assert text in str(refused.value) and "\n" not in str(refused.value)


def test_values_that_are_not_a_number_are_the_same_each_time(tiny, nets):
    with nets.open("a") as file:
        file.write(
            "\ndef unset():\n    network = Leaky(4)\n"
            "    network.register_buffer('seen', torch.tensor([float('nan'), 1.0]))\n"
            "    return network\n"
        )
    config = tiny(model="nets.py:unset", options={})
    try_network(build(config), config, CPU)


def test_masks_need_logits_of_pixels(tiny, nets):
    text = r"must give two logits a pixel, a tensor of shape \(2, 2, 32, 32\), got \(2, 2\)$"
    with pytest.raises(ValueError, match=text):
        tried(tiny(model="nets.py:leaky", options={}, target="segmentation"))
