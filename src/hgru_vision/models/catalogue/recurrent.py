"""Sizes of the networks of `models/recurrent.py`."""

from hgru_vision.models.catalogue.entry import Entry, Family, batch_norm, conv, readout
from hgru_vision.papers.linsley2018 import (
    CHANNELS,
    EPOCHS,
    HGRU_PARAMETERS,
    INPUT_KERNEL_SIZE,
    KERNEL_SIZE,
    SHORTER_TIMESTEPS,
    TIMESTEPS,
)

__all__ = ["ENTRIES", "STAGES"]

STAGES = conv(1, CHANNELS, INPUT_KERNEL_SIZE, bias=False) + readout(CHANNELS)
"""Parameters of the input and the readout stage."""

_WHOLE = CHANNELS**2 * KERNEL_SIZE**2  # W of a GRU
_SYMMETRIC = CHANNELS * (CHANNELS + 1) // 2 * KERNEL_SIZE**2  # W of an hGRU
_GATE = conv(CHANNELS, CHANNELS, 1)
_GRU = _WHOLE + CHANNELS + 2 * _GATE
# Four batch norms a step; gate biases and time-gain are gone.
_BATCH_NORM = HGRU_PARAMETERS + TIMESTEPS * 4 * batch_norm(CHANNELS) - 2 * CHANNELS - TIMESTEPS


def _entry(name: str, circuit: int, reference: str, family: Family = "recurrent") -> Entry:
    return Entry(
        name=name,
        module="recurrent",
        family=family,
        reference=reference,
        parameters=circuit + STAGES,
        epochs=EPOCHS,
        multiple=1 if name == "hgru" else None,
    )


_MAIN = 'Main, "Recurrent models"'
_SUPPLEMENT = 'Supp., "Additional recurrent models"'

ENTRIES = (
    _entry("hgru", HGRU_PARAMETERS, _MAIN),
    *(
        _entry(f"hgru_{steps}", HGRU_PARAMETERS - TIMESTEPS + steps, _MAIN)
        for steps in SHORTER_TIMESTEPS
    ),
    _entry("hgru_no_linear", HGRU_PARAMETERS - 3 * CHANNELS, _MAIN),
    _entry("hgru_no_quadratic", HGRU_PARAMETERS - 2 * CHANNELS, _MAIN),
    _entry("hgru_no_time_gain", HGRU_PARAMETERS - TIMESTEPS, 'Main, "hGRU formulation"'),
    _entry("gru", _GRU, _MAIN),
    _entry("gru_2l", _GRU + _WHOLE + CHANNELS, _SUPPLEMENT),
    _entry("hgru_bn", _BATCH_NORM, _SUPPLEMENT),
    _entry("hgru_nonnegative", _BATCH_NORM + _SYMMETRIC, _SUPPLEMENT),
    _entry(
        "hgru_released",
        # A W stored whole, one more batch norm, a bias of the input stage.
        HGRU_PARAMETERS + _WHOLE - _SYMMETRIC + batch_norm(CHANNELS) + CHANNELS,
        "The authors' code, github.com/serre-lab/hgru_share",
        "beyond",
    ),
    _entry("hgru_crbp", HGRU_PARAMETERS, "Linsley et al. (2020), arXiv 2005.11362", "beyond"),
)
