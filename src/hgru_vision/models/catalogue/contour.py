"""Sizes of the networks of `models/contour.py`."""

from hgru_vision.models.catalogue.entry import Entry, batch_norm, conv, readout
from hgru_vision.papers.linsley2018 import BSDS_EPOCHS, KERNEL_SIZE, TIMESTEPS

__all__ = ["BLOCKS", "COLOURS", "ENTRIES", "VGG_CHANNELS", "feedforward_channels"]

COLOURS = 3
BLOCKS = {
    "conv1_1": (COLOURS, 64),
    "conv1_2": (64, 64),
    "conv2_1": (64, 128),
    "conv2_2": (128, 128),
}
"""Channels before and after each layer of VGG16's first two blocks."""

VGG_CHANNELS = BLOCKS["conv2_2"][1]


def _hgru(channels: int, kernel_size: int, timesteps: int) -> int:
    kernel = channels * (channels + 1) // 2 * kernel_size**2  # W is symmetric
    return kernel + 2 * conv(channels, channels, 1) + 5 * channels + timesteps


def feedforward_channels(channels: int, kernel_size: int) -> int:
    """Give the outputs with which a layer has as many parameters as an hGRU, as nearly as can be.

    >>> feedforward_channels(128, 15)
    66
    """
    one = conv(channels, 1, kernel_size)
    return max(1, round(_hgru(channels, kernel_size, TIMESTEPS) / one))


def _entry(name: str, reference: str, features: int, outputs: int) -> Entry:
    stages = sum(conv(*each, 3) for each in BLOCKS.values()) + batch_norm(VGG_CHANNELS)
    return Entry(
        name=name,
        module="contour",
        family="contours",
        reference=reference,
        parameters=stages + features + readout(outputs),
        epochs=BSDS_EPOCHS,
    )


_OUTPUTS = feedforward_channels(VGG_CHANNELS, KERNEL_SIZE)

ENTRIES = (
    _entry(
        "contour_hgru",
        'Supp., "Visualizing horizontal connections"',
        _hgru(VGG_CHANNELS, KERNEL_SIZE, TIMESTEPS),
        VGG_CHANNELS,
    ),
    _entry("contour_vgg", "contour_hgru without its hGRU", 0, VGG_CHANNELS),
    _entry(
        "contour_feedforward",
        "contour_hgru with a layer of as many parameters for its hGRU",
        conv(VGG_CHANNELS, _OUTPUTS, KERNEL_SIZE),
        _OUTPUTS,
    ),
)
