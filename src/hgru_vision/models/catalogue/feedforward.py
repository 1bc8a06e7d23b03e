"""Sizes of the networks of `models/feedforward.py`."""

from hgru_vision.models.catalogue.entry import Entry, conv, readout
from hgru_vision.papers.linsley2018 import (
    CHANNELS,
    DEPTHS,
    EPOCHS,
    FEEDFORWARD_KERNELS,
    FEEDFORWARD_MULTIPLE,
    INPUT_KERNEL_SIZE,
)

__all__ = ["ENTRIES"]


def _entry(kind: str, depth: int) -> Entry:
    kernel_size, kernels = FEEDFORWARD_KERNELS.get(kind, FEEDFORWARD_KERNELS["medium"])
    first = conv(CHANNELS, kernels, kernel_size)
    others = (depth - 1) * conv(kernels, kernels, kernel_size)
    # Theta, phi and g to half of the channels, and back.
    block = 3 * conv(kernels, kernels // 2, 1) + conv(kernels // 2, kernels, 1)
    features = first + others + (block if kind == "nonlocal" else 0)
    return Entry(
        name=f"ff_{kind}_{depth}",
        module="feedforward",
        family="feedforward",
        reference='Main, "Feedforward models"',
        parameters=conv(1, CHANNELS, INPUT_KERNEL_SIZE, bias=False) + features + readout(kernels),
        epochs=EPOCHS,
        multiple=FEEDFORWARD_MULTIPLE if depth == 1 and kind in FEEDFORWARD_KERNELS else None,
    )


ENTRIES = tuple(
    _entry(kind, depth)
    for kind in (*FEEDFORWARD_KERNELS, "dilated", "nonlocal")
    for depth in DEPTHS
)
