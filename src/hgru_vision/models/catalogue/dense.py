"""Sizes of the networks of `models/dense.py`.

A U-Net of a fraction of the parameters is as deep as the whole one, and every layer is narrower by
the square root of the fraction, to the nearest channel: the counts come to 0.500, 0.200 and 0.100
of the whole.
"""

from hgru_vision.models.catalogue.entry import Entry, conv, narrow, readout
from hgru_vision.papers.linsley2018 import (
    EPOCHS_LARGE,
    FCN_MULTIPLE,
    FRACTIONS,
    SEGNET_MULTIPLE,
    UNET_MULTIPLE,
)

__all__ = ["BLOCKS", "ENTRIES", "MAPS", "UPSAMPLING_KERNEL"]

# Simonyan & Zisserman (2014), configuration D: channels and convolutions of the five blocks.
BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
MAPS = 2  # of the FCN's 1x1 convolutions: one a class
# The paper gives no size for the U-Net's upsampling kernels. Sizes 3, 4 and 5 make 277, 341 and 424
# times the hGRU's parameters, and the paper has "over 350".
UPSAMPLING_KERNEL = 4


def _encoder(fraction: float = 1) -> int:
    count, inputs = 0, 1
    for whole, layers in BLOCKS:
        channels = narrow(whole, fraction)
        count += conv(inputs, channels, 3) + (layers - 1) * conv(channels, channels, 3)
        inputs = channels
    return count


def _fcn() -> int:
    maps = sum(conv(channels, MAPS, 1) for channels, _ in BLOCKS)
    upsampling = sum(conv(MAPS, MAPS, 2 * 2**block, bias=False) for block in range(1, len(BLOCKS)))
    return _encoder() + maps + upsampling + readout(MAPS)


def _unet(fraction: float = 1) -> int:
    channels = [narrow(whole, fraction) for whole, _ in BLOCKS]
    below = [*channels[1:], channels[-1]]
    decoder = sum(
        conv(inputs, outputs, UPSAMPLING_KERNEL)
        for inputs, outputs in zip(below, channels, strict=True)
    )
    return _encoder(fraction) + decoder + readout(channels[0])


def _segnet() -> int:
    channels = [channels for channels, _ in BLOCKS]
    above = [channels[0], *channels[:-1]]
    decoder = sum(
        (layers - 1) * conv(inputs, inputs, 3) + conv(inputs, outputs, 3)
        for (inputs, layers), outputs in zip(BLOCKS, above, strict=True)
    )
    return _encoder() + decoder + readout(channels[0])


def _entry(name: str, parameters: int, reference: str, multiple: float | None = None) -> Entry:
    return Entry(
        name=name,
        module="dense",
        family="per-pixel",
        reference=reference,
        parameters=parameters,
        epochs=EPOCHS_LARGE,
        multiple=multiple,
    )


_MAIN = 'Main, "Per-pixel prediction models"'

ENTRIES: tuple[Entry, ...] = (
    _entry("fcn", _fcn(), _MAIN, FCN_MULTIPLE),
    _entry("unet", _unet(), _MAIN, UNET_MULTIPLE),
    _entry("segnet", _segnet(), _MAIN, SEGNET_MULTIPLE),
    *(
        _entry(f"unet_{name}", _unet(1 / parts), 'Supp., "Additional models"')
        for name, parts in FRACTIONS.items()
    ),
)
