"""Sizes of the networks of `models/highway.py`."""

from hgru_vision.models.catalogue.entry import Entry, conv, readout
from hgru_vision.papers.linsley2018 import CHANNELS, DEPTHS, EPOCHS, INPUT_KERNEL_SIZE

__all__ = ["ENTRIES", "KERNEL_SIZE"]

KERNEL_SIZE = 8
"""The paper gives none; a layer with 25 channels then comes nearest to the hGRU's parameters."""

ENTRIES = tuple(
    Entry(
        name=f"highway_{depth}",
        module="highway",
        family="highway",
        reference='Supp., "Additional models"',
        parameters=conv(1, CHANNELS, INPUT_KERNEL_SIZE, bias=False)
        + depth * 2 * conv(CHANNELS, CHANNELS, KERNEL_SIZE)
        + readout(CHANNELS),
        epochs=EPOCHS,
    )
    for depth in DEPTHS
)
