"""Sizes of the networks of `models/beyond.py`."""

from hgru_vision.models.catalogue.entry import Entry, batch_norm, conv, linear, readout
from hgru_vision.models.catalogue.recurrent import STAGES
from hgru_vision.papers.linsley2018 import (
    CHANNELS,
    EPOCHS,
    EPOCHS_LARGE,
    GABOR_PHASES,
    HGRU_PARAMETERS,
    INPUT_KERNEL_SIZE,
    TIMESTEPS,
)

__all__ = [
    "CORNET_STEPS",
    "CORNET_WIDENING",
    "ENTRIES",
    "SMALL_KERNEL_SIZE",
    "SMALL_ORIENTATIONS",
    "SMALL_TIMESTEPS",
    "VIT_DEPTH",
    "VIT_HEADS",
    "VIT_PATCH",
    "VIT_WIDENING",
    "VIT_WIDTH",
]

# Width, depth and heads of ViT-Ti: Touvron et al. (2021), table 1.
VIT_WIDTH = 192
VIT_DEPTH = 12
VIT_HEADS = 3
VIT_WIDENING = 4  # of the hidden layer of a block's perceptron
VIT_PATCH = 10  # pixels: 15 x 15 tokens for the paper's images of 150 x 150

CORNET_STEPS = 4  # of V4, the area of CORnet-S that has most
CORNET_WIDENING = 4  # of the two inner layers of its block

# An hGRU for canvases of 32 pixels, which two cores of a laptop train in minutes.
SMALL_ORIENTATIONS = 4
SMALL_KERNEL_SIZE = 7
SMALL_TIMESTEPS = 4


def _vit() -> int:
    attention = linear(VIT_WIDTH, 3 * VIT_WIDTH) + linear(VIT_WIDTH, VIT_WIDTH)
    hidden = VIT_WIDENING * VIT_WIDTH
    perceptron = linear(VIT_WIDTH, hidden) + linear(hidden, VIT_WIDTH)
    layer_norm = 2 * VIT_WIDTH
    block = attention + perceptron + 2 * layer_norm
    embedding = conv(1, VIT_WIDTH, VIT_PATCH)
    return embedding + VIT_DEPTH * block + layer_norm + linear(VIT_WIDTH, 2)


def _cornet_block() -> int:
    inner = CORNET_WIDENING * CHANNELS
    convolutions = (
        2 * conv(CHANNELS, CHANNELS, 1, bias=False)  # into the area, and its first shortcut
        + conv(CHANNELS, inner, 1, bias=False)
        + conv(inner, inner, 3, bias=False)
        + conv(inner, CHANNELS, 1, bias=False)
    )
    step = 2 * batch_norm(inner) + batch_norm(CHANNELS)
    return convolutions + batch_norm(CHANNELS) + CORNET_STEPS * step + STAGES


def _hgru_small() -> int:
    channels = SMALL_ORIENTATIONS * GABOR_PHASES
    kernel = channels * (channels + 1) // 2 * SMALL_KERNEL_SIZE**2  # W is symmetric
    circuit = kernel + 2 * conv(channels, channels, 1) + 5 * channels + SMALL_TIMESTEPS
    return conv(1, channels, INPUT_KERNEL_SIZE, bias=False) + circuit + readout(channels)


ENTRIES: tuple[Entry, ...] = (
    Entry(
        name="vit",
        module="beyond",
        family="beyond",
        reference="Dosovitskiy et al. (2021), arXiv 2010.11929",
        parameters=_vit(),
        epochs=EPOCHS_LARGE,
    ),
    Entry(
        name="cornet_block",
        module="beyond",
        family="beyond",
        reference="Kubilius et al. (2019), arXiv 1909.06161",
        parameters=_cornet_block(),
        epochs=EPOCHS,
    ),
    Entry(
        name="ff_unrolled",
        module="beyond",
        family="beyond",
        reference="Eqs. 3 to 9 with parameters of each step's own",
        # Each step has a whole hGRU, but for the time-gain, of which it has its own value alone.
        parameters=TIMESTEPS * (HGRU_PARAMETERS - TIMESTEPS + 1) + STAGES,
        epochs=EPOCHS,
    ),
    Entry(
        name="hgru_small",
        module="beyond",
        family="beyond",
        reference="The hGRU network for small canvases (hgru train quick)",
        parameters=_hgru_small(),
        epochs=EPOCHS,
    ),
)
